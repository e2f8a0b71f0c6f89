package command_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// drains has a worker end what it holds and take nothing more, across a restart of Umbel, undoes that, and drains it to
// shut it down.
func drains(t *testing.T, c *cluster) {
	t.Helper()
	const worker = "one@test"
	running, reserved := newGate(t), newGate(t)
	first := c.publish(t, command.TaskRequest{Name: "tasks.hold", Args: arguments(string(running))})
	c.task(t, first, state.Started)
	second := c.publish(t, command.TaskRequest{Name: "tasks.hold", Args: arguments(string(reserved))})
	c.task(t, second, state.Received)

	r, err := c.Control(t.Context(), by, command.ControlRequest{Method: "drain", Workers: []string{worker}})
	if err != nil || len(r.Commands) != 1 {
		t.Fatalf("drain = %v, %v, want one command", r, err)
	}
	waits := func() bool {
		d, ok, err := c.DrainOf(t.Context(), worker)
		if err != nil || !ok || d.Command.State.Final() {
			t.Fatalf("drain = %v, %v, %v, want one that waits", d, ok, err)
		}
		return d.Command.LastError == "It consumes from no queue. 1 task runs, 1 task has not started." && len(d.Queues) == 2
	}
	eventually(t, "consumers cancelled", waits)
	late := c.publish(t, command.TaskRequest{Name: "tasks.echo", Queue: "urgent", Force: true})
	c.restart(t)
	running.open(t)
	c.task(t, first, state.Success)
	reserved.open(t)
	c.task(t, second, state.Success)
	replies := c.settled(t, r)[0].Replies
	if len(replies) != 1 || !strings.HasPrefix(replies[0].Text, "It consumes from no queue and runs nothing.") {
		t.Errorf("a drain ends with %v", replies)
	}
	if task, err := c.reader.Task(t.Context(), late); err == nil && task.State != state.Pending {
		t.Errorf("a task that was sent to the queue of a drained worker is %s", task.State)
	}

	if got := c.control(t, "undrain", nil, worker)[worker]; got != "It consumes from celery and urgent again." && got != "It consumes from urgent and celery again." {
		t.Errorf("what undoes a drain ends with %q", got)
	}
	c.task(t, late, state.Success)
	_, err = c.Control(t.Context(), by, command.ControlRequest{Method: "undrain", Workers: []string{worker}})
	if wrong, ok := errors.AsType[*command.Error](err); !ok || wrong.Kind != command.Conflict {
		t.Errorf("undoing a drain twice = %v, want a conflict", err)
	}

	v, err := c.PreviewControl(t.Context(), command.ControlRequest{Method: "drain", Arguments: map[string]any{"shutdown": true}, Workers: []string{worker}})
	if err != nil || v.Summary != "Drain, then shut down" || !strings.Contains(fmt.Sprint(v.Warnings), "This leaves queue urgent with no consumer.") {
		t.Errorf("preview = %v, %v", v, err)
	}
	if got := c.control(t, "drain", map[string]any{"shutdown": true}, worker)[worker]; !strings.HasSuffix(got, " Asked to shut down.") {
		t.Errorf("a drain that shuts down ends with %q", got)
	}
	eventually(t, "worker offline", func() bool {
		var w state.Worker
		c.reader.View(func(v state.View) { w, _ = v.Worker(worker) })
		return w.Status == state.Offline
	})
	if list, _, err := c.Commands(t.Context(), history.CommandFilter{Kind: "drain", Limit: 10}); err != nil || len(list) != 2 {
		t.Errorf("drains = %d, %v, want 2 requests with one command each", len(list), err)
	}
}
