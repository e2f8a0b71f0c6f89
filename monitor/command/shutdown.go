package command

import (
	"context"
	"strings"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// load is what a worker holds.
type heldTasks struct {
	running, reserved, scheduled int
}

// held sums up what the targets hold, and names those that have not told.
func (e *effects) heldByTargets(ctx context.Context) (sum heldTasks, silent []string) {
	for i, told := range e.inspections(ctx) {
		l, ok := reportedTasks(told)
		if !ok {
			w := e.known[e.targets[i]]
			l = observedTasks(w)
			if w.Status != state.Offline {
				silent = append(silent, w.Name)
			}
		}
		sum.running += l.running
		sum.reserved += l.reserved
		sum.scheduled += l.scheduled
	}
	return sum, silent
}

// loadOf is what a worker has told, if it has told all of it.
func reportedTasks(i remote.Inspection) (heldTasks, bool) {
	for _, method := range []string{"active", "reserved", "scheduled"} {
		if _, told := i.Times[method]; !told || i.Errors[method] != "" {
			return heldTasks{}, false
		}
	}
	return heldTasks{running: i.Totals["active"], reserved: i.Totals["reserved"], scheduled: i.Totals["scheduled"]}, true
}

// seen is what heartbeats and events tell: how many run, and of the others only that they have not ended.
func observedTasks(w state.Worker) heldTasks {
	l := heldTasks{running: w.RunningTasks}
	if w.Active != nil {
		l.running = int(*w.Active)
		l.reserved = max(w.RunningTasks-l.running, 0)
	}
	return l
}

// handOver says which tasks of the targets end, and which go back to their queues.
func (e *effects) warnHeldTasks(ctx context.Context) {
	sum, silent := e.heldByTargets(ctx)
	if sum.running > 0 {
		e.warn(false, "%s.", count(sum.running, "task is running there: a warm shutdown lets it end first",
			"tasks are running there: a warm shutdown lets them end first"))
	}
	var back []string
	if sum.reserved > 0 {
		back = append(back, count(sum.reserved, "task that has not started", "tasks that have not started"))
	}
	if sum.scheduled > 0 {
		back = append(back, count(sum.scheduled, "task that waits for its time", "tasks that wait for their time"))
	}
	if len(back) > 0 {
		verb := "return to the queue"
		if sum.reserved+sum.scheduled == 1 {
			verb = "returns to the queue"
		}
		e.warn(false, "%s %s.", strings.Join(back, " and "), verb)
	}
	if len(silent) > 0 {
		e.warn(false, "%s: this goes by heartbeats and events.",
			plural(silent, "did not tell what it holds", "did not tell what they hold"))
	}
}
