package web

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/live"
)

// audiences are the pages of each audience, with caches of their own, so that nobody gets what was drawn or read for those
// who may see more.
type audiences map[auth.Audience]*pages

// newAudiences makes the pages of all audiences. They read backend, or hidden if they may not see payloads.
func newAudiences(o Options, urls templates.URLs, hidden Backend, changed func()) audiences {
	all := audiences{}
	for _, payload := range []bool{true, false} {
		first := auth.Audience{Role: auth.Admin, Payload: payload}
		for _, role := range []auth.Role{auth.Admin, auth.Operator, auth.Viewer} {
			a := auth.Audience{Role: role, Payload: payload}
			seen := o
			if !payload {
				seen.Backend = hidden
			}
			all[a] = newPages(seen, a, urls, all[first], changed)
		}
	}
	return all
}

// any returns the pages of those who may see everything, for what is the same of all.
func (all audiences) any() *pages { return all[auth.Everything] }

// of returns the pages for the one who makes a request, nil if nobody is signed in.
func (all audiences) of(r *http.Request) *pages { return all[auth.FromContext(r.Context()).Audience] }

// page serves the page of a kind, by its index.
func (all audiences) page(i int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := all.of(r)
		p.serve(p.routes[i])(w, r)
	}
}

// form serves a form.
func (all audiences) form(serve func(f *forms, w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { serve(all.of(r).forms, w, r) }
}

// view serves a form of saved views.
func (all audiences) view(serve func(p *viewsPage, w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { serve(all.of(r).views, w, r) }
}

// settings serves the form on the page of settings.
func (all audiences) settings(serve func(p *settingsPage, w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { serve(all.of(r).settings, w, r) }
}

// run reads for open pages until ctx ends.
func (all audiences) run(ctx context.Context) error {
	var g errgroup.Group
	for a, p := range all {
		if a.Role != auth.Admin { // whose readers the others use
			continue
		}
		g.Go(func() error { return p.counts.run(ctx) })
		if p.beats != nil {
			g.Go(func() error { return p.beats.run(ctx) })
		}
		if p.groups != nil {
			g.Go(func() error { return p.groups.run(ctx) })
		}
		if a != auth.Everything {
			continue
		}
		if p.results != nil {
			g.Go(func() error { return p.results.run(ctx) })
		}
		if p.audits != nil {
			g.Go(func() error { return p.audits.reports.run(ctx) })
		}
	}
	return g.Wait()
}

// Snapshot renders a topic for an audience.
func (all audiences) Snapshot(ctx context.Context, a auth.Audience, topic string) (live.Snapshot, error) {
	p := all[a]
	if p == nil {
		return live.Snapshot{}, live.ErrNoTopic
	}
	return p.Snapshot(ctx, topic)
}

// Action is what those may take who watch a topic.
func (all audiences) Action(topic string) auth.Action { return all.any().action(topic) }
