package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	stored "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/live"
	"github.com/umbelhq/umbel/web/query"
)

const (
	failingNow     = 5               // groups on the overview
	newestFailures = 10              // tasks on the page of a group
	staleFailures  = 5 * time.Second // how old groups on live pages may be
	paramResolved  = "resolved"      // of a page after a group was resolved: its id
)

// failuresPage lists groups. What cannot be read is said on the page.
func (p *pages) failuresPage(ctx context.Context, q query.Failures, stale time.Duration) page {
	path := p.site.Prefix + "/failures"
	v := templates.Failures{Show: q.Show, Self: q.URL(path)}
	if v.Show == "" {
		v.Show = query.ShowOpen
	}
	found, err := p.cluster.History().FailureGroups(ctx, q.Request(p.now(), stale))
	if err != nil {
		p.log.WarnContext(ctx, "list failures", "error", err)
		v.Unreadable = true
	}
	v.Open, v.Resolved = found.Open, found.Resolved
	for _, f := range found.Groups {
		v.Groups = append(v.Groups, failure(f))
	}
	if q.After != nil {
		v.Newest = query.Failures{Show: q.Show, Limit: q.Limit}.URL(path)
	}
	if found.Next != nil {
		q.After = found.Next
		v.Older = q.URL(path)
	}
	return page{
		topic: strings.TrimPrefix(v.Self, p.site.Prefix+"/"), address: strings.TrimPrefix(v.Self, p.site.Prefix),
		title: "Failures", section: templates.SectionFailures, view: v, version: p.clusterVersion(),
	}
}

// clusterVersion is the version of the cluster now, of which what a store says is a part.
func (p *pages) clusterVersion() (version uint64) {
	p.cluster.View(func(c *state.Cluster) { version = c.Version() })
	return version
}

// failuresTopic assembles the page of the live topic of a list of groups.
func (p *pages) failuresTopic(ctx context.Context, topic, raw string) (page, error) {
	v, err := url.ParseQuery(strings.TrimPrefix(raw, "?"))
	if err != nil {
		return page{}, live.ErrNoTopic
	}
	q, err := query.ParseFailures(v)
	if err != nil || q.URL("failures") != topic {
		return page{}, live.ErrNoTopic
	}
	return p.failuresPage(ctx, q, staleFailures), nil
}

// failurePage shows one group. The error is errUnknown, or that of the store.
func (p *pages) failurePage(ctx context.Context, id string) (page, error) {
	f, err := p.group(ctx, id)
	if err != nil {
		return page{}, err
	}
	v := templates.FailureGroup{Failure: failure(f), Self: p.site.Prefix + templates.FailurePath(id)}
	newest, err := p.cluster.Task(ctx, f.TaskID)
	switch {
	case err == nil:
		v.Exception, v.Traceback = newest.Exception, newest.Traceback
	case !errors.Is(err, history.ErrNotFound):
		return page{}, err
	}
	q, err := stored.Parse("failure:" + id)
	if err != nil {
		return page{}, err
	}
	found, err := p.cluster.Tasks(ctx, history.TaskRequest{Query: q, Limit: newestFailures, Now: p.now()})
	if err != nil {
		return page{}, err
	}
	v.Tasks = found.Tasks
	return page{
		topic: "failure/" + id, address: templates.FailurePath(id), title: v.Type,
		section: templates.SectionFailures, view: v, version: p.clusterVersion(),
	}, nil
}

// group returns the group of an id as of now, errUnknown if there is none.
func (p *pages) group(ctx context.Context, id string) (history.FailureGroup, error) {
	key, ok := fingerprint.ParseID(id)
	if !ok {
		return history.FailureGroup{}, errUnknown
	}
	f, err := p.cluster.History().FailureGroup(ctx, key, p.now())
	if errors.Is(err, history.ErrNotFound) {
		err = errUnknown
	}
	return f, err
}

// alike returns the group that a failed task is in, nil if there is none.
func (p *pages) alike(ctx context.Context, t *state.Task) *templates.Failure {
	if t.State != state.Failure {
		return nil
	}
	_, id := fingerprint.OfTask(t)
	f, err := p.group(ctx, id.String())
	if err != nil {
		return nil
	}
	return new(failure(f))
}

// failing returns what fails most now, false if that cannot be read.
func (p *pages) failing(ctx context.Context) ([]templates.Failure, bool) {
	found, err := p.cluster.History().FailureGroups(ctx, history.FailureRequest{
		Resolved: new(false), Busiest: true, Limit: failingNow, Now: p.now(), MaxAge: staleFailures,
	})
	if err != nil {
		p.log.WarnContext(ctx, "list failing tasks", "error", err)
		return nil, false
	}
	var list []templates.Failure
	for _, f := range found.Groups {
		list = append(list, failure(f))
	}
	return list, true
}

func failure(f history.FailureGroup) templates.Failure {
	return templates.Failure{
		ID: f.ID.String(), Name: f.Name,
		Type: f.Fingerprint.Type, Message: f.Fingerprint.Message, Place: f.Fingerprint.Place,
		Example: f.Example, TaskID: f.TaskID, Count: templates.Count(f.Count), LastHour: f.LastHour,
		First: micros(f.FirstAt), Last: micros(f.LastAt), Trend: f.Trend,
		ResolvedAt: micros(f.ResolvedAt), CameBack: f.Recurred(),
	}
}

func (p *pages) failures(w http.ResponseWriter, r *http.Request) {
	q, err := query.ParseFailuresLax(r.URL.Query())
	if err != nil {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{
			Title: "Wrong address", Message: "The parameter " + err.Error() + ".",
			Back: p.site.Prefix + "/failures", BackText: "All failures",
		})
		return
	}
	pg := p.failuresPage(r.Context(), q, 0)
	status := http.StatusOK
	if v, ok := pg.view.(templates.Failures); ok {
		v.JustResolved = p.justResolved(r)
		if v.Unreadable {
			status = http.StatusInternalServerError
		}
		pg.view = v
	}
	p.show(w, r, status, pg)
}

// justResolved returns the group that the request comes from resolving, nil if there is none.
func (p *pages) justResolved(r *http.Request) *templates.Failure {
	f, err := p.group(r.Context(), r.URL.Query().Get(paramResolved))
	if err != nil || !f.Resolved() {
		return nil
	}
	return new(failure(f))
}

func (p *pages) failure(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "id")
	pg, err := p.failurePage(r.Context(), id)
	switch {
	case errors.Is(err, errUnknown):
		p.problem(w, r, http.StatusNotFound, templates.Problem{
			Title:   "Unknown failure",
			Message: "No task that is kept has failed like that. Failures are forgotten with their tasks.",
			Back:    p.site.Prefix + "/failures", BackText: "All failures",
		})
		return
	case err != nil:
		p.unreadable(w, r, err)
		return
	}
	if v, ok := pg.view.(templates.FailureGroup); ok {
		just := p.justResolved(r)
		v.JustResolved = just != nil && just.ID == id
		pg.view = v
	}
	p.show(w, r, http.StatusOK, pg)
}

func (p *pages) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	p.log.WarnContext(r.Context(), "read history", "path", r.URL.Path, "error", err)
	p.problem(w, r, http.StatusInternalServerError, templates.Problem{
		Title:   "The history cannot be read",
		Message: "Umbel’s log says why. The rest of Umbel goes on.",
	})
}

// settle resolves a group, or reopens it, and leads back to where the visitor was.
func (h *Handler) settle(p *pages, resolve bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, ok := fingerprint.ParseID(chi.URLParam(r, "id"))
		if !ok {
			p.notFound(w, r)
			return
		}
		at := time.Time{}
		if resolve {
			at = p.now()
		}
		err := p.cluster.History().ResolveFailureGroup(r.Context(), id, at)
		switch {
		case errors.Is(err, history.ErrNotFound):
			p.notFound(w, r)
		case err != nil:
			p.unreadable(w, r, err)
		default:
			http.Redirect(w, r, settled(h.back(r.FormValue("return")), id, resolve), http.StatusSeeOther)
		}
	}
}

// settled returns an address with word of what was done to a group.
func settled(target string, id fingerprint.ID, resolved bool) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	v := u.Query()
	v.Del(paramResolved)
	if resolved {
		v.Set(paramResolved, id.String())
	}
	u.RawQuery = v.Encode()
	return u.RequestURI()
}
