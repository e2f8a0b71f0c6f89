package simulate

import (
	"slices"

	"github.com/umbelhq/umbel/state"
)

// TaskTruth is what really happened to a task, as far as published events can show.
type TaskTruth struct {
	ID         string
	Name       string
	Root       string           // id of the first task of its workflow, its own if it is alone
	State      state.State      // of its newest execution, Pending if there is none
	Worker     string           // node name of its newest execution, empty if there is none
	Attempts   int64            // 1 more than the retries of its newest execution, 0 if there is none
	Executions []ExecutionTruth // by attempt, then in order of arrival at their workers
}

// ExecutionTruth is one attempt at a task on one worker process. State is that of its dominant event: SUCCESS,
// FAILURE, RETRY, REVOKED, REJECTED, a custom state, STARTED, RECEIVED.
type ExecutionTruth struct {
	Attempt int64 // its retries
	Worker  string
	PID     int64
	State   state.State
	Lost    bool // its process dropped it and no event reports its end
}

// Truth returns every task that an event has named so far, in order of creation. It is empty unless Options.Truth
// is set.
//
// Three things do not happen in simulations because no observer could know the truth about them: a message that is
// delivered again to the process that still runs it, one that is delivered again so soon that the wall clocks of
// two hosts disagree about which came first, and a retry that its own worker receives before it has reported the
// attempt that failed.
func (c *Cluster) Truth() []TaskTruth {
	var all []TaskTruth
	for _, t := range c.tasks {
		truth := TaskTruth{ID: t.id, Name: t.kind.name, Root: t.root, State: state.Pending}
		for _, x := range t.executions {
			if x.state != "" {
				truth.Executions = append(truth.Executions, ExecutionTruth{
					Attempt: x.m.retries, Worker: x.w.name, PID: x.main.pid, State: x.state, Lost: x.lost && !x.state.Final(),
				})
			}
		}
		slices.SortStableFunc(truth.Executions, func(a, b ExecutionTruth) int { return int(a.Attempt - b.Attempt) })
		if n := len(truth.Executions); n > 0 {
			newest := truth.Executions[n-1]
			truth.State, truth.Worker, truth.Attempts = newest.State, newest.Worker, newest.Attempt+1
		} else if !t.sent {
			continue
		}
		all = append(all, truth)
	}
	return all
}

// observe records a published event of x.
func (x *execution) observe(s state.State) {
	if x.state == "" || dominance(s) <= dominance(x.state) {
		x.state = s
	}
}

// dominance ranks the states that an execution can be in, the deciding one first.
func dominance(s state.State) int {
	order := [...]state.State{state.Success, state.Failure, state.Retry, state.Revoked, state.Rejected}
	if i := slices.Index(order[:], s); i >= 0 {
		return i
	}
	switch s {
	case state.Started:
		return len(order) + 1
	case state.Received:
		return len(order) + 2
	default:
		return len(order)
	}
}

// WorkerTasks are the tasks that the process of a worker holds.
type WorkerTasks struct {
	Worker     string
	PID, Clock int64
	Responsive bool // it would reply a request now: it is connected, and its process is free
	Active     []string
	Reserved   []string // reserved, or waiting for their ETA
}

// WorkerTasks returns what each live process holds now, by worker. It must not be called while Next runs.
func (c *Cluster) WorkerTasks() []WorkerTasks {
	var all []WorkerTasks
	for _, w := range c.workers {
		if w.main == nil {
			continue
		}
		h := WorkerTasks{Worker: w.name, PID: w.main.pid, Clock: w.main.clock, Responsive: w.connected && !w.blocked}
		for _, x := range w.executions {
			switch {
			case x.running():
				h.Active = append(h.Active, x.m.task.id)
			case x.announced:
				h.Reserved = append(h.Reserved, x.m.task.id)
			}
		}
		all = append(all, h)
	}
	return all
}
