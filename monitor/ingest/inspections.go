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
	askEvery  = time.Minute      // a worker, at most
	askAtOnce = 8                // workers, and tasks of the backend
	lookEvery = 10 * time.Minute // at a task in the backend that has no end there, at most
	lookAgain = time.Minute      // at one that has, since its event may be on its way
	maxLooks  = 10_000           // tasks that are remembered to have been looked at
	lookFor   = 5 * time.Second  // at one
)

// Reconciler asks workers and the result backend about unfinished tasks, and has the Ingester conclude which of them will
// not end.
type Reconciler struct {
	ingester  *Ingester
	inspector *remote.Inspector // nil if workers are not asked
	results   results.Backend   // nil if there is none
	now       func() time.Time

	// What follows belongs to the goroutine of Run.
	asked map[string]time.Time // by worker
	looks map[string]look      // by task
}

// NewReconciler starts nothing. A nil inspector asks no worker, nil results no result backend.
func NewReconciler(in *Ingester, inspector *remote.Inspector, backend results.Backend) *Reconciler {
	return &Reconciler{ingester: in, inspector: inspector, results: backend, now: in.now}
}

// look is what the result backend said of a task.
type look struct {
	state.UncertainTask
	at     time.Time
	status string // empty if it knows no end
}

// Run asks until ctx ends. It returns nil.
func (r *Reconciler) Run(ctx context.Context) error {
	r.asked, r.looks = make(map[string]time.Time), make(map[string]look)
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		review := r.ingester.Reconciliation()
		if r.inspector != nil {
			r.ask(ctx, review.Inspect)
		}
		if r.results != nil {
			r.look(ctx, review.Uncertain)
		}
	}
}

// ask asks workers what they hold, unless they have been asked lately.
func (r *Reconciler) ask(ctx context.Context, names []string) {
	now := r.now()
	maps.DeleteFunc(r.asked, func(_ string, at time.Time) bool { return now.Sub(at) >= askEvery })
	var g errgroup.Group
	g.SetLimit(askAtOnce)
	for _, name := range names {
		if _, lately := r.asked[name]; lately {
			if i, ok := holding(r.inspector.Peek(name)); ok { // perhaps somebody else has asked
				r.ingester.ApplyInspection(i)
			}
			continue
		}
		r.asked[name] = now
		g.Go(func() error {
			if i, ok := holding(r.inspector.Inspect(ctx, name)); ok {
				r.ingester.ApplyInspection(i)
			}
			return nil
		})
	}
	_ = g.Wait() // never fails
}

// holding returns what a worker holds, false if it has not told all of that in its newest round of answers.
func holding(i remote.Inspection) (state.Inspection, bool) {
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

// look asks the result backend about tasks. Where it knows the end of one that may still wait, it must say so twice: the
// event comes after the result.
func (r *Reconciler) look(ctx context.Context, unsure []state.UncertainTask) {
	now := r.now()
	maps.DeleteFunc(r.looks, func(_ string, l look) bool { return now.Sub(l.at) >= lookEvery })
	var due []look
	for _, u := range unsure {
		before, known := r.looks[u.ID]
		if known && (before.status == "" || now.Sub(before.at) < lookAgain) || len(r.looks)+len(due) >= maxLooks {
			continue
		}
		due = append(due, look{UncertainTask: u, at: now})
	}
	var g errgroup.Group
	g.SetLimit(askAtOnce)
	for n := range due {
		g.Go(func() error {
			due[n].status = r.status(ctx, due[n].ID)
			return nil
		})
	}
	_ = g.Wait() // never fails
	for _, l := range due {
		before := r.looks[l.ID]
		if r.looks[l.ID] = l; l.status == "" {
			continue
		}
		if l.Lost || before.status == l.status && before.Stamp == l.Stamp {
			r.ingester.Conclude(l.UncertainTask, state.Conclusion{Reason: state.ReasonBackend, Evidence: "the result backend says " + l.status})
		}
	}
}

// status returns how a task has ended by the result backend, empty if that does not know.
func (r *Reconciler) status(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	found, err := r.results.Result(ctx, id)
	if err != nil || !slices.Contains([]string{"SUCCESS", "FAILURE", "REVOKED"}, found.Status) {
		return ""
	}
	return found.Status
}
