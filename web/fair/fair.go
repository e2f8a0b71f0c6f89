// Package fair shares a few slots among clients, so that one who asks for much waits for itself and not the others for
// it. It does not know what is done in a slot.
package fair

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// maxWaiting is how many tickets of one client may wait.
const maxWaiting = 64

// ErrBusy says that too much of a client waits already.
var ErrBusy = errors.New("too many requests of this client are waiting")

// Client is who asks. Those behind one address share what it may have.
type Client struct {
	Address string // of the network, with the user if one is known
	Part    string // a socket or a program behind it
}

type contextKey struct{}

// NewContext returns a context of what is done for a client.
func NewContext(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the client that ctx is for, the zero Client if that is nobody.
func FromContext(ctx context.Context) Client {
	c, _ := ctx.Value(contextKey{}).(Client)
	return c
}

// Slots are shared by what holds tickets. It is safe for concurrent use.
type Slots struct {
	mu      sync.Mutex
	free    int
	grants  uint64
	clients map[Client]*share
	held    map[string]int // slots by address
	waiting []*Ticket      // in order of arrival
}

// share is what one client has and waits for.
type share struct {
	held    int
	waiting int
	last    uint64 // its last grant, 0 if there was none while it was known
}

// New returns n slots.
func New(n int) *Slots {
	return &Slots{free: n, clients: map[Client]*share{}, held: map[string]int{}}
}

// Ticket waits for a slot, and then holds it.
type Ticket struct {
	slots   *Slots
	clients []Client // any of which may pay
	ready   chan struct{}
	by      Client
	granted bool
	done    bool
}

// Enter asks for a slot for clients, of which one pays. Leave must follow.
func (s *Slots) Enter(clients ...Client) *Ticket {
	t := &Ticket{slots: s, ready: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, t)
	for _, c := range clients {
		s.join(t, c)
	}
	s.grant()
	return t
}

// Join lets another client pay.
func (t *Ticket) Join(c Client) {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	if !t.granted && !t.done && !slices.Contains(t.clients, c) {
		t.slots.join(t, c)
		t.slots.grant()
	}
}

// Ready returns a channel that is closed when the ticket holds a slot.
func (t *Ticket) Ready() <-chan struct{} { return t.ready }

// By returns the client that pays, once the ticket holds a slot.
func (t *Ticket) By() Client {
	t.slots.mu.Lock()
	defer t.slots.mu.Unlock()
	return t.by
}

// Leave gives the slot back, or waits no longer.
func (t *Ticket) Leave() {
	s := t.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.done:
		return
	case t.granted:
		s.free++
		s.clients[t.by].held--
		if s.held[t.by.Address]--; s.held[t.by.Address] == 0 {
			delete(s.held, t.by.Address)
		}
		s.forget(t.by)
	default:
		s.withdraw(t)
	}
	t.done = true
	s.grant()
}

// Acquire waits for a slot until ctx ends. Its error is that of ctx, or ErrBusy.
func (s *Slots) Acquire(ctx context.Context, c Client) (*Ticket, error) {
	s.mu.Lock()
	busy := s.clients[c] != nil && s.clients[c].waiting >= maxWaiting
	s.mu.Unlock()
	if busy {
		return nil, ErrBusy
	}
	t := s.Enter(c)
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
		t.Leave()
		return nil, ctx.Err()
	}
}

func (s *Slots) join(t *Ticket, c Client) {
	t.clients = append(t.clients, c)
	if s.clients[c] == nil {
		s.clients[c] = &share{}
	}
	s.clients[c].waiting++
}

// withdraw takes a ticket out of the line.
func (s *Slots) withdraw(t *Ticket) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *Ticket) bool { return w == t })
	for _, c := range t.clients {
		s.clients[c].waiting--
		s.forget(c)
	}
}

func (s *Slots) forget(c Client) {
	if h := s.clients[c]; h.held == 0 && h.waiting == 0 {
		delete(s.clients, c)
	}
}

// grant gives free slots to those who may have one: first to who holds the fewest, then to who was served longest ago,
// then to who came first.
func (s *Slots) grant() {
	for s.free > 0 {
		var next *Ticket
		var payer Client
		for _, t := range s.waiting {
			for _, c := range t.clients {
				if s.may(c) && (next == nil || s.before(c, payer)) {
					next, payer = t, c
				}
			}
		}
		if next == nil {
			return
		}
		s.clients[payer].held++ // before withdraw, which would forget it
		s.withdraw(next)
		s.free--
		s.grants++
		s.clients[payer].last = s.grants
		s.held[payer.Address]++
		next.by, next.granted = payer, true
		close(next.ready)
	}
}

// may reports whether a client can have one more. An address holds fewer than three times as many slots as are free, and
// each client fewer than its address could still have: there is one left for who comes next, at the same address or
// another.
func (s *Slots) may(c Client) bool {
	room := (3*s.free - s.held[c.Address] + 3) / 4 // taking one takes away four
	return s.clients[c].held < room
}

func (s *Slots) before(a, b Client) bool {
	x, y := s.clients[a], s.clients[b]
	return cmp.Or(cmp.Compare(x.held, y.held), cmp.Compare(x.last, y.last)) < 0
}
