package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

const (
	reconcileEvery = 5 * time.Second
	stabilizeTime  = 30 * time.Second // after connecting: until then, events sent meanwhile may still arrive
)

// ErrFinished reports that a task has ended and cannot be dismissed.
var ErrFinished = errors.New("the task has ended")

// reconcile concludes every 5 s which unfinished tasks are lost, and reports whether anything has changed. mu is held.
func (in *Ingester) reconcile(now, connected time.Time) bool {
	if now.Sub(connected) < stabilizeTime || now.Sub(in.reconciled).Abs() < reconcileEvery {
		return false
	}
	in.reconciled = now
	in.reconciliation = in.cluster.Reconcile(now.UnixMicro())
	return in.reconciliation.Changed
}

// Reconciliation returns the newest reconciliation of unfinished tasks, empty while events may be missing. Its lists must
// not be changed.
func (in *Ingester) Reconciliation() state.Reconciliation {
	in.healthMu.Lock()
	stable := in.brokerHealth.Connected && in.now().Sub(in.brokerHealth.Since) >= stabilizeTime
	in.healthMu.Unlock()
	if !stable || !in.leads.Load() {
		return state.Reconciliation{}
	}
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.reconciliation
}

// ApplyInspection applies what a worker has replied.
func (in *Ingester) ApplyInspection(i state.Inspection) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cluster.ApplyInspection(i)
	in.notify()
}

// Conclude records a conclusion on an unfinished task, unless the task has changed since u was returned.
func (in *Ingester) Conclude(u state.UncertainTask, k state.Conclusion) {
	in.mu.Lock()
	defer in.mu.Unlock()
	k.At = in.now().UnixMicro()
	if t, ok := in.cluster.Task(u.ID); ok && t.Stamp == u.Stamp && in.cluster.Conclude(u.ID, k) {
		in.notify()
	}
}

// Dismiss records that a person does not expect an unfinished task to end; who may be empty. It returns
// history.ErrNotFound for a task that is not retained, and ErrFinished for one that has ended.
func (in *Ingester) Dismiss(ctx context.Context, id, who string) error {
	return in.judge(ctx, history.NodeRequest{Task: id, Dismiss: true, Who: who})
}

// Reinstate undoes Dismiss. Its errors are the same.
func (in *Ingester) Reinstate(ctx context.Context, id string) error {
	return in.judge(ctx, history.NodeRequest{Task: id})
}

// judge records what a person thinks of a task. Of several nodes, the one that leads saves it: another one asks that for it, and shows
// it meanwhile.
func (in *Ingester) judge(ctx context.Context, r history.NodeRequest) error {
	if in.counts() || !in.restored.Load() {
		return in.changeUnfinished(ctx, r, nil)
	}
	return in.changeUnfinished(ctx, r, func() error { return in.shared.Ask(ctx, r) })
}

// changeUnfinished applies what a person thinks of a task if that is unfinished, after loading it if it is not in memory, and after
// calling before, if that is not nil.
func (in *Ingester) changeUnfinished(ctx context.Context, r history.NodeRequest, before func() error) error {
	in.mu.RLock()
	t, inMemory := in.cluster.Task(r.Task)
	in.mu.RUnlock()
	var saved []byte
	if !inMemory {
		var err error
		if saved, err = in.store.Task(ctx, r.Task); err != nil {
			return err
		}
	}
	if inMemory && t.State.Final() {
		return ErrFinished
	}
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if saved != nil {
		if err := in.cluster.Load(r.Task, saved); err != nil {
			return err
		}
	}
	t, ok := in.cluster.Task(r.Task)
	switch {
	case !ok || t.State.Final():
		return ErrFinished
	case r.Dismiss:
		in.cluster.Conclude(r.Task, state.Conclusion{Reason: state.ReasonDismissed, Evidence: r.Who, At: in.now().UnixMicro()})
	case t.Dismissed != nil:
		in.cluster.Reopen(r.Task)
	}
	in.notify()
	return nil
}
