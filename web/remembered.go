package web

import (
	"sync"
	"time"
)

// How long what was read is shown again as it was: for a while, and ten times as long as reading it took.
const (
	rememberedFor   = 2 * time.Second
	rememberedShare = 10
	maxRemembered   = 256
)

// remembered keeps what pages show that change all the time, so that each change does not read it anew. It is safe for
// concurrent use; the zero value is ready.
type remembered[T any] struct {
	mu    sync.Mutex
	known map[string]recollection[T]
}

type recollection[T any] struct {
	value T
	until time.Time
}

// get returns what read returned lately, or returns now.
func (r *remembered[T]) get(key string, read func() (T, error)) (T, error) {
	r.mu.Lock()
	known, ok := r.known[key]
	r.mu.Unlock()
	start := time.Now()
	if ok && start.Before(known.until) {
		return known.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxRemembered {
		r.known = map[string]recollection[T]{}
	}
	took := time.Since(start)
	r.known[key] = recollection[T]{value, start.Add(took + max(rememberedFor, rememberedShare*took))}
	return value, nil
}
