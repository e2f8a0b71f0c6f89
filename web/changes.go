package web

import (
	"context"
	"sync"
)

// changes joins what makes open pages out of date: changes of the backend, and new numbers beside views.
type changes struct {
	backend func() <-chan struct{}
	numbers chan struct{} // holds one element when there are new numbers

	mu   sync.Mutex
	next chan struct{} // closed at the next change
}

func newChanges(backend func() <-chan struct{}) *changes {
	return &changes{backend: backend, numbers: make(chan struct{}, 1), next: make(chan struct{})}
}

// Changed returns a channel that is closed after the next change.
func (c *changes) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// note says that there are new numbers.
func (c *changes) note() {
	select {
	case c.numbers <- struct{}{}:
	default:
	}
}

// run passes changes on until ctx ends. It returns nil.
func (c *changes) run(ctx context.Context) error {
	changed := c.backend()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-c.numbers:
		}
		changed = c.backend() // before anybody waits for the next one, so that none goes unseen
		c.mu.Lock()
		close(c.next)
		c.next = make(chan struct{})
		c.mu.Unlock()
	}
}
