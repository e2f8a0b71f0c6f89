package ingest

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
)

const (
	inspectEvery  = time.Minute      // per worker
	inspectAtOnce = 8                // workers, and results
	lookupEvery   = 10 * time.Minute // per task whose result is unknown
	lookupAgain   = time.Minute      // per task with a result, whose event may still arrive
	maxLookups    = 10_000           // results remembered
	lookupTimeout = 5 * time.Second  // per result
)

// Reconciler inspects workers, if this process leads, and reads the result backend for unfinished tasks, and has the Ingester conclude which of them will
// not end.
type Reconciler struct {
	ingester  *Ingester
	inspector *remote.Inspector // nil if workers are not inspected
	results   results.Backend   // nil if there is none
	now       func() time.Time

	// Owned by the goroutine of Run.
	inspected map[string]time.Time // by worker
	lookups   map[string]lookup    // by task
}

// NewReconciler starts nothing. With a nil inspector it inspects no worker, with a nil backend it looks up no result.
func NewReconciler(in *Ingester, inspector *remote.Inspector, backend results.Backend) *Reconciler {
	return &Reconciler{ingester: in, inspector: inspector, results: backend, now: in.now}
}

// lookup is the status of a task in the result backend.
type lookup struct {
	state.UncertainTask
	at     time.Time
	status string // empty if it has not ended
}

// Run inspects and looks up until ctx ends. It returns nil.
func (r *Reconciler) Run(ctx context.Context) error {
	r.inspected, r.lookups = make(map[string]time.Time), make(map[string]lookup)
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		found := r.ingester.Reconciliation()
		switch {
		case r.inspector == nil:
		case r.ingester.leader.Leads():
			r.inspect(ctx, found.Inspect)
		default:
			r.peek(found.Inspect)
		}
		if r.results != nil {
			r.lookUp(ctx, found.Uncertain)
		}
	}
}

// inspect inspects workers, unless they were inspected within a minute.
func (r *Reconciler) inspect(ctx context.Context, names []string) {
	now := r.now()
	maps.DeleteFunc(r.inspected, func(_ string, at time.Time) bool { return now.Sub(at) >= inspectEvery })
	var g errgroup.Group
	g.SetLimit(inspectAtOnce)
	for _, name := range names {
		if _, lately := r.inspected[name]; lately {
			if i, ok := inspectionOf(r.inspector.Peek(name)); ok { // perhaps inspected for another reason
				r.ingester.ApplyInspection(i)
			}
			continue
		}
		r.inspected[name] = now
		g.Go(func() error {
			if i, ok := inspectionOf(r.inspector.Inspect(ctx, name)); ok {
				r.ingester.ApplyInspection(i)
			}
			return nil
		})
	}
	_ = g.Wait() // never fails
}

// peek uses inspections that were made for another reason, such as a page that shows the worker.
func (r *Reconciler) peek(names []string) {
	for _, name := range names {
		if i, ok := inspectionOf(r.inspector.Peek(name)); ok {
			r.ingester.ApplyInspection(i)
		}
	}
}

// inspectionOf returns the inspection as state uses it, false if the newest round of replies is incomplete.
func inspectionOf(i remote.Inspection) (state.Inspection, bool) {
	for method, n := range map[string]int{
		"active": len(i.Active), "reserved": len(i.Reserved), "scheduled": len(i.Scheduled), "registered": len(i.Registered),
		"stats": i.Totals["stats"], "clock": i.Totals["clock"],
	} {
		if at := i.Times[method]; i.RequestedAt.IsZero() || at.Before(i.RequestedAt) || i.Errors[method] != "" || n != i.Totals[method] {
			return state.Inspection{}, false
		}
	}
	if i.Stats == nil || i.Clock == nil {
		return state.Inspection{}, false
	}
	h := state.Inspection{
		Worker: i.Node, PID: i.Stats.PID, Clock: *i.Clock, RequestedAt: i.RequestedAt.UnixMicro(), RepliedAt: i.At.UnixMicro(),
	}
	for _, q := range i.Active {
		h.Active = append(h.Active, q.ID)
	}
	for _, q := range i.Reserved {
		h.Reserved = append(h.Reserved, q.ID)
	}
	for _, s := range i.Scheduled {
		h.Reserved = append(h.Reserved, s.Task.ID)
	}
	for _, t := range i.Registered {
		if limit := t.Info["rate_limit"]; limit != "" && limit != "None" && limit != "0" {
			h.RateLimited = append(h.RateLimited, t.Name)
		}
	}
	return h, true
}

// lookUp reads the results of tasks. A task that may still be waiting must have a result twice, since its event follows the
// result.
func (r *Reconciler) lookUp(ctx context.Context, uncertain []state.UncertainTask) {
	now := r.now()
	maps.DeleteFunc(r.lookups, func(_ string, l lookup) bool { return now.Sub(l.at) >= lookupEvery })
	var due []lookup
	for _, u := range uncertain {
		before, known := r.lookups[u.ID]
		if known && (before.status == "" || now.Sub(before.at) < lookupAgain) || len(r.lookups)+len(due) >= maxLookups {
			continue
		}
		due = append(due, lookup{UncertainTask: u, at: now})
	}
	var g errgroup.Group
	g.SetLimit(inspectAtOnce)
	for n := range due {
		g.Go(func() error {
			due[n].status = r.status(ctx, due[n].ID)
			return nil
		})
	}
	_ = g.Wait() // never fails
	for _, l := range due {
		before := r.lookups[l.ID]
		if r.lookups[l.ID] = l; l.status == "" {
			continue
		}
		if l.Lost || before.status == l.status && before.Stamp == l.Stamp {
			r.ingester.Conclude(l.UncertainTask, state.Conclusion{Reason: state.ReasonBackend, Evidence: "the result backend says " + l.status})
		}
	}
}

// status returns the final status of a task in the result backend, empty if there is none.
func (r *Reconciler) status(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := r.results.Result(ctx, id)
	if err != nil || !slices.Contains([]string{"SUCCESS", "FAILURE", "REVOKED"}, found.Status) {
		return ""
	}
	return found.Status
}
