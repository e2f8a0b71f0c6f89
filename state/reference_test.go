package state_test

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// The causal fold once more, from its description: naive, over all events of a task at once, and for reading
// rather than speed. TestCausalFoldEqualsTheReference compares the two.

// wire is an event as encoding/json reads it.
type wire struct {
	Type, Hostname, UUID          string
	PID, Clock, Retries           int64
	generation                    int64
	Timestamp                     float64
	Name, Args, Result, Exception *string
	Runtime                       *float64
	RootID                        *string `json:"root_id"`
	ParentID                      *string `json:"parent_id"`
}

// message is by how much the attempts of one that replaced the task are greater.
const message = 100

func (e *wire) attempt() int64 { return e.generation*message + e.Retries }

func (e *wire) micros() int64 { return int64(math.Round(e.Timestamp * 1e6)) }

func (e *wire) is(subjects ...string) bool {
	return slices.Contains(subjects, strings.TrimPrefix(e.Type, "task-"))
}

func anyIs(events []*wire, subjects ...string) bool {
	return slices.ContainsFunc(events, func(e *wire) bool { return e.is(subjects...) })
}

// byTime orders events of one process by timestamp, and equal ones as a task passes through them.
func byTime(a, b *wire) int {
	return cmp.Or(cmp.Compare(a.micros(), b.micros()), cmp.Compare(a.Clock, b.Clock), cmp.Compare(a.step(), b.step()))
}

func (e *wire) step() int {
	return slices.IndexFunc([]string{"received", "started", "succeeded", "failed", "rejected", "revoked", "retried"}, func(s string) bool { return e.is(s) }) & 7
}

func byClock(a, b *wire) int { return cmp.Or(cmp.Compare(a.Clock, b.Clock), byTime(a, b)) }

// execution is one attempt. Its attempt counts 100 for each time that the task had been replaced.
type execution struct {
	attempt int64
	process process
	begun   int64 // timestamp of the first event of its own process
	events  []*wire
}

type process struct {
	host string
	pid  int64
}

func (r *execution) ended() bool {
	return anyIs(r.events, "succeeded", "failed", "retried", "revoked", "rejected")
}

// waits reports whether the last word on the run is that it will be tried again.
func (r *execution) waits() bool {
	return anyIs(r.events, "retried") && !anyIs(r.events, "succeeded", "failed")
}

// older orders executions: by attempt, by the timestamp of their first event, by process.
func older(a, b *execution) int {
	return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.begun, b.begun),
		cmp.Compare(a.process.host, b.process.host), cmp.Compare(a.process.pid, b.process.pid))
}

// refold sorts the events of one task, in any order and any number of copies, into its executions, oldest
// first, and the task-sent events beside them.
func refold(events []*wire) (executions []*execution, sent []*wire) {
	seen := make(map[string]bool)
	events = slices.Clone(events)
	replacements(events)
	processes := make(map[process][]*wire)
	var received, children, unattributed []*wire
	for _, e := range events {
		// An identity has the timestamp in it: a pid comes back, and so do its clocks.
		id, err := json.Marshal([]any{e.Hostname, e.PID, e.Clock, e.Type, e.micros()})
		if err != nil || seen[string(id)] {
			continue
		}
		seen[string(id)] = true
		switch {
		case e.is("sent"):
			sent = append(sent, e)
			continue
		case e.is("received"):
			received = append(received, e)
		}
		p := process{e.Hostname, e.PID}
		processes[p] = append(processes[p], e)
	}
	for p, events := range processes {
		for _, incarnation := range incarnations(events) {
			// Pool children send nothing but custom events; whoever discards a revoked task says nothing else of it.
			if !slices.ContainsFunc(incarnation, func(e *wire) bool { return e.rank() != custom && !e.is("revoked") }) {
				unattributed = append(unattributed, incarnation...)
				continue
			}
			opened, discarded := splitIncarnation(p, incarnation, received)
			executions, unattributed = append(executions, opened...), append(unattributed, discarded...)
		}
	}
	// An execution whose task-received was not seen is of the highest attempt that had begun by then.
	for _, r := range executions {
		r.begun = slices.MinFunc(r.events, byTime).micros()
		if !anyIs(r.events, "received") {
			r.attempt = attemptAt(received, r.begun)
		}
	}
	slices.SortFunc(unattributed, byTime)
	children = slices.DeleteFunc(slices.Clone(unattributed), func(e *wire) bool { return e.is("revoked") })
	revoked := slices.DeleteFunc(unattributed, func(e *wire) bool { return !e.is("revoked") })
	executions = adopt(executions, children, received)
	for _, e := range revoked {
		// It ends the newest attempt, or discards the one that a retry announced and nobody took up.
		slices.SortFunc(executions, older)
		r := &execution{process: process{e.Hostname, e.PID}, begun: e.micros()}
		switch last := len(executions) - 1; {
		case last < 0:
			for _, s := range sent {
				r.attempt = max(r.attempt, s.Retries)
			}
		case executions[last].waits():
			r.attempt = executions[last].attempt + 1
		default:
			executions[last].events = append(executions[last].events, e)
			continue
		}
		r.events = []*wire{e}
		executions = append(executions, r)
	}
	slices.SortFunc(executions, older)
	return executions, sent
}

// byPlace orders events of all processes.
func byPlace(a, b *wire) int {
	return cmp.Or(cmp.Compare(a.micros(), b.micros()), cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.PID, b.PID), byClock(a, b))
}

// adopt gives custom events of pool children to what had begun last on their host, or else would begin first.
func adopt(executions []*execution, children, received []*wire) []*execution {
	for _, e := range children {
		var on *execution
		slices.SortFunc(executions, older)
		for _, r := range executions {
			if r.process.host == e.Hostname && (on == nil || r.begun <= e.micros() && (on.begun > e.micros() || on.begun <= r.begun)) {
				on = r
			}
		}
		if on == nil {
			on = &execution{process: process{e.Hostname, e.PID}, begun: e.micros(), attempt: attemptAt(received, e.micros())}
			executions = append(executions, on)
		}
		on.events = append(on.events, e)
	}
	return executions
}

func attemptAt(received []*wire, micros int64) (attempt int64) {
	for _, e := range received {
		if e.micros() <= micros {
			attempt = max(attempt, e.attempt())
		}
	}
	return attempt
}

const custom = 5
