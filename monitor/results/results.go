// Package results reads results of tasks from Celery's result backends. It writes nothing to them but that a task is aborted, and
// executes no pickle: objects are described instead.
package results

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrMissing says that the backend has no record of a task: it was never written, or has expired.
var ErrMissing = errors.New("no result stored")

// Backend is where workers store results. It is safe for concurrent use.
type Backend interface {
	// Result returns the record of a task, ErrMissing if there is none.
	Result(ctx context.Context, taskID string) (Result, error)
	// String is its URL with passwords masked.
	String() string
	// Close releases its resources.
	Close() error
}

// Result is the record of a task. Nil and zero are unknown.
type Result struct {
	TaskID      string
	Status      string          // SUCCESS, FAILURE, …, or any text that a task has set; empty if Undecodable
	Value       json.RawMessage // what it returned, nil if Undecodable or an exception; Python objects as celery.Unpickle has them
	Undecodable string          // why Value cannot be shown, such as "stored as yaml, not decoded"
	Exception   string          // module.Type: arguments, empty if there is none
	Repr        string          // the exception as Python's repr has it: Type('argument', 2); empty if there is none
	Traceback   string
	DoneAt      time.Time
	// NaiveTime reports that DoneAt was stored without an offset and read as UTC.
	NaiveTime bool
	ParentID  string
	GroupID   string
	Children  []string // ids of the tasks that it sent, and of their groups
	Groups    []Group  // that it sent

	// Set if result_extended is on.
	Name    string
	Args    json.RawMessage
	Kwargs  json.RawMessage
	Worker  string
	Queue   string
	Retries *int64
}

// Group is a Celery group: ids of tasks, and of groups in it.
type Group struct {
	ID      string
	Members []string
}
