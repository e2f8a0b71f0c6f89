package web

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/results"
)

// How old the record of a task may be on a page, how long one is kept that nobody looks at, and how many are read at
// once.
const (
	resultAge     = 5 * time.Second
	resultKept    = time.Minute
	resultReaders = 4
)

// resultTimeout is how long a page waits for the record of its task.
const resultTimeout = 300 * time.Millisecond

// storedResults reads in the background what the result backend holds of the tasks of open pages, each at most once in
// resultAge. It is safe for concurrent use.
type storedResults struct {
	backend results.Backend
	changed func() // called when a record is another one
	log     *slog.Logger
	wake    chan struct{} // holds one element when there may be something to read

	mu      sync.Mutex
	running bool
	known   map[string]*storedResult // by the id of the task
}

// record is what the backend said of a task.
type storedResult struct {
	id      string
	result  results.Result
	err     error // results.ErrMissing if there is none
	at      time.Time
	again   bool          // somebody has looked at it since
	reading bool          // one reader has it
	first   chan struct{} // closed when it was tried once
}

func newStoredResults(backend results.Backend, changed func(), log *slog.Logger) *storedResults {
	return &storedResults{
		backend: backend, changed: changed, log: log, wake: make(chan struct{}, 1), known: map[string]*storedResult{},
	}
}

// get returns what the backend said of a task at most resultAge ago, or before if it has not answered since; false if
// it has not answered at all. One that is new is waited for until ctx ends.
func (s *storedResults) get(ctx context.Context, id string) (r results.Result, ok bool, err error) {
	e := s.want(id)
	if e == nil {
		return r, false, nil
	}
	select {
	case <-e.first:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.result, !e.at.IsZero(), e.err
}

// want marks a record as used. It returns nil if run is not running.
func (s *storedResults) want(id string) *storedResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return nil
	}
	e := s.known[id]
	if e == nil {
		e = &storedResult{id: id, first: make(chan struct{})}
		s.known[id] = e
	}
	e.again = true
	s.signal()
	return e
}

func (s *storedResults) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run reads until ctx ends. It returns nil.
func (s *storedResults) run(ctx context.Context) error {
	s.setRunning(true)
	defer s.setRunning(false)
	var readers sync.WaitGroup
	defer readers.Wait()
	for range resultReaders {
		readers.Go(func() { s.read(ctx) })
	}
	return nil
}

func (s *storedResults) setRunning(running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
}

// read reads one record after the other.
func (s *storedResults) read(ctx context.Context) {
	for {
		e, in := s.due(time.Now())
		if e != nil {
			s.refresh(ctx, e)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-time.After(in):
		}
	}
}

// due takes a record that is to be read. If there is none, it tells how long that will be so, and forgets those that
// nobody looks at.
func (s *storedResults) due(now time.Time) (e *storedResult, in time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in = resultKept
	for id, e := range s.known {
		age := now.Sub(e.at)
		switch {
		case e.reading:
		case e.again && age >= resultAge:
			e.again, e.reading = false, true
			s.signal() // another reader may find another one
			return e, 0
		case e.again:
			in = min(in, resultAge-age)
		case age > resultKept:
			delete(s.known, id)
		}
	}
	return nil, in
}

func (s *storedResults) refresh(ctx context.Context, e *storedResult) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	r, err := s.backend.Result(ctx, e.id)
	if err != nil && !errors.Is(err, results.ErrMissing) && ctx.Err() == nil {
		s.log.WarnContext(ctx, "result of a task cannot be read", "error", err)
	}
	s.mu.Lock()
	first := e.at.IsZero()
	another := first || !same(e, r, err)
	e.result, e.err, e.at, e.reading = r, err, time.Now(), false
	s.mu.Unlock()
	if first {
		close(e.first)
	}
	if another {
		s.changed()
	}
}

// same reports whether a record has stayed what pages show of it.
func same(e *storedResult, r results.Result, err error) bool {
	if (e.err == nil) != (err == nil) || errors.Is(e.err, results.ErrMissing) != errors.Is(err, results.ErrMissing) {
		return false
	}
	return e.result.Status == r.Status && e.result.DoneAt.Equal(r.DoneAt) && string(e.result.Value) == string(r.Value) &&
		e.result.Exception == r.Exception && e.result.Traceback == r.Traceback
}
