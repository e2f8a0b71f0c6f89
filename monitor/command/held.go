package command

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// maxHeld bounds how many tasks a preview names of those that run, and of those that return.
const maxHeld = 10

// HeldTask is a task that the target of a shutdown or drain holds.
type HeldTask struct {
	ID, Name  string // Name is empty if unknown
	Worker    string
	Queue     string    // that it returns to, empty if unknown
	StartedAt time.Time // by the worker's clock, zero if unknown
	ByEvents  bool      // the worker did not report it
}

// Held is what the targets of a shutdown or drain hold: at most 10 tasks of each list, those that have run longest first.
type Held struct {
	Running []HeldTask // end first
	Waiting []HeldTask // have not begun
}

// held names the tasks of the targets.
func (e *effects) held(ctx context.Context) *Held {
	h := &Held{}
	for i, inspection := range e.inspections(ctx) {
		if _, ok := reportedTasks(inspection); !ok {
			h.addObserved(e.tasks, e.targets[i])
			continue
		}
		for _, t := range inspection.Active {
			h.Running = append(h.Running, reportedTask(t, e.targets[i]))
		}
		for _, t := range inspection.Reserved {
			h.Waiting = append(h.Waiting, reportedTask(t, e.targets[i]))
		}
		for _, t := range inspection.Scheduled {
			h.Waiting = append(h.Waiting, reportedTask(t.Task, e.targets[i]))
		}
	}
	slices.SortStableFunc(h.Running, func(a, b HeldTask) int {
		if a.StartedAt.IsZero() != b.StartedAt.IsZero() {
			return cmp.Compare(b.StartedAt.Unix(), a.StartedAt.Unix()) // unknown comes last
		}
		return a.StartedAt.Compare(b.StartedAt)
	})
	h.Running, h.Waiting = h.Running[:min(len(h.Running), maxHeld)], h.Waiting[:min(len(h.Waiting), maxHeld)]
	return h
}

func reportedTask(t remote.TaskInfo, worker string) HeldTask {
	return HeldTask{ID: t.ID, Name: t.Name, Worker: worker, Queue: t.Queue, StartedAt: t.StartedAt}
}

// addObserved adds the tasks that events place on a worker.
func (h *Held) addObserved(tasks Tasks, worker string) {
	q := state.Query{Workers: []string{worker}, States: []state.State{state.Received, state.Started}, Newer: true, Limit: 2 * maxHeld}
	tasks.View(func(c state.View) {
		for _, t := range c.Tasks(q).Tasks {
			if t.Orphaned || t.Returned {
				continue
			}
			held := HeldTask{ID: t.ID, Worker: worker, ByEvents: true}
			for to, from := range map[*string]*string{&held.Name: t.Name, &held.Queue: t.Queue} {
				if from != nil {
					*to = *from
				}
			}
			if t.State != state.Started {
				h.Waiting = append(h.Waiting, held)
				continue
			}
			if t.StartedAt != 0 {
				held.StartedAt = time.UnixMicro(t.StartedAt)
			}
			h.Running = append(h.Running, held)
		}
	})
}
