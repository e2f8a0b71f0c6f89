// Package causality tells what could have caused what. It makes a graph of the events of some tasks, with typed and
// graded edges, and answers which of two events came first, what lies in the causal past and future of one, and in
// which order to draw them. It is pure: the graph is a function of a set of events, whatever their order.
//
// A page builds the graph that it needs, when it needs it: it reads the tasks of one workflow, or those around one
// task, from memory and history, turns each into events with [OfTask], and calls [New] with all of them. That takes
// about 3 µs an event. [Of] converts other events, such as heartbeats; [Command] and [Reply] are made by hand.
//
//	var events []causality.Event
//	for _, t := range tasks {
//		events = append(events, causality.OfTask(&t.Task, t.Events)...)
//	}
//	g := causality.New(events)
//	order, grade := g.Relation(a, b)
//
// # What an event is
//
// Workers report. The event task-started is sent by the main process of a worker, after a child process has begun
// the task, and task-sent after the message is at the broker: what they report may have had consequences before the
// report itself is written. So the moment of a task-started is when the task began, that of a task-sent when its
// message was published, and that of every other event when it was written. Two events of one process whose moments
// nothing else orders are in the order in which the process reported them.
//
// # What is taken for granted
//
// Proved means: true if each node name and pid is one process at a time, its clock counts, the wall clock of a host
// is not set back between two lives of a process that have the same pid, a worker does not receive an attempt again before
// it has reported that it began, and a client publishes a task once unless several publications were seen. The clocks of different hosts are never compared. Delivering a message
// again is no violation: an execution that nobody saw, since its events were lost, never makes a proved relation false.
package causality

import (
	"cmp"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// Grade says how well a statement is founded. Greater is better.
type Grade uint8

// Grades of statements.
const (
	Unknown    Grade = iota // nothing says so
	Consistent              // numbers permit it, or structure suggests it
	Proved                  // structure or the order of one process leaves no other possibility
)

// String returns unknown, consistent or proved.
func (g Grade) String() string { return [...]string{"unknown", "consistent", "proved"}[min(g, Proved)] }

// Command and Reply are events that no worker sends: a remote control command as Umbel sent it, and the reply of one
// process, whose header carries the clock of that process.
const (
	Command state.Kind = 64 + iota
	Reply
)

// Event is what the graph needs to know of an event.
type Event struct {
	Kind    state.Kind // of tasks and workers, Command or Reply
	Process clock.Process
	Clock   int64       // raw, 0 if none
	Stamp   clock.Stamp // Micros is 0 where the event has no wall clock, as replies

	Task    string // id; the ticket of a Command or Reply
	Name    string // of the task, empty if unknown
	Parent  string // id, empty if none or unknown
	Root    string // id of the first task of the workflow, empty if unknown
	Attempt int64  // of task-sent and task-received, 0 for the first
	Revokes string // of a Command: id of a task whose task-revoked may be its effect, empty if there is none
	Type    string // Celery's name of the event, for those who draw it
}

// OfTask returns the events of a task.
func OfTask(t *state.Task, events []state.TaskEvent) []Event {
	all := make([]Event, 0, len(events))
	for _, e := range events {
		v := Event{
			Kind: e.Kind, Process: clock.Process{Hostname: e.Hostname, PID: e.PID}, Clock: e.Clock, Stamp: e.Stamp,
			Task: t.ID, Name: e.Name, Attempt: e.Attempt, Type: e.Type,
		}
		if e.OtherParent && t.ParentID != nil {
			v.Parent = *t.ParentID
		}
		if t.RootID != nil {
			v.Root = *t.RootID
		}
		if e.OwnParent {
			v.Parent = t.ID
		}
		all = append(all, v)
	}
	return all
}

// compare is a total order of events that arrival cannot change.
func compare(a, b *Event) int {
	return cmp.Or(
		cmp.Compare(a.Stamp.Micros, b.Stamp.Micros), a.Process.Compare(b.Process), cmp.Compare(a.Clock, b.Clock),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Revokes, b.Revokes),
	)
}

// early reports whether what an event reports may be earlier than the report.
func (e *Event) early() bool { return e.Kind == state.TaskSent || e.Kind == state.TaskStarted }

func (e *Event) ended() bool {
	switch e.Kind {
	case state.TaskSucceeded, state.TaskFailed, state.TaskRetried:
		return true
	default:
		return false
	}
}
