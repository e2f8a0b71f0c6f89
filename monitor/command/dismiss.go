package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor"
	"github.com/umbelhq/umbel/monitor/history"
)

// Dismisser notes that people do not expect unfinished tasks to end. Both return history.ErrNotFound for a task that is not
// kept, and monitor.ErrFinished for one that has ended.
type Dismisser interface {
	Dismiss(ctx context.Context, id, who string) error
	Reinstate(ctx context.Context, id string) error
}

// Dismiss notes that an unfinished task will not end, as far as a person knows. The error is an *Error for a task that is
// not kept, or has ended.
func (d *Desk) Dismiss(ctx context.Context, by By, id string) error {
	return d.judge(ctx, by, "dismiss", id, func() error { return d.dismisser.Dismiss(ctx, id, by.Actor) })
}

// Reinstate takes back what Dismiss did, with the same errors.
func (d *Desk) Reinstate(ctx context.Context, by By, id string) error {
	return d.judge(ctx, by, "reinstate", id, func() error { return d.dismisser.Reinstate(ctx, id) })
}

// judge calls f for an unfinished task. It writes the audit record first: nothing is done that is not written down.
func (d *Desk) judge(ctx context.Context, by By, action, id string, f func() error) error {
	if err := d.Dismissible(ctx, id); err != nil {
		return err
	}
	if err := d.record(ctx, by, action, "task "+id, nil); err != nil {
		return err
	}
	return judged(f())
}

// Dismissible says why a task cannot be dismissed or reinstated, as an *Error; nil if it can.
func (d *Desk) Dismissible(ctx context.Context, id string) error {
	if d.dismisser == nil {
		return &Error{Kind: Conflict, Message: "tasks cannot be dismissed here"}
	}
	t, err := d.tasks.Task(ctx, id)
	if err == nil && t.State.Final() {
		err = monitor.ErrFinished
	}
	return judged(err)
}

// judged says what became of a task in the meantime.
func judged(err error) error {
	switch {
	case errors.Is(err, history.ErrNotFound):
		return &Error{Kind: Unknown, Message: "the task is not kept"}
	case errors.Is(err, monitor.ErrFinished):
		return &Error{Kind: Conflict, Message: "the task has ended: only an unfinished one can be dismissed"}
	case err != nil:
		return fmt.Errorf("judge task: %w", err)
	}
	return nil
}

// record writes down what somebody does that needs no command.
func (d *Desk) record(ctx context.Context, by By, action, target string, detail any) error {
	audit, err := d.audit(by, d.now(), action, target, detail)
	if err == nil {
		err = d.outbox.AppendAudit(ctx, audit)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, target, err)
	}
	return nil
}
