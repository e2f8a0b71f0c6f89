// Package mutex is Lamport's algorithm for mutual exclusion without a coordinator (Time, Clocks, and the Ordering of
// Events in a Distributed System, Communications of the ACM 21(7), 1978). A Process is a deterministic state machine: requests,
// releases and messages in, messages and grants out. A Mutex makes a lock for goroutines of it.
//
// The algorithm needs 3(n−1) messages for each time that one of n processes takes the lock. It requires that
//
//   - messages from a process to another arrive in the order in which they were sent, none lost. Sequence numbers check that:
//     after a gap, a Process no longer believes the sender, so it waits rather than break exclusion.
//   - no process crashes. The others wait for one that has, since they cannot tell it from a slow one. A failure
//     detector may say whom to suspect: it makes a Process wait longer, never less.
//
// The package reads no wall clock and sends nothing by itself.
package mutex

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// Errors of a Process. None of them changes what it knows, but ErrOrder and ErrProtocol, after which it believes the sender no more.
var (
	// ErrRequested: the process has requested the lock already.
	ErrRequested = errors.New("the lock is requested already")
	// ErrNotRequested: there is nothing to release.
	ErrNotRequested = errors.New("the lock is not requested")
	// ErrOrder: a message is missing before this one, or messages were reordered.
	ErrOrder = errors.New("messages are lost or out of order")
	// ErrProtocol: the sender does not follow the algorithm.
	ErrProtocol = errors.New("unexpected message")
	// ErrStranger: the message is from a process that is not a peer, or to another process.
	ErrStranger = errors.New("not from a peer to this process")
)

// Process is one process that takes part. It is not safe for concurrent use, but its clock is, and may be shared with
// whatever else happens in the process.
type Process struct {
	self  string
	clock *clock.Lamport
	peers []peer        // all other processes, by name
	queue []clock.Stamp // requests of all processes, in order: Clock and Origin, Micros is 0
	own   clock.Stamp   // this process's request, zero if there is none
	held  bool
}

// peer is another process.
type peer struct {
	name      string
	sent      uint64 // sequence number of the last message to it
	received  uint64 // sequence number of the last message from it
	heard     int64  // timestamp of that message
	broken    bool   // messages are missing, so none that follow count
	suspected bool
}

// Output is what a Process does in response to an input.
type Output struct {
	Send    []Message // in this order
	Granted bool      // the process has the lock from now on
}

// New returns a process that neither has nor wants the lock. All processes must start with the same set of names, self and peers
// together. They advance c, which may be shared; a nil c is a clock of its own.
func New(self string, peers []string, c *clock.Lamport) (*Process, error) {
	if c == nil {
		c = new(clock.Lamport)
	}
	p := &Process{self: self, clock: c}
	for _, name := range slices.Sorted(slices.Values(peers)) {
		if name == self || len(p.peers) > 0 && p.peers[len(p.peers)-1].name == name {
			return nil, fmt.Errorf("process %q is named twice", name)
		}
		p.peers = append(p.peers, peer{name: name})
	}
	return p, nil
}

// Name returns the name of the process.
func (p *Process) Name() string { return p.self }

// Held reports whether the process has the lock.
func (p *Process) Held() bool { return p.held }

// Now returns the reading of the process's clock.
func (p *Process) Now() int64 { return p.clock.Value() }

// Requested returns the stamp of the process's request: Clock and Origin. ok is false if there is none.
func (p *Process) Requested() (s clock.Stamp, ok bool) { return p.own, p.own.Clock != 0 }

// Queue returns the requests that the process knows of, first come first. The caller must not change it; it is valid until
// the next input.
func (p *Process) Queue() []clock.Stamp { return p.queue }

// Peers returns the names of the other processes, sorted.
func (p *Process) Peers() []string {
	names := make([]string, len(p.peers))
	for i := range p.peers {
		names[i] = p.peers[i].name
	}
	return names
}

// Heard reports whether the process waits for the lock and something later than its request was heard from the other process, which
// it does not suspect.
func (p *Process) Heard(name string) bool {
	q := p.find(name)
	return q != nil && p.own.Clock != 0 && p.heardFrom(q)
}

// Waiting returns the names of the processes from which nothing later than the request was heard, or that are suspected,
// sorted. It is empty without a request.
func (p *Process) Waiting() []string {
	var names []string
	for i := range p.peers {
		if p.own.Clock != 0 && !p.heardFrom(&p.peers[i]) {
			names = append(names, p.peers[i].name)
		}
	}
	return names
}

// Request asks for the lock.
//
// Rule 1: "To request the resource, process Pi sends the message Tm:Pi requests resource to every other process, and puts
// that message on its request queue, where Tm is the timestamp of the message."
func (p *Process) Request() (Output, error) {
	if p.own.Clock != 0 {
		return Output{}, ErrRequested
	}
	p.own = clock.Stamp{Clock: p.clock.Tick(), Origin: p.self}
	p.enqueue(p.own)
	return p.grant(Output{Send: p.broadcast(Request, p.own.Clock)}), nil
}

// Release gives the lock back, or withdraws a request that was not granted.
//
// Rule 3: "To release the resource, process Pi removes any Tm:Pi requests resource message from its request queue and sends a
// (timestamped) Pi releases resource message to every other process."
func (p *Process) Release() (Output, error) {
	if p.own.Clock == 0 {
		return Output{}, ErrNotRequested
	}
	p.dequeue(p.self)
	p.own, p.held = clock.Stamp{}, false
	return Output{Send: p.broadcast(Release, p.clock.Tick())}, nil
}

// Receive takes a message from another process. A repetition of the message before is dropped.
func (p *Process) Receive(m Message) (Output, error) {
	from := p.find(m.From)
	switch {
	case from == nil || m.To != p.self:
		return Output{}, fmt.Errorf("%w: %.100q to %.100q", ErrStranger, m.From, m.To)
	case from.broken:
		return Output{}, fmt.Errorf("%w: message %d of %s", ErrOrder, m.Sequence, m.From)
	case m.Sequence <= from.received:
		return Output{}, nil
	case m.Sequence != from.received+1:
		from.broken = true
		return Output{}, fmt.Errorf("%w: message %d of %s after %d", ErrOrder, m.Sequence, m.From, from.received)
	case !clock.Valid(m.Clock) || m.Kind == Request && p.queued(m.From):
		from.broken = true
		return Output{}, fmt.Errorf("%w: %s of %s at %d", ErrProtocol, m.Kind, m.From, m.Clock)
	}
	from.received, from.heard = m.Sequence, m.Clock
	now := p.clock.Witness(m.Clock)
	var out Output
	switch m.Kind {
	case Request:
		// Rule 2: "When process Pj receives the message Tm:Pi requests resource, it places it on its request queue and sends a
		// (timestamped) acknowledgment message to Pi."
		p.enqueue(clock.Stamp{Clock: m.Clock, Origin: m.From})
		out.Send = []Message{p.message(from, Acknowledge, now)}
	case Release:
		// Rule 4: "When process Pj receives a Pi releases resource message, it removes any Tm:Pi requests resource message from
		// its request queue."
		p.dequeue(m.From)
	case Acknowledge: // that it was heard is all it says
	default:
		from.broken = true
		return Output{}, fmt.Errorf("%w: %s of %s", ErrProtocol, m.Kind, m.From)
	}
	return p.grant(out), nil
}

// grant gives the process the lock if it is its turn.
//
// Rule 5: "Process Pi is granted the resource when the following two conditions are satisfied: (i) There is a Tm:Pi requests
// resource message in its request queue which is ordered before any other request in its queue by the relation ⇒.
// (ii) Pi has received a message from every other process timestamped later than Tm."
func (p *Process) grant(out Output) Output {
	if p.held || p.own.Clock == 0 || p.queue[0] != p.own {
		return out
	}
	for i := range p.peers {
		if !p.heardFrom(&p.peers[i]) {
			return out
		}
	}
	p.held, out.Granted = true, true
	return out
}

// heardFrom reports whether a message later than the own request came from q. Equal timestamps are ordered by process, as requests are.
func (p *Process) heardFrom(q *peer) bool {
	return !q.broken && !q.suspected && clock.Stamp{Clock: q.heard, Origin: q.name}.Compare(p.own) > 0
}

// Suspect takes note that a process may have crashed. The lock is not granted until it is trusted again.
func (p *Process) Suspect(name string) {
	if q := p.find(name); q != nil {
		q.suspected = true
	}
}

// Trust withdraws a suspicion.
func (p *Process) Trust(name string) Output {
	if q := p.find(name); q != nil {
		q.suspected = false
	}
	return p.grant(Output{})
}

// Add lets another process take part from now on, which is beyond the paper. The first message to it is the own request, if there
// is one, with its old timestamp. The new process must add all the others before it requests the lock: it then waits until it has
// heard from each of them, and so knows their requests.
func (p *Process) Add(name string) (Output, error) {
	i, found := p.search(name)
	if found || name == p.self {
		return Output{}, fmt.Errorf("process %.100q is named twice", name)
	}
	p.peers = slices.Insert(p.peers, i, peer{name: name})
	if p.own.Clock != 0 {
		return Output{Send: []Message{p.message(&p.peers[i], Request, p.own.Clock)}}, nil
	}
	return Output{Send: []Message{p.message(&p.peers[i], Acknowledge, p.clock.Tick())}}, nil
}

// Remove lets a process take part no longer, and forgets its request. Exclusion holds only if that process has ended, or does
// not act as the owner of the lock any more.
func (p *Process) Remove(name string) Output {
	if i, found := p.search(name); found {
		p.peers = slices.Delete(p.peers, i, i+1)
		p.dequeue(name)
	}
	return p.grant(Output{})
}

// Clone returns a copy with a clock of its own, to explore what could happen.
func (p *Process) Clone() *Process {
	c := *p
	c.clock = new(clock.Lamport)
	c.clock.Restore(p.clock.Value())
	c.peers, c.queue = slices.Clone(p.peers), slices.Clone(p.queue)
	return &c
}

func (p *Process) broadcast(k Kind, at int64) []Message {
	messages := make([]Message, len(p.peers))
	for i := range p.peers {
		messages[i] = p.message(&p.peers[i], k, at)
	}
	return messages
}

func (p *Process) message(to *peer, k Kind, at int64) Message {
	to.sent++
	return Message{Kind: k, From: p.self, To: to.name, Sequence: to.sent, Clock: at}
}

func (p *Process) search(name string) (int, bool) {
	return slices.BinarySearchFunc(p.peers, name, func(q peer, name string) int { return cmp.Compare(q.name, name) })
}

// find returns the peer of that name, nil if there is none.
func (p *Process) find(name string) *peer {
	i, found := p.search(name)
	if !found {
		return nil
	}
	return &p.peers[i]
}

func (p *Process) enqueue(s clock.Stamp) {
	i, _ := slices.BinarySearchFunc(p.queue, s, clock.Stamp.Compare)
	p.queue = slices.Insert(p.queue, i, s)
}

func (p *Process) dequeue(name string) {
	p.queue = slices.DeleteFunc(p.queue, func(s clock.Stamp) bool { return s.Origin == name })
}

func (p *Process) queued(name string) bool {
	return slices.ContainsFunc(p.queue, func(s clock.Stamp) bool { return s.Origin == name })
}
