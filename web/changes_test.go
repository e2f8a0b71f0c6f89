package web

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

// bell tells of changes as a monitor does.
type changeSource struct {
	mu   sync.Mutex
	next chan struct{}
}

func newChangeSource() *changeSource { return &changeSource{next: make(chan struct{})} }

func (b *changeSource) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

func (b *changeSource) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.next)
	b.next = make(chan struct{})
}

func TestChangesOfEverySourceAreToldOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := newChangeSource(), newChangeSource()
		c := newChanges(first.changed, second.changed, func() <-chan struct{} { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.run(ctx) }()
		for name, tell := range map[string]func(){
			"the first source": first.ring, "the second source": second.ring, "new numbers": c.note,
			"both at once": func() { first.ring(); second.ring() },
		} {
			synctest.Wait()
			changed := c.Changed()
			select {
			case <-changed:
				t.Errorf("before %s: told of a change that nobody made", name)
			default:
			}
			tell()
			synctest.Wait()
			select {
			case <-changed:
			default:
				t.Errorf("%s: the change is not told on", name)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v, want nil", err)
		}
	})
}
