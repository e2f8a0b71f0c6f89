package auth

import "sync"

// notice tells many at once that something has ended: sessions, tokens or passwords. The zero value is ready.
type notice struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that is closed with the next call of tell.
func (n *notice) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

func (n *notice) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}
