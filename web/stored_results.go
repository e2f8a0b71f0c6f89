package web

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/monitor/results"
)

// resultTimeout is how long a page waits for the stored result of its task.
const resultTimeout = 300 * time.Millisecond

// storedResults reads the stored results of the tasks of open pages, each at most once in 5 s.
type storedResults struct {
	*background[storedResult]
	backend results.Backend
}

// storedResult is a result, or that there is none.
type storedResult struct {
	results.Result
	missing bool
}

func newStoredResults(backend results.Backend, changed func(), log *slog.Logger) *storedResults {
	return &storedResults{backend: backend, background: newBackground(&background[storedResult]{
		what: "stored result", age: 5 * time.Second, kept: time.Minute, readers: 4, same: sameResult, changed: changed, log: log,
	})}
}

// of returns the stored result of a task, false if the backend has not replied yet.
func (s *storedResults) of(ctx context.Context, id string) (storedResult, bool, error) {
	return s.get(ctx, id, func(ctx context.Context) (storedResult, error) {
		r, err := s.backend.Result(ctx, id)
		if errors.Is(err, results.ErrMissing) {
			return storedResult{missing: true}, nil
		}
		return storedResult{Result: r}, err
	})
}

// sameResult reports whether pages show two results alike.
func sameResult(a, b storedResult) bool {
	return a.missing == b.missing && a.Status == b.Status && a.DoneAt.Equal(b.DoneAt) && string(a.Value) == string(b.Value) &&
		a.Exception == b.Exception && a.Traceback == b.Traceback
}
