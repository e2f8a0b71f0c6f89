// Package history defines the storage interfaces of Umbel: tasks with their events, workers, rollups, failure groups,
// saved views, marks, sessions and tokens, and the outbox of commands. It holds no database code and decides nothing about tasks.
package history

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Errors that callers check for.
var (
	ErrLocked       = errors.New("in use by another process")
	ErrNewerVersion = errors.New("written by a newer version")
	ErrNotFound     = errors.New("not found")
	ErrUnreachable  = errors.New("cannot be reached at present")
)

// Store keeps the history of one cluster. It is safe for concurrent use.
type Store interface {
	Writer
	TaskReader
	PastReader
	RollupReader
	FailureGroups
	Duplicates
	Workflows
	Views
	Marks
	Retention
	Outbox
	OutboxSamples
	Alerts
	Credentials

	// Run maintains the store until ctx ends: it indexes text and removes what the retention rules say, and calls
	// removed with the ids of the tasks that it has removed. It returns nil after an orderly stop.
	Run(ctx context.Context, removed func(ids []string)) error
	// Health returns the condition of the store.
	Health() Health
	// Close waits for running calls, then closes the store.
	Close() error
}

// Health is the condition of a store.
type Health struct {
	Location    string    // file, or :memory:
	Size        int64     // bytes on disk
	LastError   string    // of the last write, empty if it succeeded
	FailedAt    time.Time // of LastError
	Unindexed   int       // tasks whose text is not in the text index yet
	Notices     []string  // problems found when the store was opened, and what to do about them
	ActiveBytes int64     // estimated size of active tasks when retention last ran; 0 if MaxSize was not reached
	OverMaxSize bool      // ActiveBytes alone exceeds RetentionRules.MaxSize
}

// Writer is what ingest needs: it saves batches and reads them back after a restart.
type Writer interface {
	// Write commits b in one transaction; once it returns nil, b is on disk. A task that is in the store although
	// Task.Stored is false is not written: its saved events are returned instead, to be merged and written again.
	Write(ctx context.Context, b Batch) (WriteResult, error)
	// Restore reads what a monitor needs to continue where the last one stopped.
	Restore(ctx context.Context, r RestoreOptions) error
	// RestoreMore reads finished and lost tasks from a position on that Restore or RestoreMore has omitted, newest change first: as
	// many as limit, and those of the same moment as the last. It returns the position of the newest one that is left, nil if none is.
	RestoreMore(ctx context.Context, from state.Position, limit int) (tasks []SavedTask, left *state.Position, err error)
}

// SavedTask is a task as it was saved.
type SavedTask struct {
	ID     string
	Events []byte // state.Unsaved
}

// Batch is what one transaction writes.
type Batch struct {
	At      int64  // creation time, µs since 1970 UTC by the local clock; 0 if unknown
	Journal []byte // events folded since the last batch (state.AppendEvent), empty if none
	Tasks   []Task
	// Checkpoint, if set, is everything but tasks, as of the end of Journal.
	Checkpoint *Checkpoint
	// TrimJournal removes journal entries up to and including this number; 0 removes none.
	TrimJournal uint64
}

// Task is a task to save.
type Task struct {
	View   state.Task // for filters and lists
	Events []byte     // its events (state.Unsaved)
	Stored bool       // the store has it, and no event of it that Events lacks
	// FirstReceipt and ReceivedAt are the local receipts of its first and its newest event, µs since 1970 UTC, for times past
	// and for retention; 0 if unknown.
	FirstReceipt, ReceivedAt int64
}

// Checkpoint is the state of a monitor except its tasks.
type Checkpoint struct {
	At      int64             // set by Restore: Batch.At of the newest batch that has one, else 0
	Clock   int64             // the receiver's clock
	Workers map[string][]byte // changed ones by node name (state.Cluster.SaveWorkers); nil deletes
	Counts  state.Counts      // for snapshots; not set by Restore
	Rollups []Rollup          // added to stored ones (rollup.Recorder.Take); not set by Restore
}

// WriteResult is the result of writing a Batch.
type WriteResult struct {
	JournalEntry uint64            // number of the journal entry, increasing; 0 if the batch had none
	Existing     map[string][]byte // saved events, by id, of tasks that were not written
}

// RestoreOptions says how much to restore and which functions receive it. They are called in the order of the fields and
// may keep their arguments. Journal may read tasks of the store.
type RestoreOptions struct {
	MaxTasks int // finished and lost tasks to read, newest change first; active ones are all read
	// MaxWithJournal is how many of them to read at most, if greater, where the journal is long: most of its events are of these.
	MaxWithJournal int
	Checkpoint     func(Checkpoint) error
	Task           func(id string, events []byte) error
	// Omitted is called once if tasks were not read, with the position of the newest of those.
	Omitted func(state.Position) error
	Journal func(entry uint64, events []byte, checkpointed bool) error // checkpointed: Checkpoint includes it
}

// TaskReader reads tasks.
type TaskReader interface {
	// Task returns the events of a task as they were saved, ErrNotFound if there is none.
	Task(ctx context.Context, id string) ([]byte, error)
	// Children returns the ids of the tasks whose parent is id, at most limit, by stamp.
	Children(ctx context.Context, id string, limit int) ([]string, error)
	// Tasks returns a page of the tasks that match.
	Tasks(ctx context.Context, r TaskRequest) (TaskPage, error)
	// Count returns how many tasks match, exactly up to limit.
	Count(ctx context.Context, q query.Query, now time.Time, limit int) (Count, error)
	// Values returns at most limit values of a field of type Word, or State, that contain part, ignoring case. Of a rarely
	// asked field, it returns values of the newest tasks.
	Values(ctx context.Context, f query.Field, part string, limit int) ([]string, error)
	// Words returns the first values of a range of those that tasks have in a field that is Alphabetical.
	Words(ctx context.Context, r WordRange) ([]string, error)
}

// TaskRequest asks for a page of a list of tasks.
type TaskRequest struct {
	Query query.Query
	Sort  query.Sort
	Limit int             // 1 to 500
	From  *state.Position // position that the page starts after; nil is the first page
	Newer bool            // the page ends before From, towards the top of the list
	Now   time.Time       // what relative times refer to
	// Until, if not 0, selects only tasks of which nothing was received, or concluded, after that instant, µs.
	Until int64
}

// TaskPage is a part of a list of tasks, in the list's order.
type TaskPage struct {
	Tasks []state.Task
	Next  *state.Position // where the page after this one starts, nil at the end
	Prev  *state.Position // where the page before this one starts, nil at the top
	// Searched is how many tasks were examined if the search stopped before it was complete: the page may hold
	// fewer tasks than Limit and still have a next one. 0 if it was complete.
	Searched int
}

// Count is a number of tasks.
type Count struct {
	N     int
	Exact bool // else N is a lower bound
}
