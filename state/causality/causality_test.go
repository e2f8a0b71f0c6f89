package causality_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
)

const (
	web  = "gen7@web"
	a, z = "celery@a", "celery@z"
	hour = int64(3600 * 1_000_000)
	ms   = int64(1000)
)

// event makes an event of a task; at is in ms.
func event(kind state.Kind, process string, raw, at int64, task string) causality.Event {
	p := clock.Process{Hostname: process, PID: 1}
	if kind == state.TaskSent {
		p.PID = 0
	}
	return causality.Event{Kind: kind, Process: p, Clock: raw, Stamp: clock.Stamp{Clock: raw, Micros: 9*hour + at*ms, Origin: process}, Task: task}
}

func child(e causality.Event, parent string) causality.Event {
	e.Parent = parent
	return e
}

func attempt(e causality.Event, n int64) causality.Event {
	e.Attempt = n
	return e
}

// workflow is a task P on a, whose clock is an hour behind that of z, which runs its child C.
func workflow() []causality.Event {
	return []causality.Event{
		event(state.TaskSent, web, 5, 10, "P"),
		event(state.TaskReceived, a, 900, 12, "P"),
		event(state.TaskStarted, a, 902, 16, "P"), // reported after the child was sent
		child(event(state.TaskSent, "gen9@a", 1, 15, "C"), "P"),
		child(event(state.TaskReceived, z, 301, 3_600_000, "C"), "P"),
		event(state.WorkerHeartbeat, a, 901, 15, ""),
		event(state.TaskStarted, z, 302, 3_600_001, "C"),
		event(state.TaskSucceeded, z, 303, 3_600_002, "C"),
		event(state.TaskSucceeded, a, 903, 20, "P"),
	}
}

func TestRelations(t *testing.T) {
	t.Parallel()
	w := workflow()
	sent, received, started, sentC, receivedC, beat, succeededC, succeeded := w[0], w[1], w[2], w[3], w[4], w[5], w[7], w[8]
	for name, test := range map[string]struct {
		a, b  causality.Event
		want  causality.Relation
		grade causality.Grade
	}{
		"message":                              {sent, received, causality.Before, causality.Proved},
		"execution":                            {received, started, causality.Before, causality.Proved},
		"parent and child":                     {started, sentC, causality.Before, causality.Consistent},
		"across three processes":               {sent, receivedC, causality.Before, causality.Proved},
		"child and end of parent":              {sentC, succeeded, causality.Before, causality.Consistent},
		"root and child":                       {sent, sentC, causality.Before, causality.Proved},
		"ends":                                 {succeededC, succeeded, causality.Concurrent, causality.Unknown},
		"one process":                          {beat, succeeded, causality.Before, causality.Proved},
		"reports of one process":               {started, beat, causality.After, causality.Proved},
		"heartbeat before the report of start": {beat, sentC, causality.Concurrent, causality.Unknown},
		"same":                                 {beat, beat, causality.Same, causality.Proved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := causality.New(w)
			if got, grade := g.Relation(find(t, g, test.a), find(t, g, test.b)); got != test.want || grade != test.grade {
				t.Errorf("relation = %v, %v; want %v, %v", got, grade, test.want, test.grade)
			}
		})
	}
}

func find(t *testing.T, g *causality.Graph, e causality.Event) causality.Node {
	t.Helper()
	n, ok := g.Find(e)
	if !ok {
		t.Fatalf("event %+v is not in the graph", e)
	}
	return n
}

func TestWhatMayHaveBeenAnotherExecutionIsNotProved(t *testing.T) {
	t.Parallel()
	again := event(state.TaskReceived, z, 310, 3_600_100, "P")
	again.Process.PID = 2
	for name, test := range map[string]struct{ without, with []causality.Event }{
		"published twice":              {nil, []causality.Event{event(state.TaskSent, web, 9, 400, "P")}},
		"publication of a replacement": {workflow()[:1], []causality.Event{child(event(state.TaskSent, web, 9, 400, "P"), "P")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := slices.DeleteFunc(workflow(), func(e causality.Event) bool { return slices.Contains(test.without, e) })
			g := causality.New(append(events, test.with...))
			n := find(t, g, workflow()[1])
			for _, e := range g.In(n) {
				if e.Kind == causality.Message && e.Grade == causality.Proved {
					t.Errorf("task-received has a proved edge from %+v", g.Event(e.From))
				}
			}
		})
	}
}

func TestReusedPidIsNotOneLife(t *testing.T) {
	t.Parallel()
	old := event(state.TaskReceived, a, 900, 0, "P")
	reborn := event(state.TaskReceived, a, 10, 60_000, "Q")
	later := event(state.TaskReceived, a, 950, 90_000, "R")
	g := causality.New([]causality.Event{reborn, later, old})
	if got, grade := g.Relation(find(t, g, old), find(t, g, reborn)); got != causality.Before || grade != causality.Consistent {
		t.Errorf("across a restart = %v, %v; want before, consistent", got, grade)
	}
	if got, grade := g.Relation(find(t, g, old), find(t, g, later)); got != causality.Before || grade != causality.Proved {
		t.Errorf("where clock and time agree = %v, %v; want before, proved", got, grade)
	}
}

func TestGraphDoesNotDependOnArrival(t *testing.T) {
	t.Parallel()
	w := append(workflow(), attempt(event(state.TaskReceived, z, 400, 3_700_000, "P"), 1), event(state.TaskRetried, a, 904, 21, "P"))
	want := causality.New(w)
	for seed := range uint64(50) {
		events := append(slices.Clone(w), w[:4]...)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		got := causality.New(events)
		if diff := cmp.Diff(got.Edges(), want.Edges()); diff != "" {
			t.Fatalf("edges (-shuffled +in order):\n%s", diff)
		}
		if diff := cmp.Diff(got.Order(), want.Order()); diff != "" {
			t.Fatalf("order (-shuffled +in order):\n%s", diff)
		}
	}
}

func TestConesAgreeWithRelations(t *testing.T) {
	t.Parallel()
	g := causality.New(workflow())
	for n := range causality.Node(g.Len()) {
		past, future := g.Past(n, causality.Consistent), g.Future(n, causality.Consistent)
		for m := range causality.Node(g.Len()) {
			r, grade := g.Relation(m, n)
			want := map[causality.Relation][2]causality.Grade{causality.Before: {grade, 0}, causality.After: {0, grade}}[r]
			if got := [2]causality.Grade{past.Grade(m), future.Grade(m)}; got != want {
				t.Errorf("cones of %d have %d as %v, want %v", n, m, got, want)
			}
		}
	}
}

func TestOrderFollowsCausesAndInversionsAreThoseOfWallClocks(t *testing.T) {
	t.Parallel()
	w := workflow()
	for i := range w {
		if w[i].Process.Hostname == z {
			w[i].Stamp.Micros -= 2 * hour
		}
	}
	g := causality.New(w)
	at := make(map[causality.Node]int)
	for i, n := range g.Order() {
		at[n] = i
	}
	for _, e := range g.Edges() {
		if at[e.From] > at[e.To] {
			t.Errorf("edge %+v leads back", e)
		}
	}
	inverted := g.Inversions()
	if len(inverted) != 1 || inverted[0].Kind != causality.Lineage || g.Event(inverted[0].To).Process.Hostname != z {
		t.Errorf("inversions = %+v, want that to z", inverted)
	}
}

// The next attempt at a task is sent by the last one, although it starts on another host whose clock is an hour behind.
func TestRetriesAreNotSentByThemselves(t *testing.T) {
	t.Parallel()
	first, sent := event(state.TaskStarted, a, 902, 16, "P"), attempt(event(state.TaskSent, "gen9@elsewhere", 1, 18, "P"), 1)
	g := causality.New([]causality.Event{
		event(state.TaskReceived, a, 900, 12, "P"), first, sent, event(state.TaskRetried, a, 903, 19, "P"),
		attempt(event(state.TaskReceived, z, 400, -3_600_000, "P"), 1), event(state.TaskStarted, z, 401, 40, "P"),
	})
	for _, e := range g.Edges() {
		if e.Kind == causality.Retry && (e.From != find(t, g, first) || e.To != find(t, g, sent)) {
			t.Errorf("the retry is sent by %+v", g.Event(e.From))
		}
	}
}

func TestGossipIsWeaker(t *testing.T) {
	t.Parallel()
	beat := event(state.WorkerHeartbeat, a, 500, 0, "")
	before, after := event(state.WorkerHeartbeat, z, 20, 0, ""), event(state.WorkerHeartbeat, z, 502, 2000, "")
	g := causality.New([]causality.Event{beat, before, after})
	if got, grade := g.Relation(find(t, g, beat), find(t, g, after)); got != causality.Before || grade != causality.Consistent {
		t.Errorf("heartbeat and merge window = %v, %v; want before, consistent", got, grade)
	}
}

func TestReplyPinsItsProcess(t *testing.T) {
	t.Parallel()
	umbel := clock.Process{Hostname: "umbel"}
	command := causality.Event{Kind: causality.Command, Process: umbel, Clock: 1, Stamp: clock.Stamp{Micros: 9 * hour}, Task: "ticket"}
	reply := causality.Event{Kind: causality.Reply, Process: clock.Process{Hostname: a, PID: 1}, Clock: 100, Task: "ticket"}
	earlier, later := event(state.TaskStarted, a, 99, 0, "P"), event(state.WorkerHeartbeat, a, 101, 1, "")
	g := causality.New([]causality.Event{later, reply, command, earlier})
	for _, test := range []struct {
		a, b causality.Event
		want causality.Relation
	}{{command, later, causality.Before}, {earlier, reply, causality.Before}, {command, earlier, causality.Concurrent}} {
		if got, _ := g.Relation(find(t, g, test.a), find(t, g, test.b)); got != test.want {
			t.Errorf("relation of %v and %v = %v, want %v", test.a.Kind, test.b.Kind, got, test.want)
		}
	}
}

func TestARevokeMayHaveItsEffect(t *testing.T) {
	t.Parallel()
	command := causality.Event{
		Kind: causality.Command, Process: clock.Process{Hostname: "umbel"}, Clock: 1, Stamp: clock.Stamp{Micros: 9 * hour}, Task: "ticket", Revokes: "P",
	}
	revoked, other := event(state.TaskRevoked, a, 101, 1, "P"), event(state.TaskRevoked, a, 102, 2, "Q")
	g := causality.New([]causality.Event{revoked, other, command})
	from, to := find(t, g, command), find(t, g, revoked)
	if got, grade := g.Relation(from, to); got != causality.Before || grade != causality.Consistent {
		t.Errorf("command and task-revoked = %v, %v; want before, consistent", got, grade)
	}
	if edges := g.In(to); len(edges) != 1 || edges[0].Kind != causality.Effect {
		t.Errorf("edges into task-revoked: %+v", edges)
	}
	for _, e := range g.In(find(t, g, other)) {
		if e.Kind == causality.Effect {
			t.Errorf("a task that was not to be revoked: %+v", e)
		}
	}
}

func TestForgedParentsProveNothing(t *testing.T) {
	t.Parallel()
	var events []causality.Event
	const n = 1000 // each the parent of the next, the last that of the first
	for i := range n {
		at := int64(i % 2)
		events = append(events,
			child(event(state.TaskSent, "gen1@h"+strconv.Itoa(i), 1, at, strconv.Itoa(i)), strconv.Itoa((i+n-1)%n)),
			event(state.TaskReceived, "celery@h"+strconv.Itoa((i+1)%n), 1, at, strconv.Itoa(i)))
	}
	g := causality.New(events)
	for _, e := range g.Edges() {
		if e.Grade == causality.Proved {
			t.Fatalf("edge %+v of a cycle is proved", e)
		}
	}
	if got := len(g.Order()); got != len(events) {
		t.Errorf("order has %d events, want %d", got, len(events))
	}
}

func TestMoreChildrenThanFitAreLeftOut(t *testing.T) {
	t.Parallel()
	events := []causality.Event{event(state.TaskStarted, a, 1, 0, "P")}
	for i := range 300_000 {
		events = append(events, child(event(state.TaskReceived, z, int64(i+1), int64(i), strconv.Itoa(i)), "P"))
	}
	g := causality.New(events)
	if g.Len() != causality.MaxEvents || g.Left() != len(events)-causality.MaxEvents {
		t.Errorf("graph has %d events and left out %d", g.Len(), g.Left())
	}
	if future := g.Future(0, causality.Consistent); len(future.Spans()) == 0 {
		t.Error("parent has no future")
	}
}

func BenchmarkNew(b *testing.B) {
	var events []causality.Event
	for i := range int64(5_000) {
		id, parent, w := strconv.FormatInt(i, 10), strconv.FormatInt(i/3, 10), "celery@"+strconv.FormatInt(i%20, 10)
		events = append(events, child(event(state.TaskSent, "gen9@"+strconv.FormatInt(i/3%20, 10), i, 20*i, id), parent),
			child(event(state.TaskReceived, w, 5*i, 20*i+3, id), parent),
			event(state.TaskStarted, w, 5*i+1, 20*i+4, id), event(state.TaskSucceeded, w, 5*i+2, 20*i+9, id))
	}
	b.ReportAllocs()
	for b.Loop() {
		causality.New(events)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}
