package monitor

import (
	"context"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Tasks returns a page of all tasks that are kept, in memory or in the store.
func (m *Monitor) Tasks(ctx context.Context, r store.Request) (store.Page, error) { panic("todo") }

// Task returns a copy of the task, store.ErrMissing if it is not kept.
func (m *Monitor) Task(ctx context.Context, id string) (state.Task, error) { panic("todo") }

// TaskEvents returns the events of a task by stamp, store.ErrMissing if it is not kept.
func (m *Monitor) TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error) { panic("todo") }

// Count returns how many tasks match, exactly up to 10,000. It may be 10 s old.
func (m *Monitor) Count(ctx context.Context, q query.Query) (store.Count, error) { panic("todo") }

// Store returns where history is kept.
func (m *Monitor) Store() store.Store { panic("todo") }
