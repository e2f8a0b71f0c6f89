package locks

import (
	"context"
	"sync"
	"time"
)

// Memory is a Source inside the process, for the demo and tests.
type Memory struct {
	patterns []string
	now      func() time.Time

	mu   sync.Mutex // guards what follows
	held map[string]held
}

// held is one lock.
type held struct {
	value     string
	expiresAt time.Time // zero if it does not expire
}

// NewMemory returns a Memory without locks. Keys that match no pattern are no locks.
func NewMemory(patterns []string, now func() time.Time) *Memory {
	return &Memory{patterns: patterns, now: now, held: make(map[string]held)}
}

// Set stores a lock until it expires, forever if that is zero. If absent is true, it does so only where there is none. It
// reports whether it did.
func (m *Memory) Set(key, value string, expiresAt time.Time, absent bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.entry(key).Missing && absent {
		return false
	}
	m.held[key] = held{value, expiresAt}
	return true
}

// Delete removes a lock.
func (m *Memory) Delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, key)
}

// entry reads a lock, and removes it if it has expired. The caller holds mu.
func (m *Memory) entry(key string) Entry {
	h, ok := m.held[key]
	if !ok {
		return Entry{Key: key, Missing: true}
	}
	e := Entry{Key: key, Value: h.value, TTL: -1}
	if !h.expiresAt.IsZero() {
		if e.TTL = h.expiresAt.Sub(m.now()); e.TTL <= 0 {
			delete(m.held, key)
			return Entry{Key: key, Missing: true}
		}
	}
	if len(e.Value) > MaxValue {
		e.Value, e.Long = e.Value[:MaxValue], true
	}
	return e
}

// Scan implements Source.
func (m *Memory) Scan(context.Context, Cursor) ([]string, Cursor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for key := range m.held {
		if MatchAny(m.patterns, key) && !m.entry(key).Missing {
			keys = append(keys, key)
		}
	}
	return keys, nil, nil
}

// Read implements Source.
func (m *Memory) Read(_ context.Context, keys []string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Entry, len(keys))
	for i, key := range keys {
		list[i] = Entry{Key: key, Missing: true}
		if MatchAny(m.patterns, key) {
			list[i] = m.entry(key)
		}
	}
	return list, nil
}

// Release implements Source.
func (m *Memory) Release(_ context.Context, want Expected) (Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcome := want.Matches(m.entry(want.Key))
	if outcome == Released {
		delete(m.held, want.Key)
	}
	return outcome, nil
}

// String implements Source.
func (m *Memory) String() string { return "memory" }

// Close implements Source.
func (m *Memory) Close() error { return nil }
