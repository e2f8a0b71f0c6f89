package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/monitor/view"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

// exportTraceID is the operation that takes an instant as its own parameter.
const exportTraceID = "export-trace"

type exportTrace struct {
	Origin
	Query    string `query:"q" doc:"Query that selects tasks, as of the instant." example:"state:failure"`
	Workflow string `query:"workflow" doc:"ID of a root task: only its workflow."`
	Since    string `query:"since" doc:"Only tasks of which an event was received since then, or that are unfinished: a time, or the seconds since 1970 UTC."`
	Until    string `query:"until" doc:"Instant as of which the trace is: a time, or the seconds since 1970 UTC. Default: now."`
	At       string `query:"at" doc:"Likewise, as other resources have it."`
}

func (a *api) registerTrace(h huma.API) {
	op := operation(h, auth.Export, exportTraceID, "/trace", "Save a trace", notFound, unavailable)
	op.Description = "A file for `umbel serve --trace` and `umbel replay`, with all events of the tasks that had been received by the instant, without " +
		"payloads for those who may not see them. A query, a workflow and a span can be combined. A trace has at most " + strconv.Itoa(trace.MaxTasks) + " tasks."
	delete(op.Responses, strconv.Itoa(http.StatusNotAcceptable))
	op.Responses["200"] = &huma.Response{
		Description: "Lines of JSON, compressed by gzip.",
		Content:     map[string]*huma.MediaType{"application/gzip": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}
	huma.Register(h, op, a.trace)
}

// trace collects the tasks before it sends the header, so that errors have a status.
func (a *api) trace(ctx context.Context, r *exportTrace) (*huma.StreamResponse, error) {
	if a.pasts == nil {
		return nil, problem(http.StatusServiceUnavailable, "This Umbel keeps no events.")
	}
	ticket, err := a.traces.Acquire(ctx, fair.FromContext(ctx)) // each is held in memory
	if err != nil {
		return nil, problem(http.StatusServiceUnavailable, "Another trace is being saved; try again in a moment.")
	}
	send := false
	defer func() {
		if !send {
			ticket.Leave()
		}
	}()
	b, err := a.collect(ctx, r)
	if err != nil {
		return nil, a.failedTrace(ctx, err)
	}
	send = true
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer ticket.Leave()
		hc.SetHeader("Content-Type", "application/gzip")
		hc.SetHeader("Content-Disposition", `attachment; filename="umbel-trace-`+b.Header.Until.Format("20060102T150405Z")+`.jsonl.gz"`)
		if hc.Method() == http.MethodHead {
			return
		}
		_, w := humachi.Unwrap(hc)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(traceTime))
		_, err := b.WriteTo(w)
		a.recordExport(r.http, "save trace", map[string]any{"query": r.http.URL.RawQuery, "tasks": b.Header.Tasks, "payload": !a.hides}, err)
		if err != nil {
			panic(http.ErrAbortHandler) // the client sees that there should have been more
		}
	}}, nil
}

const traceTime = 5 * time.Minute // for a client to take a trace

func (a *api) failedTrace(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, trace.ErrTooLarge):
		return problem(http.StatusBadRequest, "The trace would be too large: ask for fewer tasks or a shorter span.")
	case errors.Is(err, view.ErrFuture):
		return problem(http.StatusBadRequest, "The instant is in the future.")
	}
	return a.failed(ctx, err)
}

// collect reads what a trace holds.
func (a *api) collect(ctx context.Context, r *exportTrace) (*trace.Builder, error) {
	b := &trace.Builder{Header: trace.Header{
		Umbel: a.version, Cluster: a.backend.Health().Broker.URL, MadeAt: a.now().UTC().Truncate(time.Microsecond),
		Query: strings.TrimSpace(r.Query), Workflow: r.Workflow,
	}}
	if a.hides {
		b.Hide = payload.Event
	}
	rules, _ := a.redactor.Status()
	b.Header.Redacted = len(rules) > 0
	at, since, err := a.span(r, b.Header.MadeAt)
	if err != nil {
		return nil, err
	}
	q, err := lang.Parse(b.Header.Query)
	if err != nil {
		return nil, problem(http.StatusBadRequest, "The query is invalid: "+err.Error()+".")
	}
	past, err := a.pasts(ctx, at)
	if err != nil {
		return nil, err
	}
	backend, err := a.past(ctx, at, a.hides)
	if err != nil {
		return nil, err
	}
	var sets [][]string
	if r.Workflow != "" {
		w, err := backend.Workflow(ctx, r.Workflow)
		if errors.Is(err, history.ErrNotFound) {
			return nil, workflowNotFound(r.Workflow)
		}
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(w.Tasks))
		for i := range w.Tasks {
			ids[i] = w.Tasks[i].ID
		}
		sets = append(sets, ids)
	}
	if !since.IsZero() {
		b.Header.Since = &since
		ids, err := past.ChangedSince(ctx, since)
		if err != nil {
			return nil, err
		}
		sets = append(sets, ids)
	}
	if !q.All() || len(sets) == 0 {
		ids, err := matching(ctx, backend, q, at)
		if err != nil {
			return nil, err
		}
		sets = append(sets, ids)
	}
	return b, past.Trace(ctx, b, intersection(sets))
}

// span returns the instant and the beginning that were asked for, zero if there is none.
func (a *api) span(r *exportTrace, now time.Time) (at, since time.Time, err error) {
	parse := func(name, text string) (t time.Time, err error) {
		if t, err = query.ParseInstant(text, now); err != nil {
			err = problem(http.StatusBadRequest, "The parameter "+name+" must be a time such as 2026-09-21T14:03:22.120Z.")
		}
		return t, err
	}
	at, until := now, r.Until
	if r.At != "" {
		if until != "" {
			return at, since, problem(http.StatusBadRequest, "Give at or until, not both.")
		}
		until = r.At
	}
	if until != "" {
		if at, err = parse("until", until); err != nil {
			return at, since, err
		}
	}
	if r.Since == "" {
		return at, since, nil
	}
	if since, err = parse("since", r.Since); err == nil && !since.Before(at) {
		err = problem(http.StatusBadRequest, "The span ends before it begins.")
	}
	return at, since, err
}

// matching returns the ids of the tasks that match a query.
func matching(ctx context.Context, b Backend, q lang.Query, at time.Time) (ids []string, err error) {
	r := history.TaskRequest{Query: q, Limit: exportPage, Now: at}
	for {
		page, err := func() (history.TaskPage, error) {
			ctx, cancel := context.WithTimeout(ctx, readTimeout)
			defer cancel()
			return b.Tasks(ctx, r)
		}()
		if err != nil {
			return nil, err
		}
		for i := range page.Tasks {
			ids = append(ids, page.Tasks[i].ID)
		}
		if len(ids) > trace.MaxTasks {
			return nil, trace.ErrTooLarge
		}
		if r.From = page.Next; r.From == nil {
			return ids, nil
		}
	}
}

// intersection returns what is in all sets, in the order of the first.
func intersection(sets [][]string) []string {
	all := sets[0]
	for _, other := range sets[1:] {
		in := make(map[string]bool, len(other))
		for _, id := range other {
			in[id] = true
		}
		var both []string
		for _, id := range all {
			if in[id] {
				both = append(both, id)
			}
		}
		all = both
	}
	return all
}
