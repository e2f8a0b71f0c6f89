package causality

import (
	"cmp"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// Bounds of what hostile events can make a graph do.
const (
	maxLooked      = 64 // executions, or publications, of a task that are compared with each message
	maxGossipLanes = 64 // processes whose heartbeats are followed
)

// builder makes a Graph.
type builder struct {
	g    *Graph
	arcs []arc
	soft []arc // order of reports, which only display uses
}

// processes sorts the events into lanes and lives.
func (b *builder) processes() {
	g := b.g
	of := make(map[clock.Process][]Node)
	for i := range g.events {
		p := g.events[i].Process
		of[p] = append(of[p], Node(i))
	}
	g.lanes = make([]lane, 0, len(of))
	for p, nodes := range of {
		l := lane{process: p}
		l.split(g.events, nodes)
		g.lanes = append(g.lanes, l)
	}
	slices.SortFunc(g.lanes, func(a, b lane) int { return a.process.Compare(b.process) })
	g.place = make([]place, len(g.events))
	for i := range g.lanes {
		for life, nodes := range g.lanes[i].lives {
			for at, n := range nodes {
				g.place[n] = place{int32(i), int32(life), int32(at)}
			}
		}
		for at, n := range g.lanes[i].loose {
			g.place[n] = place{int32(i), -1, int32(at)}
		}
	}
}

// split sorts the events of a process, given by time, into lives: a new one begins where the clock drops although
// time has gone on. Inside a life, clocks and timestamps agree. What comes after a wall clock was set back looks like
// an earlier life.
func (l *lane) split(events []Event, nodes []Node) {
	var life, untimed []Node
	highest, until := int64(0), 0 // the highest clock of what is more than Tolerance older
	for _, n := range nodes {
		e := &events[n]
		switch {
		case e.Clock <= 0:
			l.loose = append(l.loose, n)
			continue
		case e.Stamp.Micros == 0:
			untimed = append(untimed, n)
			continue
		}
		for ; until < len(life) && events[life[until]].Stamp.Micros < e.Stamp.Micros-Tolerance; until++ {
			highest = max(highest, events[life[until]].Clock)
		}
		if e.Clock < highest {
			l.lives = append(l.lives, life)
			life, highest, until = nil, 0, 0
		}
		life = append(life, n)
	}
	if len(life) > 0 {
		l.lives = append(l.lives, life)
	}
	switch len(l.lives) {
	case 0:
		if len(untimed) > 0 {
			l.lives = [][]Node{untimed}
		}
	case 1:
		l.lives[0] = append(l.lives[0], untimed...)
	default: // of which life they are is not known
		l.loose = append(l.loose, untimed...)
	}
	for _, life := range l.lives {
		slices.SortStableFunc(life, func(a, b Node) int { return cmp.Compare(events[a].Clock, events[b].Clock) })
		for i := 1; i < len(life); i++ {
			l.shared = l.shared || events[life[i]].Clock == events[life[i-1]].Clock
		}
	}
}

// vertices gives every event its vertices, and joins those of a process in the order of its reports.
func (b *builder) vertices() {
	g := b.g
	g.vertex, g.moment = make([]int32, len(g.events)), make([]int32, len(g.events))
	for i := range g.events {
		g.moment[i] = int32(g.vertices)
		if g.events[i].early() {
			g.vertices++
			b.arcs = append(b.arcs, arc{int32(g.vertices - 1), int32(g.vertices), Proved})
		}
		g.vertex[i] = int32(g.vertices)
		g.vertices++
	}
	for i := range g.lanes {
		l := &g.lanes[i]
		grade := Proved
		if l.shared {
			grade = Consistent
		}
		for _, life := range l.lives {
			for k := 1; k < len(life); k++ {
				b.follow(life[k-1], life[k], grade)
			}
		}
		for k := 1; k < len(l.lives); k++ {
			b.succeed(l.lives[k-1], l.lives[k], grade)
		}
	}
}

// follow joins two reports of a process.
func (b *builder) follow(from, to Node, grade Grade) {
	g := b.g
	g.edges = append(g.edges, Edge{from, to, SameProcess, grade})
	b.arcs = append(b.arcs, arc{g.vertex[from], g.vertex[to], grade})
	b.soft = append(b.soft, arc{g.vertex[from], g.moment[to], grade})
}

// succeed joins two lives of a pid. That one comes after the other is proved only where clocks and timestamps agree:
// it is true then, whether these are two lives or one whose wall clock was set.
func (b *builder) succeed(before, after []Node, grade Grade) {
	k := 0
	for i, n := range after {
		for k < len(before) && b.g.events[before[k]].Clock < b.g.events[n].Clock {
			k++
		}
		if k > 0 && (i == 0 || k < len(before) || b.g.events[after[i-1]].Clock <= b.g.events[before[k-1]].Clock) {
			b.follow(before[k-1], n, grade)
		} else if i == 0 {
			b.follow(before[len(before)-1], n, Consistent)
		}
	}
}

// join adds an edge between the moments of two events.
func (b *builder) join(from, to Node, kind EdgeKind, grade Grade) {
	if from == to || grade == Unknown {
		return
	}
	b.g.edges = append(b.g.edges, Edge{from, to, kind, grade})
	b.arcs = append(b.arcs, arc{b.g.moment[from], b.g.moment[to], grade})
}

// task has the events of a task that edges between processes begin or end at, by time.
type task struct {
	parent                         string
	sent, received, started, ended []Node
}

// tasks joins the events of each task, and those of tasks to those that they call.
func (b *builder) tasks() {
	g := b.g
	of := make(map[string]*task)
	for i := range g.events {
		e := &g.events[i]
		if !e.Kind.Task() || e.Task == "" {
			continue
		}
		t := of[e.Task]
		if t == nil {
			t = &task{}
			of[e.Task] = t
		}
		if e.Parent != e.Task && e.Parent > t.parent { // those of one task are equal, unless forged
			t.parent = e.Parent
		}
		switch {
		case e.Kind == state.TaskSent:
			t.sent = append(t.sent, Node(i))
		case e.Kind == state.TaskReceived:
			t.received = append(t.received, Node(i))
		case e.Kind == state.TaskStarted:
			t.started = append(t.started, Node(i))
		case e.ended():
			t.ended = append(t.ended, Node(i))
		}
	}
	for i := range g.events {
		e := &g.events[i]
		t := of[e.Task]
		switch {
		case t == nil:
		case e.Kind == state.TaskSent:
			b.called(of, t, Node(i))
		case e.Kind == state.TaskReceived:
			if b.delivered(t, Node(i)) {
				b.descends(of, t, Node(i))
			} else {
				b.called(of, t, Node(i))
			}
		case e.Kind == state.TaskStarted:
			b.begun(t, Node(i))
		}
	}
}

// delivered joins the publication of a message to its receipt r, and reports whether it was seen.
func (b *builder) delivered(t *task, r Node) bool {
	g := b.g
	to := &g.events[r]
	best := Node(-1)
	for _, s := range t.sent[:min(len(t.sent), maxLooked)] {
		from := &g.events[s]
		if from.Attempt != to.Attempt || from.Parent != to.Parent || from.Name != "" && to.Name != "" && from.Name != to.Name {
			continue
		}
		if best < 0 || from.Stamp.Micros <= to.Stamp.Micros {
			best = s
		}
	}
	switch {
	case best < 0:
		return false
	case b.published(t) == best && to.Attempt == 0 && !b.contradicts(best, r):
		b.join(best, r, Message, Proved)
	default:
		b.join(best, r, Message, Consistent)
	}
	return true
}

// contradicts reports whether the wall clock of the host that two events share says that from came after to.
func (b *builder) contradicts(from, to Node) bool {
	a, z := &b.g.events[from], &b.g.events[to]
	return state.Host(a.Process.Hostname) == state.Host(z.Process.Hostname) && a.Stamp.Micros > z.Stamp.Micros+Tolerance
}

// begun joins the receipt of an execution to its start s, and that to its end.
func (b *builder) begun(t *task, s Node) {
	g := b.g
	own := g.place[s]
	if own.life < 0 || g.lanes[own.lane].shared {
		return
	}
	first, last := Node(-1), Node(-1)
	for _, r := range t.received[:min(len(t.received), maxLooked)] {
		switch p := g.place[r]; {
		case p.lane != own.lane || p.life != own.life || p.index > own.index:
		case first < 0:
			first, last = r, r
		case p.index < g.place[first].index:
			first = r
		case p.index > g.place[last].index:
			last = r
		}
	}
	if first < 0 {
		return
	}
	// Whichever execution it is, it began after the first receipt here, unless that of an earlier attempt was missed:
	// a worker may receive the next attempt before it reports that the last one began.
	grade := Proved
	if e := &g.events[first]; e.Attempt > 0 || e.Parent == e.Task || len(t.received) > maxLooked {
		grade = Consistent
	}
	b.join(first, s, Execution, grade)
	if last != first {
		b.join(last, s, Execution, Consistent)
	}
}

// called joins the caller of a message, which an execution of its parent or of its last attempt is, to the
// publication or receipt m of the message, and a publication to the end of that execution. Which execution it was is
// never proved: there may be another one, of which nothing was seen.
func (b *builder) called(of map[string]*task, t *task, m Node) {
	g := b.g
	e := &g.events[m]
	kind, parent := Child, of[e.Parent]
	if e.Attempt > 0 || e.Parent == e.Task {
		kind, parent = Retry, t
	}
	b.descends(of, t, m)
	if parent == nil || parent == t && kind == Child {
		return
	}
	caller := b.caller(parent, parent.started, m, kind)
	if caller < 0 {
		caller = b.caller(parent, parent.received, m, kind)
	}
	if caller < 0 {
		return
	}
	b.join(caller, m, kind, Consistent)
	if e.Kind == state.TaskSent {
		b.returned(parent, caller, m)
	}
}

// descends joins the publication of the nearest ancestor of a message that was seen to the publication or receipt m of
// the message: whichever execution published it came after that.
func (b *builder) descends(of map[string]*task, t *task, m Node) {
	e := &b.g.events[m]
	if s := b.published(t); s >= 0 && s != m {
		if e.Attempt > 0 || e.Parent != "" {
			b.join(s, m, Lineage, Proved)
		}
		return
	}
	for range maxLooked {
		up := of[t.parent]
		if t.parent == "" || up == nil || up == t {
			break
		}
		if s := b.published(up); s >= 0 {
			b.join(s, m, Lineage, Proved)
			return
		}
		t = up
	}
	if root := of[e.Root]; root != nil && e.Root != e.Task {
		if s := b.published(root); s >= 0 {
			b.join(s, m, Lineage, Proved)
		}
	}
}

// published returns the publication of a task that no task called, negative if it was not seen. Tasks may publish a
// message twice, where they are executed twice: a chain has the ids of all its tasks, and a retry keeps its id.
func (b *builder) published(t *task) Node {
	found := Node(-1)
	for i, s := range t.sent {
		e := &b.g.events[s]
		switch {
		case e.Attempt > 0 || e.Parent != "":
		case found >= 0 || i >= maxLooked:
			return -1
		default:
			found = s
		}
	}
	return found
}

// caller returns the one of some events of a task that most likely led to the publication or receipt m of a message,
// negative if none can have.
func (b *builder) caller(t *task, events []Node, m Node, kind EdgeKind) Node {
	g := b.g
	e := &g.events[m]
	best, here := Node(-1), false
	for _, n := range events[:min(len(events), maxLooked)] {
		c := &g.events[n]
		switch {
		case n == m, kind == Retry && b.attempt(t, n) >= e.Attempt:
		case e.Kind != state.TaskSent || state.Host(c.Process.Hostname) != state.Host(e.Process.Hostname):
			if !here {
				best = n
			}
		case c.Stamp.Micros > e.Stamp.Micros+Tolerance:
		default:
			best, here = n, true
		}
	}
	return best
}

// attempt returns which attempt at a task a receipt or start of it was, negative if that is not known: that of the last
// receipt before it in its process.
func (b *builder) attempt(t *task, n Node) int64 {
	if e := &b.g.events[n]; e.Kind == state.TaskReceived {
		return e.Attempt
	}
	attempt, at := int64(-1), int32(-1)
	own := b.g.place[n]
	for _, r := range t.received[:min(len(t.received), maxLooked)] {
		if p := b.g.place[r]; p.lane == own.lane && p.life == own.life && p.index < own.index && p.index > at {
			attempt, at = b.g.events[r].Attempt, p.index
		}
	}
	return attempt
}

// returned joins a publication to the end of the execution that published it.
func (b *builder) returned(t *task, caller, m Node) {
	g := b.g
	for _, n := range t.ended[:min(len(t.ended), maxLooked)] {
		p, q := g.place[caller], g.place[n]
		if p.lane == q.lane && p.life == q.life && p.index < q.index && !b.contradicts(m, n) {
			g.edges = append(g.edges, Edge{m, n, Return, Consistent})
			b.arcs = append(b.arcs, arc{g.vertex[m], g.moment[n], Consistent})
			return
		}
	}
}

// commands joins commands to their replies, and those that revoke a task to its task-revoked: which of several commands did
// that, or whether another program did, no event tells.
func (b *builder) commands() {
	sent := make(map[string]Node)
	for i := range b.g.events {
		if e := &b.g.events[i]; e.Kind == Command {
			sent[e.Task] = Node(i)
		}
	}
	for _, c := range sent {
		for i := range b.g.events {
			if e := &b.g.events[i]; e.Kind == state.TaskRevoked && e.Task == b.g.events[c].Revokes && e.Task != "" {
				b.join(c, Node(i), Effect, Consistent)
			}
		}
	}
	for i := range b.g.events {
		if e := &b.g.events[i]; e.Kind == Reply {
			if c, ok := sent[e.Task]; ok {
				b.join(c, Node(i), Reported, Proved)
			}
		}
	}
}

// gossip joins heartbeats to the merge windows of other processes: where their clocks pass that of the heartbeat.
func (b *builder) gossip() {
	g := b.g
	var lanes []*lane
	for i := range g.lanes {
		if l := &g.lanes[i]; len(l.lives) == 1 && !strings.HasPrefix(l.process.Hostname, "gen") && len(lanes) < maxGossipLanes {
			lanes = append(lanes, l)
		}
	}
	for _, from := range lanes {
		for _, n := range from.lives[0] {
			if g.events[n].Kind != state.WorkerHeartbeat {
				continue
			}
			for _, to := range lanes {
				life := to.lives[0]
				i, _ := slices.BinarySearchFunc(life, g.events[n].Clock+1, func(m Node, c int64) int { return cmp.Compare(g.events[m].Clock, c) })
				if to != from && i > 0 && i < len(life) && g.events[life[i-1]].Clock < g.events[n].Clock {
					b.join(n, life[i], Gossip, Consistent)
				}
			}
		}
	}
}

// finish demotes what contradicts itself, sorts, and ranks.
func (b *builder) finish() {
	g := b.g
	b.demoteCycles()
	slices.SortFunc(g.edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
	})
	g.in, g.out = make([][]int32, len(g.events)), make([][]int32, len(g.events))
	for i, e := range g.edges {
		g.out[e.From] = append(g.out[e.From], int32(i))
		g.in[e.To] = append(g.in[e.To], int32(i))
	}
	g.proved = newAdjacency(g.vertices, b.arcs, Proved)
	g.weak = newAdjacency(g.vertices, b.arcs, Consistent)
	g.provedBack, g.weakBack = g.proved.reversed(), g.weak.reversed()
	b.order()
}
