package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
)

// Dismisser notes that people do not expect unfinished tasks to end. Both return history.ErrNotFound for a task that is not
// kept, and monitor.ErrFinished for one that has ended.
type Dismisser interface {
	Dismiss(ctx context.Context, id, who string) error
	Reinstate(ctx context.Context, id string) error
}

// Dismiss notes that an unfinished task will not end, as far as a person knows. The error is an *Error for a task that is
// not kept, or has ended.
func (s *Service) Dismiss(ctx context.Context, caller Caller, id string) error {
	return s.changeUnfinished(ctx, caller, "dismiss", id, func() error { return s.dismisser.Dismiss(ctx, id, caller.Actor) })
}

// Reinstate takes back what Dismiss did, with the same errors.
func (s *Service) Reinstate(ctx context.Context, caller Caller, id string) error {
	return s.changeUnfinished(ctx, caller, "reinstate", id, func() error { return s.dismisser.Reinstate(ctx, id) })
}

// judge calls f for an unfinished task. It writes the audit record first: nothing is done that is not written down.
func (s *Service) changeUnfinished(ctx context.Context, caller Caller, action, id string, f func() error) error {
	if err := s.Dismissible(ctx, id); err != nil {
		return err
	}
	if err := s.record(ctx, caller, action, "task "+id, nil); err != nil {
		return err
	}
	return dismissError(f())
}

// Dismissible says why a task cannot be dismissed or reinstated, as an *Error; nil if it can.
func (s *Service) Dismissible(ctx context.Context, id string) error {
	if s.dismisser == nil {
		return &Error{Kind: Conflict, Message: "tasks cannot be dismissed here"}
	}
	t, err := s.tasks.Task(ctx, id)
	if err == nil && t.State.Final() {
		err = ingest.ErrFinished
	}
	return dismissError(err)
}

// judged says what became of a task in the meantime.
func dismissError(err error) error {
	switch {
	case errors.Is(err, history.ErrNotFound):
		return &Error{Kind: NotFound, Message: "the task is not kept"}
	case errors.Is(err, ingest.ErrFinished):
		return &Error{Kind: Conflict, Message: "the task has ended: only an unfinished one can be dismissed"}
	case err != nil:
		return fmt.Errorf("judge task: %w", err)
	}
	return nil
}

// record writes down what somebody does that needs no command.
func (s *Service) record(ctx context.Context, caller Caller, action, target string, detail any) error {
	audit, err := s.audit(caller, s.now(), action, target, detail)
	if err == nil {
		err = s.outbox.AppendAudit(ctx, audit)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, target, err)
	}
	return nil
}
