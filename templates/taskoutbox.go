package templates

import (
	"fmt"
	"net/url"
	"time"

	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/state"
)

// TaskOutbox is what an application's outbox tells of a task.
type TaskOutbox struct {
	outboxwatch.Trace

	Attention outboxwatch.Attention
}

// attention is why a task needs attention, in few words; empty if it does not.
func (o *TaskOutbox) attention(t state.Task) string {
	switch {
	case o.Attention.Unsent:
		return "Committed, not sent: no relay has taken its row for minutes"
	case o.Attention.Unreceived && len(t.Executions) == 0:
		return "Sent, not received: no worker has reported it"
	case o.Attention.Resent:
		return "Perhaps sent twice: a relay took its row again"
	default:
		return ""
	}
}

// step is a moment of a task's way.
type step struct {
	Label string
	At    time.Time // zero if it has not come, or is not known
	Why   string    // it has no time
}

// steps are the moments of a task's way through the outbox to a worker.
func (o *TaskOutbox) steps(t state.Task) []step {
	list := []step{{"Committed", o.CommittedAt, "Not known"}}
	for i, at := range o.Claims {
		label := "Taken by the relay"
		if len(o.Claims) > 1 {
			label = fmt.Sprintf("Taken by the relay, %d", i+1)
		}
		list = append(list, step{label, at, ""})
	}
	if len(o.Claims) == 0 {
		list = append(list, step{"Taken by the relay", time.Time{}, "Not seen"})
	}
	if !o.RetryAfter.IsZero() {
		list = append(list, step{fmt.Sprintf("Failed %d times, retried at", o.Retries), o.RetryAfter, ""})
	}
	if o.dead() {
		return append(list, step{"Given up", o.DeadAt, "Not known"})
	}
	list = append(list, step{"Sent before", o.SentBy, "Not sent yet"})
	return append(list, step{"Received by a worker", stepTime(t.ReceivedAt), "No task-received event"})
}

func stepTime(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}

func (o *TaskOutbox) dead() bool { return o.Stage == outboxwatch.Dead }

// word is the stage as words.
func (o *TaskOutbox) word() string {
	switch o.Stage {
	case outboxwatch.Dead:
		return "Dead letter"
	case outboxwatch.Sent:
		return "Sent"
	default:
		return appLookOf(outboxwatch.State(o.Stage)).word
	}
}

// outboxPath is the page of an application's outbox.
func outboxPath(outbox string) string {
	return "/outbox/app?" + url.Values{"outbox": {outbox}}.Encode()
}

// sentTimes is how often a task was sent again under its id beyond its retries: the most task-sent events of one attempt.
func sentTimes(events []state.TaskEvent) int {
	sent := 0
	for _, e := range events {
		switch e.Type {
		case "task-sent":
			sent++
		case "task-retried":
			sent--
		}
	}
	return sent
}
