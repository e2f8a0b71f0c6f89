// Package trace reads and writes traces: files that hold what Umbel received of some tasks, to be looked at on another
// machine. It does no I/O of its own.
//
// A trace is lines of JSON, compressed by gzip. The first is a Header. Then come, in the order in which they were received,
// the events of the tasks as Celery writes them, each with a member "umbel" (Received); what was concluded of tasks (type
// umbel-conclusion); and now and then the workers as they were (umbel-workers). The last one, umbel-end, counts the events:
// a file without it was cut off.
package trace

import (
	"errors"
	"time"

	"github.com/umbelhq/umbel/state"
)

// Version is that of the format. It rises when older readers would misread it.
const Version = 1

// Bounds of a trace.
const (
	MaxTasks = 50_000
	MaxBytes = 256 << 20 // of lines, uncompressed
	maxSaved = 64 << 20  // of lines that a Builder holds
	maxLine  = 8 << 20
	// MaxWorkers bounds how many times the workers are in a trace.
	MaxWorkers = 60
)

// Errors of readers and builders. Each is a sentence about the file, without its subject.
var (
	ErrNotTrace = errors.New("is not a trace of Umbel")
	ErrNewer    = errors.New("was written by a newer version of Umbel")
	ErrTooLarge = errors.New("is too large")
	// ErrCutOff says that the file ends before its last line. What was read before is as it was.
	ErrCutOff = errors.New("is cut off")
)

// Header says what a trace holds.
type Header struct {
	Version int       `json:"umbel_trace"`
	Umbel   string    `json:"umbel"`   // version that wrote it
	Cluster string    `json:"cluster"` // URL of the broker, without its password
	MadeAt  time.Time `json:"made_at"`
	// Query, Workflow and Since say what was asked for; without them it is all tasks.
	Query    string     `json:"query,omitempty"`
	Workflow string     `json:"workflow,omitempty"` // id of the root
	Since    *time.Time `json:"since,omitempty"`
	Until    time.Time  `json:"until"` // as of when: what was received later is left out
	First    time.Time  `json:"first"` // receipt of the first event
	Tasks    int        `json:"tasks"`
	Events   int        `json:"events"`
	Payload  bool       `json:"payload"`  // false: arguments, results, exceptions and tracebacks are left out
	Redacted bool       `json:"redacted"` // by the rules of the Umbel that wrote it
	Doubts   []string   `json:"doubts,omitempty"`
}

// Asked says what was asked for.
func (h *Header) Asked() string {
	asked := "all tasks"
	switch {
	case h.Query != "":
		asked = h.Query
	case h.Workflow != "":
		asked = "the workflow " + h.Workflow
	}
	if h.Since != nil {
		asked += " since " + h.Since.UTC().Format(time.DateTime) + " UTC"
	}
	return asked
}

// Entry is a line after the header. One of its fields is set.
type Entry struct {
	Event      *state.SavedEvent
	Conclusion *Conclusion
	Workers    *Workers
}

// Conclusion is what Umbel concluded of an unfinished task.
type Conclusion struct {
	Task string
	state.Conclusion
}

// Workers are all workers at an instant.
type Workers struct {
	At    int64    // µs
	Clock int64    // bounds the repaired clocks of what was received by then, 0 if unknown
	Saved []string // state.Cluster.SaveWorkers
}

// At is when the entry came about, µs.
func (e *Entry) At() int64 {
	switch {
	case e.Event != nil:
		return e.Event.Event.ReceivedMicros
	case e.Conclusion != nil:
		return e.Conclusion.At
	}
	return e.Workers.At
}

// Apply folds an entry into a cluster, and calls counted, unless that is nil, with an event and its effect.
func (e *Entry) Apply(c *state.Cluster, counted func(*state.Event, state.Change)) error {
	switch {
	case e.Event != nil:
		ch := c.ApplySaved(e.Event)
		if counted != nil {
			counted(&e.Event.Event, ch)
		}
	case e.Conclusion != nil:
		c.Conclude(e.Conclusion.Task, e.Conclusion.Conclusion)
	default:
		for _, w := range e.Workers.Saved {
			if err := c.LoadWorker([]byte(w)); err != nil {
				return err
			}
		}
		c.RestoreClock(e.Workers.Clock)
		c.Expire(e.Workers.At)
	}
	return nil
}
