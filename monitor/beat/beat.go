// Package beat says what the tables of django-celery-beat configure, and what became of it by events: periodic tasks that are
// overdue, were never seen, or run although they are disabled. It never reads their arguments.
package beat

import (
	"context"
	"time"
)

// MaxEntries is how many periodic tasks of one database are read.
const MaxEntries = 1000

// Source is a database with the tables of django-celery-beat.
type Source interface {
	// Name tells sources apart.
	Name() string
	// String is the URL without its password.
	String() string
	// Read reads the tables. Its error is an *Error.
	Read(ctx context.Context) (Table, error)
	Close() error
}

// Table is what the tables say.
type Table struct {
	Entries []Entry // by id
	Cut     bool    // there are more than MaxEntries
	// Naive says that times are stored without a time zone, so that they cannot be compared with a clock.
	Naive bool
	// Lacks names tables of schedules that are not there.
	Lacks []string
}

// Entry is a periodic task. A zero time is none.
type Entry struct {
	ID                int64
	Name, Task, Queue string
	Enabled, OneOff   bool
	// StartTime is before which it does not run, Expires from when beat disables it.
	StartTime, Expires   time.Time
	LastRunAt, ChangedAt time.Time // beat writes the former every few minutes
	Runs                 int64     // by beat's count
	Schedule             Schedule
}

// Error says why tables cannot be read.
type Error struct {
	Text string // a sentence for users, without a password
	Err  error  // nil if there is no other
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Text + " " + e.Err.Error()
	}
	return e.Text
}

// Unwrap returns the error behind it.
func (e *Error) Unwrap() error { return e.Err }
