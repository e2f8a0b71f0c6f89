package peers

import (
	"cmp"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/clock/mutex"
)

// group is what a process knows of the peers. It is a state machine: messages and times in, messages out. The lock is requested
// once after joining and kept, so that its owner is the leader.
//
// The algorithm has a fixed set of processes. Here a process takes part under an id that is new whenever it joins, so that one which was
// restarted, or lost messages, is another process that begins anew. A process that joins listens first; whoever hears of it for the
// first time adds it and sends it its own request, if there is one. The new one requests the lock when it has listened, and then has to hear from
// everybody that it knows, or that those know. One that leaves says so, or is removed after it was silent for long: then the lock may have two
// owners for a while, if it was silent but alive. The one whose request is later gives up when they hear of each other.
type group struct {
	host   string
	pid    int
	times  times
	clock  clock.Lamport
	random func() string // returns an id

	id        string
	sequence  uint64
	process   *mutex.Process
	members   map[string]*member
	joined    time.Time
	announced time.Time
	rejoin    time.Time // when to join anew, zero if not
	requested bool
	refused   time.Time            // when a peer beyond maxMembers was heard last
	led       time.Time            // when somebody was known to lead last, at first when this process began
	left      map[string]time.Time // ids that are not used again, which others may still name
	out       []message
	note      func() string // what this process tells the others while it leads
	noted     string        // the last note of another that led
}

// times are the intervals of the protocol.
type times struct {
	announce time.Duration // between messages of a peer
	lease    time.Duration // after which a silent peer may have ended
	forget   time.Duration // after which it has
	listen   time.Duration // after joining, before the lock is requested
}

// member is another process.
type member struct {
	host   string
	pid    int
	joined time.Time
	heard  time.Time // or when another peer named it first
	named  bool      // by another peer, and not heard yet
	silent bool
	leads  bool
	lists  bool // its members had this process
}

func newGroup(host string, pid int, t times, now time.Time) *group {
	return &group{host: host, pid: pid, times: t, led: now, left: make(map[string]time.Time), note: func() string { return "" }, random: func() string { return strings.ToLower(rand.Text()[:13]) }}
}

// join begins anew.
func (g *group) join(now time.Time) {
	if g.process != nil {
		g.leave()
	}
	g.id, g.sequence = g.random(), 0
	g.process, _ = mutex.New(g.id, nil, &g.clock) // one name cannot be there twice
	g.members, g.joined, g.rejoin, g.requested, g.refused = make(map[string]*member), now, time.Time{}, false, time.Time{}
	g.send(now, nil)
}

// leave tells the peers that this process takes part no longer.
func (g *group) leave() {
	g.sequence++
	m := message{Version: version, From: g.id, Host: g.host, PID: g.pid, Sequence: g.sequence, Leads: g.process.Held(), Leaving: true}
	if m.Leads {
		m.Note = g.note()
	}
	g.out = append(g.out, m)
}

// send announces the process, with messages of the algorithm.
func (g *group) send(now time.Time, lock []mutex.Message) {
	g.sequence++
	m := message{
		Version: version, From: g.id, Host: g.host, PID: g.pid, Sequence: g.sequence, Leads: g.process.Held(), Lock: lock,
	}
	for id, other := range g.members {
		if !other.named && !other.silent {
			m.Members = append(m.Members, id)
		}
	}
	slices.Sort(m.Members)
	if m.Leads {
		m.Note = g.note()
	}
	g.announced = now
	g.out = append(g.out, m)
}

// receive takes a message of any peer.
func (g *group) receive(m message, now time.Time) {
	if m.From == g.id {
		return
	}
	if m.Leads && m.Note != "" {
		g.noted = m.Note
	}
	if m.Leaving {
		g.remove(m.From, now)
		if len(g.left) < maxLeft {
			g.left[m.From] = now
		}
		return
	}
	from := g.add(m.From, false, now)
	if from == nil {
		return
	}
	from.host, from.pid, from.heard, from.named, from.leads = m.Host, m.PID, now, false, m.Leads
	if m.Leads {
		g.led = now
	}
	if from.silent {
		from.silent = false
		g.do(g.process.Trust(m.From), now)
	}
	lists := slices.Contains(m.Members, g.id)
	if from.lists && !lists { // this process was silent for it, and perhaps forgotten
		g.restart(now)
		return
	}
	from.lists = lists
	for _, id := range m.Members {
		if _, left := g.left[id]; g.members[id] == nil && id != g.id && !left && len(id) <= maxName {
			g.add(id, true, now)
		}
	}
	for _, l := range m.Lock {
		if l.To != g.id || l.From != m.From {
			continue
		}
		out, err := g.process.Receive(l)
		if errors.Is(err, mutex.ErrOrder) || errors.Is(err, mutex.ErrProtocol) {
			g.restart(now)
			return
		}
		g.do(out, now)
	}
	g.giveUp(now)
}

// restart has the process join anew, but not more often than it announces itself.
func (g *group) restart(now time.Time) {
	if g.rejoin.IsZero() {
		g.rejoin = later(now, g.joined.Add(g.times.announce))
	}
}

// giveUp releases a lock that an earlier request claims, and requests it again.
func (g *group) giveUp(now time.Time) {
	if !g.process.Held() || g.process.Queue()[0].Origin == g.id {
		return
	}
	released, err := g.process.Release()
	if err != nil {
		return
	}
	g.do(released, now)
	g.request(now)
}

func (g *group) request(now time.Time) {
	if out, err := g.process.Request(); err == nil {
		g.requested = true
		g.do(out, now)
	}
}

// add returns the member of that id, nil if there are too many.
func (g *group) add(id string, named bool, now time.Time) *member {
	if known := g.members[id]; known != nil {
		return known
	}
	if len(g.members) >= maxMembers {
		g.refused = now
		return nil
	}
	out, err := g.process.Add(id)
	if err != nil {
		return nil
	}
	g.members[id] = &member{joined: now, heard: now, named: named}
	g.do(out, now)
	return g.members[id]
}

func (g *group) remove(id string, now time.Time) {
	if g.members[id] != nil {
		delete(g.members, id)
		g.do(g.process.Remove(id), now)
	}
}

// do publishes what the algorithm sends, and who leads if that has changed.
func (g *group) do(out mutex.Output, now time.Time) {
	if len(out.Send) > 0 || out.Granted {
		g.send(now, out.Send)
	}
}

// tick does what is due.
func (g *group) tick(now time.Time) {
	if g.process.Held() {
		g.led = now
	}
	if !g.rejoin.IsZero() && !now.Before(g.rejoin) {
		g.join(now)
		return
	}
	maps.DeleteFunc(g.left, func(_ string, at time.Time) bool { return now.Sub(at) >= g.times.forget })
	for _, id := range g.ids() {
		m := g.members[id]
		switch silence := now.Sub(m.heard); {
		case silence >= g.times.forget:
			g.remove(id, now)
		case silence >= g.times.lease && !m.silent:
			m.silent, m.leads = true, false
			g.process.Suspect(id)
		}
	}
	if !g.requested && now.Sub(g.joined) >= g.times.listen {
		g.request(now)
	}
	if now.Sub(g.announced) >= g.times.announce {
		g.send(now, nil)
	}
}

// take returns the messages to publish.
func (g *group) take() []message {
	out := g.out
	g.out = nil
	return out
}

func (g *group) ids() []string {
	ids := make([]string, 0, len(g.members))
	for id := range g.members {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// leader returns the id of the process with the first request, which has the lock or will have it; empty if there is none.
func (g *group) leader() string {
	if queue := g.process.Queue(); len(queue) > 0 {
		return queue[0].Origin
	}
	return ""
}

// silent returns the peer whose silence keeps the lock from being known: it may have the lock, or must be heard before this process has
// it. It is nil if there is none.
func (g *group) silent() *member {
	first := g.leader()
	if first != g.id {
		if m := g.members[first]; m != nil && m.silent {
			return m
		}
		return nil
	}
	if g.process.Held() {
		return nil
	}
	for _, id := range g.process.Waiting() {
		if m := g.members[id]; m.silent {
			return m
		}
	}
	return nil
}

// crowded reports whether there are more peers than this process takes note of.
func (g *group) crowded(now time.Time) bool {
	return !g.refused.IsZero() && now.Sub(g.refused) < g.times.forget
}

func later(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
}
