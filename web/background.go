package web

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// background reads values for open pages, so that no page waits long for one. A value that was used since it was read is
// read again once it is old. It is safe for concurrent use.
type background[T any] struct {
	what    string        // is read, for the log
	age     time.Duration // after which a value is read again
	kept    time.Duration // after which an unused value is removed
	readers int           // at once
	same    func(a, b T) bool
	changed func() // called when a value has changed
	log     *slog.Logger
	wake    chan struct{} // holds one element when there may be something to read

	mu      sync.Mutex
	running bool
	entries map[string]*entry[T]
}

type entry[T any] struct {
	read    func(ctx context.Context) (T, error)
	value   T // the last one that was read without an error
	err     error
	at      time.Time     // when it was last read, zero if it never was
	used    bool          // since it was last read
	reading bool          // by one of the readers
	first   chan struct{} // closed once it has been read
}

// newBackground returns b, of which the fields up to log are set, ready for use.
func newBackground[T any](b *background[T]) *background[T] {
	b.wake, b.entries = make(chan struct{}, 1), map[string]*entry[T]{}
	return b
}

// get returns the last value of key, false if it has not been read yet. A new one is read and waited for until ctx ends.
func (b *background[T]) get(ctx context.Context, key string, read func(ctx context.Context) (T, error)) (value T, ok bool, err error) {
	e := b.use(key, read)
	if e == nil {
		return value, false, nil
	}
	select {
	case <-e.first:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.value, !e.at.IsZero(), e.err
}

// use marks an entry as used. It returns nil if nothing is read because run is not running.
func (b *background[T]) use(key string, read func(ctx context.Context) (T, error)) *entry[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running {
		return nil
	}
	e := b.entries[key]
	if e == nil {
		e = &entry[T]{read: read, first: make(chan struct{})}
		b.entries[key] = e
	}
	e.used = true
	b.signal()
	return e
}

func (b *background[T]) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run reads until ctx ends. It returns nil.
func (b *background[T]) run(ctx context.Context) error {
	b.setRunning(true)
	defer b.setRunning(false)
	var readers sync.WaitGroup
	defer readers.Wait()
	for range b.readers {
		readers.Go(func() { b.readDue(ctx) })
	}
	return nil
}

func (b *background[T]) setRunning(running bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = running
}

// readDue reads one entry after the other.
func (b *background[T]) readDue(ctx context.Context) {
	for {
		e, in := b.due(time.Now())
		if e != nil {
			b.refresh(ctx, e)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		case <-time.After(in):
		}
	}
}

// due takes an entry that is to be read. If there is none, it returns after how long there may be one. It removes unused
// entries.
func (b *background[T]) due(now time.Time) (e *entry[T], in time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in = b.kept
	for key, e := range b.entries {
		age := now.Sub(e.at)
		switch {
		case e.reading:
		case e.used && age >= b.age:
			e.used, e.reading = false, true
			b.signal() // another reader may find another entry
			return e, 0
		case e.used:
			in = min(in, b.age-age)
		case age > b.kept:
			delete(b.entries, key)
		}
	}
	return nil, in
}

func (b *background[T]) refresh(ctx context.Context, e *entry[T]) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	value, err := e.read(ctx)
	if err != nil && ctx.Err() == nil {
		b.log.WarnContext(ctx, "read in the background", "what", b.what, "error", err)
	}
	b.mu.Lock()
	first := e.at.IsZero()
	changed := first || (err == nil) != (e.err == nil) || err == nil && !b.same(e.value, value)
	if err == nil {
		e.value = value
	}
	e.err, e.at, e.reading = err, time.Now(), false
	b.mu.Unlock()
	if first {
		close(e.first)
	}
	if changed {
		b.changed()
	}
}
