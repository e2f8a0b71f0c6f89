package simulation

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/clock/mutex"
)

// Fault is a planted mistake, to show that the checks find it.
type Fault string

// The faults. The network numbers messages itself if there is one, so that sequence numbers do not give it away.
const (
	NoFault Fault = ""
	FIFO    Fault = "fifo" // a message may overtake the one before it
	Ack     Fault = "ack"  // requests are acknowledged by the network, before they arrive
	Tie     Fault = "tie"  // of requests with the same timestamp, every process puts its own first
)

// Invariants, as an InvariantError names them.
const (
	OneOwner      = "at most one owner"
	OwnerReleases = "only the owner releases"
	Balance       = "claims = releases or releases + 1"
	Order         = "grants in the order of requests"
	Progress      = "every request is granted in the end"
)

// kind is the kind of a step.
type kind uint8

const (
	request kind = iota
	release
	deliver
)

// step is one thing that happens.
type step struct {
	kind    kind
	process int
	from    int  // deliver: the sender
	second  bool // deliver: not the first message of the channel, but the one after it
}

// sent is a message on its way.
type sent struct {
	mutex.Message
	id    int // counts all messages, from 1
	known int // releases that happened before it was sent
}

// system is processes and the channels between them. Every step checks the invariants.
type system struct {
	fault     Fault
	processes []*mutex.Process
	names     []string
	channels  [][]sent // from·n + to; oldest first
	numbers   []uint64 // of the messages that each channel delivered, counted if there is a fault
	refused   []bool   // channels whose messages are not believed any more
	wanted    []int    // requests made by each process
	known     []int    // releases that happened before the state of each process

	causal                     bool // a grant must follow from the release before it
	owner                      int  // -1 if there is none
	granted                    clock.Stamp
	claims, releases, messages int
	steps                      int
}

func newSystem(n int, fault Fault) *system {
	s := &system{
		fault: fault, names: make([]string, n), processes: make([]*mutex.Process, n), channels: make([][]sent, n*n),
		numbers: make([]uint64, n*n), refused: make([]bool, n*n), wanted: make([]int, n), known: make([]int, n), owner: -1,
	}
	for i := range s.names {
		s.names[i] = fmt.Sprintf("P%0*d", len(strconv.Itoa(n-1)), i)
	}
	for i := range s.processes {
		others := slices.Delete(slices.Clone(s.names), i, i+1)
		p, err := mutex.New(s.nameFor(i), others, nil)
		if err != nil {
			panic(err) // names differ
		}
		s.processes[i] = p
	}
	return s
}

// nameFor is the name of a process as it knows itself. With the fault Tie it comes before all others.
func (s *system) nameFor(i int) string {
	if s.fault == Tie {
		return "!" + s.names[i]
	}
	return s.names[i]
}

// successor returns the system after a step, and leaves s as it is.
func (s *system) successor(t step) (*system, error) {
	c := *s
	c.processes, c.wanted, c.known = slices.Clone(s.processes), slices.Clone(s.wanted), slices.Clone(s.known)
	if s.fault != NoFault {
		c.numbers, c.refused = slices.Clone(s.numbers), slices.Clone(s.refused)
	}
	c.processes[t.process] = c.processes[t.process].Clone()
	c.channels = make([][]sent, len(s.channels))
	for i, queue := range s.channels {
		c.channels[i] = slices.Clip(queue) // so that append copies
	}
	_, err := c.apply(t)
	return &c, err
}

// possible reports whether the step can happen.
func (s *system) possible(t step) bool {
	p := s.processes[t.process]
	switch t.kind {
	case request:
		_, requested := p.Requested()
		return !requested
	case release:
		return p.Held()
	case deliver:
		waiting := len(s.channels[t.from*len(s.names)+t.process])
		return waiting > 1 || waiting == 1 && !t.second
	}
	return false
}

// apply makes a step that is possible. Its error is the name of the invariant that does not hold afterwards.
func (s *system) apply(t step) (Event, error) {
	s.steps++
	p := s.processes[t.process]
	e := Event{Step: s.steps, Process: s.names[t.process]}
	var out mutex.Output
	var err error
	switch t.kind {
	case request:
		e.Kind = "request"
		s.wanted[t.process]++
		out, err = p.Request()
	case release:
		e.Kind = "release"
		if s.owner != t.process {
			return e, broken(OwnerReleases)
		}
		s.owner, s.releases = -1, s.releases+1
		s.known[t.process] = s.releases
		out, err = p.Release()
	case deliver:
		m := s.take(t)
		e.Kind, e.From, e.Message, e.Received = "receive", s.names[t.from], m.Kind.String(), m.id
		s.known[t.process] = max(s.known[t.process], m.known)
		if out, err = p.Receive(m.Message); err != nil {
			s.refused[t.from*len(s.names)+t.process] = true
		}
	}
	if err != nil {
		e.Error = err.Error() // the process believes the sender no more: Progress will not hold
	}
	for _, m := range out.Send {
		e.Sent = append(e.Sent, s.send(t.process, m))
	}
	e.Granted = out.Granted
	e.Clock = p.Now()
	return e, s.check(t.process, e.Granted)
}

// send puts a message on its channel and returns its number.
func (s *system) send(from int, m mutex.Message) int {
	s.messages++
	id := s.messages
	to, n := slices.Index(s.names, m.To), len(s.names)
	m.From = s.names[from]
	s.channels[from*n+to] = append(s.channels[from*n+to], sent{m, id, s.known[from]})
	if s.fault == Ack && m.Kind == mutex.Request {
		s.messages++
		forged := mutex.Message{Kind: mutex.Acknowledge, From: m.To, To: m.From, Clock: m.Clock + 1}
		s.channels[to*n+from] = append(s.channels[to*n+from], sent{forged, s.messages, s.known[from]})
	}
	return id
}

// take removes a message from its channel.
func (s *system) take(t step) sent {
	i := t.from*len(s.names) + t.process
	queue, at := s.channels[i], 0
	if t.second {
		at = 1
	}
	m := queue[at]
	if at == 0 {
		s.channels[i] = queue[1:]
	} else {
		s.channels[i] = append([]sent{queue[0]}, queue[2:]...)
	}
	if s.fault != NoFault {
		s.numbers[i]++
		m.Sequence, m.To = s.numbers[i], s.nameFor(t.process)
	}
	return m
}

// broken is the error of an invariant that does not hold.
type broken string

func (b broken) Error() string { return "broken: " + string(b) }

// check looks at every process after a step of one of them.
func (s *system) check(process int, granted bool) error {
	if granted {
		s.claims++
		stamp, _ := s.processes[process].Requested()
		stamp.Origin = s.names[process]
		if s.owner >= 0 || s.causal && s.known[process] != s.releases {
			return broken(OneOwner)
		}
		if stamp.Compare(s.granted) <= 0 {
			return broken(Order)
		}
		s.owner, s.granted = process, stamp
	}
	for i, p := range s.processes {
		if p.Held() != (i == s.owner) {
			return broken(OneOwner)
		}
	}
	if s.claims != s.releases && s.claims != s.releases+1 {
		return broken(Balance)
	}
	return nil
}

// finished reports an error if nothing can happen any more but a process waits for the lock.
func (s *system) finished() error {
	if s.owner >= 0 || slices.ContainsFunc(s.channels, func(queue []sent) bool { return len(queue) > 0 }) {
		return nil
	}
	for _, p := range s.processes {
		if _, requested := p.Requested(); requested {
			return broken(Progress)
		}
	}
	return nil
}
