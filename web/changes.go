package web

import (
	"context"
	"sync"
)

// changes joins what makes open pages out of date: changes of the backend and of what is known beyond its events, and
// new numbers beside views.
type changes struct {
	sources []func() <-chan struct{} // each returns a channel that is closed at its next change

	mu   sync.Mutex
	next chan struct{} // closed at the next change
}

func newChanges(sources ...func() <-chan struct{}) *changes {
	return &changes{sources: sources, next: make(chan struct{})}
}

// Changed returns a channel that is closed after the next change.
func (c *changes) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// note says that something has changed.
func (c *changes) note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}

// run passes changes on until ctx ends. It returns nil.
func (c *changes) run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	for _, source := range c.sources {
		all.Go(func() { c.follow(ctx, source) })
	}
	return nil
}

func (c *changes) follow(ctx context.Context, source func() <-chan struct{}) {
	changed := source()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		changed = source() // before anybody waits for the next one, so that none goes unseen
		c.note()
	}
}
