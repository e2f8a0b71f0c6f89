package command

import (
	"context"
	"strings"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// heldTasks counts the tasks that a worker holds.
type heldTasks struct {
	running, reserved, scheduled int
}

// heldByTargets sums up what the targets hold, and returns the names of those that did not report it.
func (e *effects) heldByTargets(ctx context.Context) (sum heldTasks, unreported []string) {
	for i, inspection := range e.inspections(ctx) {
		l, ok := reportedTasks(inspection)
		if !ok {
			w := e.known[e.targets[i]]
			l = observedTasks(w)
			if w.Status != state.Offline {
				unreported = append(unreported, w.Name)
			}
		}
		sum.running += l.running
		sum.reserved += l.reserved
		sum.scheduled += l.scheduled
	}
	return sum, unreported
}

// reportedTasks returns what a worker has reported, false if it has not reported all of it.
func reportedTasks(i remote.Inspection) (heldTasks, bool) {
	for _, method := range []string{"active", "reserved", "scheduled"} {
		if _, ok := i.Times[method]; !ok || i.Errors[method] != "" {
			return heldTasks{}, false
		}
	}
	return heldTasks{running: i.Totals["active"], reserved: i.Totals["reserved"], scheduled: i.Totals["scheduled"]}, true
}

// observedTasks returns what heartbeats and events show: how many run, and how many others have not ended.
func observedTasks(w state.Worker) heldTasks {
	l := heldTasks{running: w.RunningTasks}
	if w.Active != nil {
		l.running = int(*w.Active)
		l.reserved = max(w.RunningTasks-l.running, 0)
	}
	return l
}

// warnHeldTasks warns of the tasks of the targets that finish first, and of those that return to their queues.
func (e *effects) warnHeldTasks(ctx context.Context) {
	sum, unreported := e.heldByTargets(ctx)
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
	if len(unreported) > 0 {
		e.warn(false, "%s: these numbers come from heartbeats and events.", plural(unreported, "did not report its tasks", "did not report their tasks"))
	}
}
