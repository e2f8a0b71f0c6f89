package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	stored "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

const (
	failingNow     = 5               // groups on the overview
	newestFailures = 10              // tasks on the page of a group
	failuresAge    = 5 * time.Second // how old the counts of groups may be
	paramResolved  = "resolved"      // of a page after a group was resolved: its id

	maxSplitsCached = 32
)

// failurePages are the pages of groups of failures.
type failurePages struct {
	*common

	splits *cache[tasktype.Split] // by group
}

func newFailurePages(c *common) *failurePages {
	p := &failurePages{c, newCache[tasktype.Split](sampleAge)}
	p.splits.most = maxSplitsCached
	return p
}

// load lists groups. What cannot be read is said on the page.
func (p *failurePages) load(ctx context.Context, a address) (page, error) {
	q, err := query.ParseFailures(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "All failures", Href: p.urls.Prefix + "/failures"})
	}
	path := p.urls.Prefix + "/failures"
	v := templates.Failures{Assignee: q.Assignee, Since: p.hourAgo(), Show: q.Show, Self: q.URL(path), JustResolved: p.justResolved(ctx, a)}
	pg := page{url: q.URL("/failures"), title: "Failures", section: templates.SectionFailures}
	if v.Show == "" {
		v.Show = query.ShowOpen
	}
	found, err := p.backend.History().FailureGroups(ctx, q.Request(p.now(), failuresAge))
	if err != nil {
		p.log.WarnContext(ctx, "list failures", "error", err)
		v.Unreadable, pg.status = true, http.StatusServiceUnavailable
	}
	v.Span, v.SpanQuery = p.span(q.Span, func(s query.Span) string {
		other := q
		other.Span, other.After = s, nil
		return other.URL(path)
	})
	v.Groups, v.Open, v.Resolved = found.Groups, found.Open, found.Resolved
	v.Before = p.precedents(ctx, found.Groups...)
	if q.After != nil {
		first := q
		first.After = nil
		v.Newest = first.URL(path)
	}
	if found.Next != nil {
		q.After = found.Next
		v.Older = q.URL(path)
	}
	pg.view = v
	return pg, nil
}

// span is a span of time as pages show it, nil if there is none, and its parameters. link makes the address of the page with
// another one.
func (p *failurePages) span(s query.Span, link func(query.Span) string) (span *templates.ChartSpan, params string) {
	if !s.Chosen() {
		return nil, ""
	}
	return &templates.ChartSpan{From: s.From * 1e6, To: s.To * 1e6, Href: link(query.Span{})}, query.SpanOf(link(s))
}

// hourAgo is when the last hour began, to the minute, so that links to it do not change all the time.
func (p *failurePages) hourAgo() int64 {
	return p.now().Add(-time.Hour).Truncate(time.Minute).UnixMicro()
}

// loadGroup shows one group.
func (p *failurePages) loadGroup(ctx context.Context, a address) (page, error) {
	id := a.name
	span, _ := query.ParseSpan(a.query) // a wrong one shows all times
	address := func(s query.Span) string { return query.Chart{Span: s}.URL(templates.FailurePath(id)) }
	f, err := p.group(ctx, id, span)
	if errors.Is(err, history.ErrNotFound) {
		return page{}, unknown(templates.Problem{
			Title:   "Unknown failure",
			Message: "No retained task failed this way. Failure groups are removed with their tasks.",
			Back:    p.urls.Prefix + "/failures", BackText: "All failures",
		})
	}
	if err != nil {
		return page{}, err
	}
	v := templates.FailureGroup{Group: f, Since: p.hourAgo(), Self: p.urls.Prefix + address(span)}
	v.Span, v.SpanQuery = p.span(span, func(s query.Span) string { return p.urls.Prefix + address(s) })
	v.Before = p.precedents(ctx, f)[f.ID]
	just := p.justResolved(ctx, a)
	v.JustResolved = just != nil && just.ID == f.ID
	q, err := stored.Parse("failure:" + id)
	if err != nil {
		return page{}, err
	}
	q = q.And(span.Finished())
	var reading errgroup.Group
	reading.Go(func() error {
		newest, err := p.backend.Task(ctx, f.TaskID)
		if err == nil {
			v.Exception, v.Traceback = newest.Exception, newest.Traceback
		} else if errors.Is(err, history.ErrNotFound) {
			err = nil
		}
		return err
	})
	reading.Go(func() error {
		found, err := p.backend.Tasks(ctx, history.TaskRequest{Query: q, Limit: newestFailures, Now: p.now()})
		v.Tasks = found.Tasks
		return err
	})
	reading.Go(func() (err error) {
		v.Split, err = p.splits.get(address(span), func() (tasktype.Split, error) {
			return tasktype.ReadSplit(ctx, p.backend, q, f.Name, p.now())
		})
		return err
	})
	if err := reading.Wait(); err != nil {
		return page{}, err
	}
	return page{
		url: address(span), title: f.Fingerprint.Type,
		section: templates.SectionFailures, view: v,
	}, nil
}

// group returns the group of an id as of now, with what it counts in a span of time; history.ErrNotFound if there is none.
func (p *failurePages) group(ctx context.Context, id string, span query.Span) (history.FailureGroup, error) {
	key, ok := fingerprint.ParseID(id)
	if !ok {
		return history.FailureGroup{}, history.ErrNotFound
	}
	from, to := span.Times()
	return history.FailureGroupWithin(ctx, p.backend.History(), key, from, to, p.now())
}

// of returns the group that a failed task is in, nil if there is none.
func (p *failurePages) of(ctx context.Context, t *state.Task) *history.FailureGroup {
	if t.State != state.Failure {
		return nil
	}
	_, id := fingerprint.OfTask(t)
	f, err := p.group(ctx, id.String(), query.Span{})
	if err != nil {
		return nil
	}
	return &f
}

// failing returns what fails most now, false if that cannot be read.
func (p *failurePages) failing(ctx context.Context) ([]history.FailureGroup, bool) {
	found, err := p.backend.History().FailureGroups(ctx, history.FailureRequest{
		Resolved: new(false), Busiest: true, Limit: failingNow, Now: p.now(), MaxAge: failuresAge,
	})
	if err != nil {
		p.log.WarnContext(ctx, "list failing tasks", "error", err)
		return nil, false
	}
	return found.Groups, true
}

// justResolved returns the group that a visitor has just resolved, nil if there is none.
func (p *failurePages) justResolved(ctx context.Context, a address) *history.FailureGroup {
	if !a.query.Has(paramResolved) {
		return nil
	}
	f, err := p.group(ctx, a.query.Get(paramResolved), query.Span{})
	if err != nil || !f.Resolved() {
		return nil
	}
	return &f
}
