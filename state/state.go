// Package state folds Celery events into one picture of a cluster: tasks with their executions,
// workers, counts, and queries on them. It does no I/O, reads no wall clock, starts no goroutine and
// logs nothing; whoever owns a Cluster locks it.
package state

// Options of a Cluster. The zero value is useful.
type Options struct {
	MaxTasks int   // tasks kept in memory; 0 means 1,000,000
	MaxText  int64 // bytes of args, results and tracebacks kept; 0 means 512 MiB
	Rules    Rules // zero value: Causal
}

// Rules chooses how the events of a task become its state.
type Rules uint8

// The rule sets of Umbel. Causal makes the state of a task a function of the set of its events;
// Celery repeats celery.events.state event for event, oddities included.
const (
	Causal Rules = iota
	Celery
)

// Cluster is the picture of one Celery cluster. It is not safe for concurrent use: one writer calls
// Apply and Expire, readers share a lock with it.
type Cluster struct{}

// New returns an empty cluster.
func New(o Options) *Cluster { panic("todo") }

// Apply folds one event in. It copies what it keeps.
func (c *Cluster) Apply(e *Event) { panic("todo") }

// Expire moves the clock by which workers are late or offline to now (µs) and reports whether
// any worker's status changed.
func (c *Cluster) Expire(now int64) bool { panic("todo") }

// Version rises with every change.
func (c *Cluster) Version() uint64 { panic("todo") }

// Task returns a copy of the task, false if it is not held.
func (c *Cluster) Task(id string) (Task, bool) { panic("todo") }

// TaskEvents returns the events of a task that are held, by stamp.
func (c *Cluster) TaskEvents(id string) []TaskEvent { panic("todo") }

// Tasks returns copies of the tasks that match q, newest change first, at most q.Limit.
func (c *Cluster) Tasks(q Query) Page { panic("todo") }

// Workers returns copies of all workers by name.
func (c *Cluster) Workers() []Worker { panic("todo") }

// Worker returns a copy of the worker of that node name.
func (c *Cluster) Worker(name string) (Worker, bool) { panic("todo") }

// Counts returns totals.
func (c *Cluster) Counts() Counts { panic("todo") }

// Names returns every task name seen, sorted.
func (c *Cluster) Names() []string { panic("todo") }
