package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// RetriedTask is a task that retries another one by a request to Umbel.
type RetriedTask struct {
	ID string
	At time.Time // of the request
	By string    // user, empty if unknown
}

// Retries returns the tasks that retry t, newest first. It looks at the newest 20 children of t.
func (s *Service) Retries(ctx context.Context, t *state.Task) ([]RetriedTask, error) {
	children := t.Children[max(len(t.Children)-maxChildren, 0):]
	if len(children) == 0 {
		return nil, nil
	}
	published, err := s.outbox.TasksWithCommands(ctx, kindTask, children)
	if err != nil {
		return nil, fmt.Errorf("look for retries: %w", err)
	}
	var found []RetriedTask
	for _, id := range published {
		commands, _, err := s.outbox.Commands(ctx, history.CommandFilter{TaskID: id, Kind: kindTask, Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("look for retries: %w", err)
		}
		var p taskPayload
		if len(commands) > 0 && decode(commands[0], &p) == nil && p.RetryOf == t.ID {
			found = append(found, RetriedTask{ID: id, At: commands[0].CreatedAt, By: commands[0].Actor})
		}
	}
	slices.SortFunc(found, func(a, b RetriedTask) int { return b.At.Compare(a.At) })
	return found, nil
}

// warnRetried warns if a task has been retried before.
func (s *Service) warnRetried(ctx context.Context, t *state.Task, list *warnings) error {
	retries, err := s.Retries(ctx, t)
	if err != nil || len(retries) == 0 {
		return err
	}
	newest, now := retries[0], "of which no event has been received yet"
	if again, err := s.tasks.Task(ctx, newest.ID); err == nil {
		now = "which is in state " + string(again.State)
	}
	list.warn(true, "Retried before, at %s UTC, as task %s, %s.", newest.At.UTC().Format("2006-01-02 15:04:05"), newest.ID, now)
	return nil
}

// retriedBefore returns how many of some tasks have been retried before. It looks at the newest 500 children of each 500.
func (s *Service) retriedBefore(ctx context.Context, ids []string) (int, error) {
	retried := make(map[string]bool)
	for parents := range slices.Chunk(ids, pageSize) {
		q := query.New(query.Equal(query.Parent, parents...))
		page, err := s.tasks.Tasks(ctx, history.TaskRequest{Query: q, Limit: pageSize, Now: s.now()})
		if err != nil {
			return 0, fmt.Errorf("look for retries: %w", err)
		}
		children := make([]string, len(page.Tasks))
		for i := range page.Tasks {
			children[i] = page.Tasks[i].ID
		}
		published, err := s.outbox.TasksWithCommands(ctx, kindTask, children)
		if err != nil {
			return 0, fmt.Errorf("look for retries: %w", err)
		}
		for _, id := range published {
			if p, ok := s.published(ctx, id); ok && p.RetryOf != "" {
				retried[p.RetryOf] = true
			}
		}
	}
	return len(retried), nil
}
