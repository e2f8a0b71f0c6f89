package state

import "errors"

// ErrSaved is returned for bytes that are no saved events of a known version.
var ErrSaved = errors.New("not saved events")

// Unsaved is a task that has changed since it was last saved.
type Unsaved struct {
	View   Task
	Events []byte // all its events
	Stored bool   // it was saved before, with no event that is not in Events
}

// Change is what an event did to its task.
type Change struct {
	New                 bool   // it was not known yet
	Name, Worker, Queue string // of its task, as it shows now; empty if unknown
	WaitMicros          int64  // of a task-started: since the task-sent or task-received of its attempt; 0 if neither was seen
}

// AppendEvent appends e, with the repaired clock it was given, in the form that Replay reads.
func AppendEvent(b []byte, e *Event, repaired int64) []byte { panic("todo") }

// Replay folds in events that AppendEvent wrote, such that any that are known already change nothing, and
// yields each with what it did.
func (c *Cluster) Replay(journal []byte, yield func(*Event, Change)) error { panic("todo") }

// Unsaved returns the number of tasks that have changed since they were last saved.
func (c *Cluster) Unsaved() int { panic("todo") }

// TakeUnsaved returns the n tasks that wait longest to be saved. They count as being saved, and are not
// evicted, until Saved says what came of it.
func (c *Cluster) TakeUnsaved(n int) []Unsaved { panic("todo") }

// Saved ends what TakeUnsaved began: the tasks are saved, or, if ok is false, wait to be saved again, first
// of all. Those of known were not written, since a store has events of them that may be missing here: these are
// merged in.
func (c *Cluster) Saved(ok bool, known map[string][]byte) error { panic("todo") }

// Load adds a task as it was saved. One that is held already gains the events that it lacks.
func (c *Cluster) Load(id string, events []byte) error { panic("todo") }

// SetHorizon says that tasks up to a position are kept elsewhere only.
func (c *Cluster) SetHorizon(p Position) { panic("todo") }

// Horizon is the newest position of a task that is not held since it was evicted or never loaded, zero if
// all are.
func (c *Cluster) Horizon() Position { panic("todo") }

// Forget drops tasks that were removed elsewhere, but for those that changed since they were saved.
func (c *Cluster) Forget(ids []string) { panic("todo") }

// Unfold returns the task and its events, by stamp, that saved events tell of. Children, and what the
// lives of workers decide, are not known.
func Unfold(id string, events []byte) (Task, []TaskEvent, error) { panic("todo") }

// Thin returns saved events without those that no execution shows, and whether there were any.
func Thin(id string, events []byte) (thin []byte, less bool, err error) { panic("todo") }

// SaveWorkers calls f with every worker that changed since it was last saved, as JSON.
func (c *Cluster) SaveWorkers(f func(name string, saved []byte)) error { panic("todo") }

// LoadWorker merges in a worker as it was saved.
func (c *Cluster) LoadWorker(saved []byte) error { panic("todo") }

// RestoreClock sets the receiver's clock to at least n.
func (c *Cluster) RestoreClock(n int64) { panic("todo") }
