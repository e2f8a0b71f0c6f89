// Package history is the interface between Umbel and the place that keeps its history: tasks with their events,
// workers, counters, failures, views, and the commands on their way out. It holds no database's code and decides nothing about tasks.
package history

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Errors that callers tell apart.
var (
	ErrLocked       = errors.New("in use by another process")
	ErrNewerVersion = errors.New("written by a newer version")
	ErrNotFound     = errors.New("not found")
)

// Store keeps the history of one cluster. It is safe for concurrent use. What Write has returned without
// an error is on disk.
type Store interface {
	History
	Searcher
	RollupReader
	FailureGroups
	Views
	Retention
	Outbox

	// Run maintains the store until ctx ends: it indexes text and removes what retention says, telling
	// removed the ids of the tasks that are gone. It returns nil after an orderly stop.
	Run(ctx context.Context, removed func(ids []string)) error
	// Health says how the store is doing.
	Health() Health
	// Close ends all use of it. Calls that are still at work are waited for.
	Close() error
}

// Health of a store.
type Health struct {
	Location    string    // file, or :memory:
	Size        int64     // bytes on disk
	LastError   string    // why the last write failed, empty if it did not
	FailedAt    time.Time // when that was
	Unindexed   int       // tasks whose text is not searchable by index yet
	Notices     []string  // what was found wrong when the store was opened, and what to do, a text each
	ActiveBytes int64     // bytes that active tasks take, about, as of the last look at the Rules; 0 if MaxSize is not reached
	OverMaxSize bool      // those alone are more than Rules.MaxSize
}

// History is what the monitor writes and reads back.
type History interface {
	// Write commits b as a whole, or nothing of it. It returns what it holds of tasks that it did not
	// write since they are not said to be stored, and it has them.
	Write(ctx context.Context, b Batch) (WriteResult, error)
	// Restore reads what a monitor needs to begin where the last one ended.
	Restore(ctx context.Context, r RestoreOptions) error
	// Task returns the events of a task as they were saved, ErrNotFound if there is none.
	Task(ctx context.Context, id string) ([]byte, error)
	// Children returns the ids of the tasks whose parent is id, at most limit, by stamp.
	Children(ctx context.Context, id string, limit int) ([]string, error)
}

// Batch is what one transaction writes.
type Batch struct {
	At      int64  // when it was made, µs since 1970 UTC by the local clock; 0 if unknown
	Journal []byte // events folded since the last batch (state.AppendEvent), empty if none
	Tasks   []Task
	// Checkpoint, where it is set, holds everything beside tasks, as of the end of Journal.
	Checkpoint *Checkpoint
	// Forget is the number of the newest journal entry that is not needed any more, 0 for none.
	TrimJournal uint64
}

// Task is a task to save.
type Task struct {
	View    state.Task // what filters and lists need
	Events  []byte     // its events (state.Unsaved)
	Stored  bool       // the store is known to have it, with no event that is not in Events
	HeardAt int64      // local receipt of its newest event, µs since 1970 UTC, which retention goes by; 0 if unknown
}

// Checkpoint is the state of a monitor beside its tasks.
type Checkpoint struct {
	At      int64             // in Restore, that of the newest Batch that has one; 0 if none has
	Clock   int64             // the receiver's clock
	Workers map[string][]byte // changed ones, by node name (state.Cluster.SaveWorkers); nil is forgotten
	Rollups []Rollup          // to be added to what is stored (rollup.Recorder.Take); Restore leaves them out
}

// WriteResult is the answer to a Batch.
type WriteResult struct {
	JournalEntry uint64            // number of the journal entry, rising; 0 if the batch had none
	Existing     map[string][]byte // events of the tasks that were not written, by id
}

// RestoreOptions takes what was saved, in the order of its fields. Each call may keep its argument.
type RestoreOptions struct {
	MaxTasks   int // finished and lost tasks to read, newest change first, besides all active ones
	Checkpoint func(Checkpoint) error
	Task       func(id string, events []byte) error
	// Left is called once if there are tasks that were not read, with the newest of them.
	Omitted func(state.Position) error
	Journal func(entry uint64, events []byte, checkpointed bool) error // checkpointed: the Checkpoint has counted it
}

// Searcher answers queries over all history.
type Searcher interface {
	// Tasks returns a page of the tasks that match.
	Tasks(ctx context.Context, r TaskRequest) (TaskPage, error)
	// Count returns how many match, exactly up to limit.
	Count(ctx context.Context, q query.Query, now time.Time, limit int) (Count, error)
	// Values returns values that a field of type Word, or State, has, which contain part without regard to
	// case, at most limit.
	Values(ctx context.Context, f query.Field, part string, limit int) ([]string, error)
}

// TaskRequest asks for a page of a list of tasks.
type TaskRequest struct {
	Query query.Query
	Sort  query.Sort
	Limit int             // 1 to 500
	From  *state.Position // the page continues after this place; nil means the first page
	Newer bool            // the page lies before From, towards the top of the list
	Now   time.Time       // what relative times refer to
}

// TaskPage is a part of a list of tasks, in the list's order.
type TaskPage struct {
	Tasks []state.Task
	Next  *state.Position // where the page after this one starts, nil at the end
	Prev  *state.Position // where the page before this one starts, nil at the top
	// Searched is how many tasks were looked at where that was not all that could have matched: the page
	// may hold fewer than Limit and still have a next one. 0 if the search was complete.
	Searched int
}

// Count is a number of tasks.
type Count struct {
	N     int
	Exact bool // else there are N at least
}
