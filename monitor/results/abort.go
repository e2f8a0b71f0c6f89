package results

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrNoAbort says that a backend cannot mark tasks as aborted.
var ErrNoAbort = errors.New("this result backend cannot mark tasks as aborted")

// Aborter is a Backend that can mark tasks as aborted, for their code to see (celery.contrib.abortable). It is the only thing
// that Umbel writes to result backends.
type Aborter interface {
	// Abort stores the state ABORTED for a task, known or not, unless it has succeeded.
	Abort(ctx context.Context, taskID string, now time.Time) error
}

// Aborted is the state that Abort stores.
const Aborted = "ABORTED"

// AbortedRecord is the record of an aborted task as key-value backends store it in JSON.
func AbortedRecord(taskID string) []byte {
	b, err := json.Marshal(struct {
		Status    string  `json:"status"`
		Result    *string `json:"result"`
		Traceback *string `json:"traceback"`
		Children  []any   `json:"children"`
		DateDone  *string `json:"date_done"`
		TaskID    string  `json:"task_id"`
	}{Status: Aborted, Children: []any{}, TaskID: taskID})
	if err != nil {
		panic(err) // of texts
	}
	return b
}

// Abort marks a task as aborted in b, ErrNoAbort if b cannot.
func Abort(ctx context.Context, b Backend, taskID string, now time.Time) error {
	a, ok := unwrapped(b).(Aborter)
	if !ok {
		return ErrNoAbort
	}
	return a.Abort(ctx, taskID, now) //nolint:wrapcheck // it says what failed
}

// unwrapped is the backend that reads.
func unwrapped(b Backend) Backend {
	for {
		w, ok := b.(wrapper)
		if !ok {
			return b
		}
		b = w.unwrap()
	}
}

// wrapper is a backend that another one reads for.
type wrapper interface{ unwrap() Backend }
