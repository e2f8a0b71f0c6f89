// Package outboxwatch watches the transactional outboxes of applications: the tables celery_outbox and
// celery_outbox_dead_letter of django-celery-outbox. It reads them every few seconds, judges whether their relay takes
// rows, and keeps a sample of every minute. It knows no SQL: adapters such as outboxwatch/database read the tables.
package outboxwatch

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/history"
)

// Source is the outbox of one application. It is safe for concurrent use. Its errors are of type *Error.
type Source interface {
	// Name tells sources apart: it is in addresses of pages, labels of metrics and the history.
	Name() string
	// String is the URL without its password.
	String() string
	// Stats sums up both tables.
	Stats(ctx context.Context) (Stats, error)
	// Rows returns a page of the outbox.
	Rows(ctx context.Context, r RowRequest) (RowPage, error)
	// DeadLetters returns a page of the dead letters, newest first.
	DeadLetters(ctx context.Context, r DeadLetterRequest) (DeadLetterPage, error)
	// ByTask returns the rows and dead letters of tasks, at most MaxByTask of either, without their arguments. It
	// takes at most MaxByTask ids.
	ByTask(ctx context.Context, taskIDs []string) ([]Row, []DeadLetter, error)
	// Close closes the connections.
	Close() error
}

// MaxByTask is how many tasks ByTask looks for at once, and how many rows it returns.
const MaxByTask = 500

// Errors that callers check for.
var (
	ErrUnknownSource = errors.New("no such outbox")
	ErrCursor        = errors.New("invalid cursor") // wrapped by an *Error
)

// Fault says why an outbox cannot be read or changed.
type Fault string

// The faults.
const (
	FaultAway       Fault = "away"       // no connection, or it broke
	FaultSlow       Fault = "slow"       // a statement ran into its timeout
	FaultPermission Fault = "permission" // the user may not
	FaultNoTable    Fault = "no_table"   // a table does not exist
	FaultColumns    Fault = "columns"    // a table has other columns
	FaultIndexes    Fault = "indexes"    // a table lacks an index, so that reading would scan it
	FaultLocked     Fault = "locked"     // another process locks the SQLite file
	FaultOther      Fault = "other"
)

// Error says in one sentence why an outbox cannot be read or changed.
type Error struct {
	Fault Fault
	Text  string // a sentence for users, without passwords
	Err   error  // what the database said, nil if it said nothing
}

// Error returns the sentence and what the database said.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + " " + e.Err.Error()
}

// Unwrap returns what the database said.
func (e *Error) Unwrap() error { return e.Err }

// Count is a number of rows; not exact, it is a lower bound.
type Count = history.Count
