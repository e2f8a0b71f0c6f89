package web

import (
	"context"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/fair"
)

// Backend is what the pages read.
type Backend interface {
	View(f func(c state.View))
	Changed() <-chan struct{}
	Health() view.Health
	Rates() view.Rates
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Task(ctx context.Context, id string) (state.Task, error)
	TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error)
	Count(ctx context.Context, q query.Query) (history.Count, error)
	Duplicates(ctx context.Context, r history.DuplicateRequest) (view.DuplicatePage, error)
	DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (view.DuplicateGroup, error)
	Workflow(ctx context.Context, root string) (workflow.Workflow, error)
	Workflows(ctx context.Context, r history.WorkflowRequest) (history.WorkflowPage, error)
	History() view.History
}

// unhurried counts to the end: a page of a trace shows the same on a slow machine.
type unhurried struct{ Backend }

// Count is that of the backend, however long its caller would wait.
func (u unhurried) Count(ctx context.Context, q query.Query) (history.Count, error) {
	return u.Backend.Count(context.WithoutCancel(ctx), q)
}

// searchSlots is how many searches of the history run at once. It reads on more connections than that, so that what
// needs no search always finds one.
const searchSlots = 4

// fairBackend is a backend whose slow questions, from pages, live topics and the API alike, wait for a slot of their client.
type fairBackend struct {
	Backend
	slots *fair.Slots
}

func newFairBackend(b Backend) fairBackend { return fairBackend{b, fair.New(searchSlots)} }

// Tasks is that of the backend.
func (s fairBackend) Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error) {
	leave, err := s.enter(ctx, r.Query, r.Sort != query.Sort{})
	if err != nil {
		return history.TaskPage{}, err
	}
	defer leave()
	return s.Backend.Tasks(ctx, r)
}

// Count is that of the backend.
func (s fairBackend) Count(ctx context.Context, q query.Query) (history.Count, error) {
	leave, err := s.enter(ctx, q, false)
	if err != nil {
		return history.Count{}, err
	}
	defer leave()
	return s.Backend.Count(ctx, q)
}

// enter waits for a slot, unless memory or an index suffices.
func (s fairBackend) enter(ctx context.Context, q query.Query, sorted bool) (leave func(), err error) {
	if _, simple := q.Simple(); simple && !sorted {
		return func() {}, nil
	}
	ticket, err := s.slots.Acquire(ctx, fair.FromContext(ctx))
	if err != nil { // of the context too: it waited for other searches of this client
		return nil, fmt.Errorf("wait to search: %w", errors.Join(fair.ErrBusy, err))
	}
	return ticket.Leave, nil
}
