package web

import (
	"sync"
	"time"
)

const (
	maxCached  = 256 // values of one cache, unless they are large
	cacheShare = 10  // a value is kept for so many times as long as it took to read
)

// cache keeps what pages show that changes all the time, so that not every change reads it anew: each value for the age
// of the cache, or longer if it took long to read. Errors are not kept. It is safe for concurrent use.
type cache[T any] struct {
	age  time.Duration
	most int // values

	mu     sync.Mutex
	values map[string]cached[T]
}

type cached[T any] struct {
	value T
	until time.Time
}

func newCache[T any](age time.Duration) *cache[T] {
	return &cache[T]{age: age, most: maxCached, values: map[string]cached[T]{}}
}

// get returns the cached value of key, or calls read.
func (c *cache[T]) get(key string, read func() (T, error)) (T, error) {
	c.mu.Lock()
	found, ok := c.values[key]
	c.mu.Unlock()
	start := time.Now()
	if ok && start.Before(found.until) {
		return found.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.values) >= c.most {
		clear(c.values)
	}
	took := time.Since(start)
	c.values[key] = cached[T]{value, start.Add(took + max(c.age, cacheShare*took))}
	return value, nil
}
