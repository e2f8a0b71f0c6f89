package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
)

// Dismisser records that people do not expect unfinished tasks to end: an ingest.Ingester. Both methods return
// history.ErrNotFound for a task that is not retained, and ingest.ErrFinished for one that has ended.
type Dismisser interface {
	Dismiss(ctx context.Context, id, who string) error
	Reinstate(ctx context.Context, id string) error
}

// Dismiss records that a person does not expect an unfinished task to end. The error is an *Error if the task is not retained
// or has ended.
func (s *Service) Dismiss(ctx context.Context, caller Caller, id string) error {
	return s.changeUnfinished(ctx, caller, "dismiss", id, func() error { return s.dismisser.Dismiss(ctx, id, caller.Actor) })
}

// Reinstate undoes Dismiss. Its errors are the same.
func (s *Service) Reinstate(ctx context.Context, caller Caller, id string) error {
	return s.changeUnfinished(ctx, caller, "reinstate", id, func() error { return s.dismisser.Reinstate(ctx, id) })
}

// changeUnfinished calls f for an unfinished task. It writes the audit record first: nothing is done without one.
func (s *Service) changeUnfinished(ctx context.Context, caller Caller, action, id string, f func() error) error {
	if err := s.Dismissible(ctx, id); err != nil {
		return err
	}
	if err := s.record(ctx, caller, action, "task "+id, nil); err != nil {
		return err
	}
	return dismissError(f())
}

// Dismissible returns why a task cannot be dismissed or reinstated, as an *Error, nil if it can.
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

// dismissError turns an error of a Dismisser into one for the caller.
func dismissError(err error) error {
	switch {
	case errors.Is(err, history.ErrNotFound):
		return &Error{Kind: NotFound, Message: "the task is not retained"}
	case errors.Is(err, ingest.ErrFinished):
		return &Error{Kind: Conflict, Message: "the task has ended: only an unfinished one can be dismissed"}
	case err != nil:
		return fmt.Errorf("judge task: %w", err)
	}
	return nil
}

// record writes the audit record of a request that needs no command.
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
