package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/state"
)

const (
	reconcileEvery = 5 * time.Second
	stabilizeTime  = 30 * time.Second // after a connection: until then, what was sent meanwhile is on its way
)

// ErrFinished is returned for a task that has ended, and that nobody needs to dismiss.
var ErrFinished = errors.New("the task has ended")

// reconcile concludes which unfinished tasks have come to an end unseen, now and then. mu is held. It reports whether
// anything has changed.
func (m *Ingester) reconcile(now, connected time.Time) bool {
	if now.Sub(connected) < stabilizeTime || now.Sub(m.reconciled).Abs() < reconcileEvery {
		return false
	}
	m.reconciled = now
	m.review = m.cluster.Reconcile(now.UnixMicro())
	return m.review.Changed
}

// Review returns what the newest look at unfinished tasks has found, nothing while events may be missing. Its lists must
// not be changed.
func (m *Ingester) Review() state.Reconciliation {
	m.healthMu.Lock()
	settled := m.brokerHealth.Connected && m.now().Sub(m.brokerHealth.Since) >= stabilizeTime
	m.healthMu.Unlock()
	if !settled {
		return state.Reconciliation{}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.review
}

// Inspected takes in what a worker has answered.
func (m *Ingester) Inspected(i state.Inspection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cluster.ApplyInspection(i)
	m.notify()
}

// Conclude notes a conclusion on an unfinished task, unless an event of it has come since u was told.
func (m *Ingester) Conclude(u state.UncertainTask, k state.Conclusion) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k.At = m.now().UnixMicro()
	if t, ok := m.cluster.Task(u.ID); ok && t.Stamp == u.Stamp && m.cluster.Conclude(u.ID, k) {
		m.notify()
	}
}

// Dismiss notes that a person does not expect an unfinished task to end; who may be empty. It returns
// history.ErrNotFound for a task that is not kept, and ErrFinished for one that has ended.
func (m *Ingester) Dismiss(ctx context.Context, id, who string) error {
	return m.changeUnfinished(ctx, id, func(c *state.Cluster, now int64) {
		c.Conclude(id, state.Conclusion{Reason: state.ReasonDismissed, Evidence: who, At: now})
	})
}

// Reinstate takes back what Dismiss did, with the same errors.
func (m *Ingester) Reinstate(ctx context.Context, id string) error {
	return m.changeUnfinished(ctx, id, func(c *state.Cluster, _ int64) {
		if t, _ := c.Task(id); t.Dismissed != nil {
			c.Reopen(id)
		}
	})
}

// judge calls f if the task is unfinished. One that memory does not hold is read back first.
func (m *Ingester) changeUnfinished(ctx context.Context, id string, f func(c *state.Cluster, now int64)) error {
	m.mu.RLock()
	_, held := m.cluster.Task(id)
	m.mu.RUnlock()
	var saved []byte
	if !held {
		var err error
		if saved, err = m.store.Task(ctx, id); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if saved != nil {
		if err := m.cluster.Load(id, saved); err != nil {
			return err
		}
	}
	if t, ok := m.cluster.Task(id); !ok || t.State.Final() {
		return ErrFinished
	}
	f(m.cluster, m.now().UnixMicro())
	m.notify()
	return nil
}
