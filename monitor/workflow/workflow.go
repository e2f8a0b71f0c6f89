// Package workflow assembles the tasks that one root task led to: their tree, what each attempt spent its time with, and how
// far they have come. It does no I/O and carries no payload: no arguments, results or exceptions.
package workflow

import (
	"cmp"
	"strconv"

	"github.com/umbelhq/umbel/state"
)

// MaxTasks bounds the tasks of one workflow that are assembled.
const MaxTasks = 5_000

// Workflow is the tasks of one root, as a tree.
type Workflow struct {
	Root    string   // id of the root, whether or not its task is known
	Tasks   []Task   // in tree order: each task, then its children with theirs, by time
	Size    int      // tasks that are retained, at least len(Tasks)
	AtLeast bool     // Size is a lower bound
	Notes   []string // what is odd about it, one sentence each
}

// Task is one task of a workflow.
type Task struct {
	ID       string
	Name     string // empty if unknown
	State    state.State
	RootID   string // as sent, empty if unknown
	ParentID string // as sent, empty if it has none, or none is known
	Client   string // node name of the sender, empty if unknown
	Queue    string // empty if unknown
	SentAt   int64  // as the times of an Execution
	// SentAhead is how far the sender's clock is taken to be ahead, µs. SentAt is corrected by it.
	SentAhead int64
	Updated   int64 // newest timestamp of its events, µs
	Lost      bool  // it is not expected to end
	Ignored   bool  // a person has dismissed it

	Executions []Execution // oldest first; none if no worker has received it

	// Set by Assemble.
	Parent   int   // index of its parent in Workflow.Tasks, -1 if it has none there
	Children []int // indices
	Depth    int   // number of ancestors in Workflow.Tasks
	Below    int   // number of descendants: they follow it in Workflow.Tasks
}

// Execution is one attempt at a task on one worker. Times are µs since 1970 UTC by the local clock, as far as is known how far
// the clocks of those who report them are ahead of it, 0 where unknown or not yet.
type Execution struct {
	Attempt  int64 // retries before it, 0 for the first
	Worker   string
	PID      int64 // 0 if unknown
	State    state.State
	Replaced bool // it ended by publishing another task under its id
	Inferred bool // no task-received was seen for it
	// Ahead is how far its worker's clock is taken to be ahead, µs. Times are corrected by it.
	Ahead int64

	QueuedAt   int64 // task-sent, or the retry or redelivery before it
	ReceivedAt int64
	StartedAt  int64
	EndedAt    int64
}

// Name is the name of the root task, empty if it is not known.
func (w *Workflow) Name() string {
	if len(w.Tasks) > 0 && w.Tasks[0].ID == w.Root {
		return w.Tasks[0].Name
	}
	return ""
}

// Of returns a task of the list without its payload, and with times that are corrected by offsets, by host.
func Of(t *state.Task, offsets map[string]int64) Task {
	w := Task{
		ID: t.ID, Name: text(t.Name), State: t.State, RootID: text(t.RootID), ParentID: text(t.ParentID),
		Client: text(t.Client), Queue: text(t.Queue), Updated: t.UpdatedAt,
		Lost: t.Lost != nil || t.Orphaned, Ignored: t.Dismissed != nil, Parent: -1,
	}
	if w.ParentID == w.ID { // a retry names itself
		w.ParentID = ""
	}
	w.SentAhead = offsets[Host(w.Client)]
	w.SentAt = corrected(t.SentAt, w.SentAhead)
	w.Executions = make([]Execution, len(t.Executions))
	for i, e := range t.Executions {
		ahead := offsets[Host(e.Worker)]
		w.Executions[i] = Execution{
			Attempt: e.Attempt, Worker: e.Worker, PID: e.PID, State: e.State, Replaced: e.Replaced, Inferred: e.Inferred,
			Ahead: ahead, ReceivedAt: corrected(e.ReceivedAt, ahead), StartedAt: corrected(e.StartedAt, ahead),
			EndedAt: corrected(endOf(&e), ahead),
		}
	}
	w.queue()
	return w
}

func corrected(at, ahead int64) int64 {
	if at == 0 {
		return 0
	}
	return at - ahead
}

// queue sets since when each attempt was queued. Task.SentAt is of the newest attempt, unless its task-sent was not seen.
func (t *Task) queue() {
	for i := range t.Executions {
		e := &t.Executions[i]
		switch {
		case i == 0 && (len(t.Executions) == 1 || e.begun() == 0 || t.SentAt <= e.begun()):
			e.QueuedAt = t.SentAt
		case i > 0:
			e.QueuedAt = t.Executions[i-1].EndedAt
		}
	}
}

// begun is when a worker first had it.
func (e *Execution) begun() int64 { return cmp.Or(e.ReceivedAt, e.StartedAt) }

// FirstAt is the first time that is known of a task, 0 if there is none.
func (t *Task) FirstAt() int64 {
	if len(t.Executions) == 0 {
		return t.SentAt
	}
	e := &t.Executions[0]
	return cmp.Or(e.QueuedAt, e.ReceivedAt, e.StartedAt, e.EndedAt, t.SentAt)
}

// EndedAt is when its last attempt ended, 0 if it has not.
func (t *Task) EndedAt() int64 {
	if len(t.Executions) == 0 {
		return 0
	}
	return t.Executions[len(t.Executions)-1].EndedAt
}

// Over reports whether nothing more is expected of it.
func (t *Task) Over() bool { return t.State.Final() || t.Lost || t.Ignored }

// endOf is when an attempt ended, 0 if it has not.
func endOf(e *state.Execution) int64 {
	switch e.State {
	case state.Success:
		return e.SucceededAt
	case state.Failure:
		return e.FailedAt
	case state.Retry:
		return e.RetriedAt
	case state.Revoked:
		return e.RevokedAt
	case state.Rejected:
		return e.RejectedAt
	case state.Pending, state.Received, state.Started:
	}
	return 0
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// plural says how many there are.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
