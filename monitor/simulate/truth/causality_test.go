package truth_test

import (
	"testing"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/simulate/truth"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
)

// histories is how many a law is tried on: 10,000 in make simulate.
func histories() uint64 {
	if testenv.Thorough() {
		return 10_000
	}
	return 100
}

// nodeOf returns what the graph needs of an event that was given a repaired clock.
func nodeOf(e *state.Event, repaired int64) causality.Event {
	v := causality.Event{
		Kind: e.Kind, Process: clock.Process{Hostname: e.Hostname, PID: e.PID}, Clock: e.Clock,
		Stamp: clock.Stamp{Clock: repaired, Micros: e.Micros, Origin: e.Hostname}, Task: e.ID, Name: e.Name, Attempt: e.Retries,
		Type: "task-" + e.Subject,
	}
	if e.Kind == state.TaskSent {
		v.Process.PID = 0 // its hostname names the process
	}
	if e.Kind.Worker() {
		v.Type = "worker-" + e.Subject
	}
	if e.Has(state.FieldParentID) {
		v.Parent = e.ParentID
	}
	if e.Has(state.FieldRootID) {
		v.Root = e.RootID
	}
	return v
}

// graph returns the graph of what arrived, and the event of each node.
func graph(h *truth.History) (*causality.Graph, []*truth.Event) {
	var events []causality.Event
	for _, i := range h.Arrived() {
		events = append(events, nodeOf(&h.Events[i].Event, int64(len(events)+1)))
	}
	g := causality.New(events)
	of := make([]*truth.Event, g.Len())
	for k, i := range h.Arrived() {
		if n, ok := g.Find(events[k]); ok {
			of[n] = &h.Events[i]
		}
	}
	return g, of
}

func TestNoProvedRelationIsFalse(t *testing.T) {
	t.Parallel()
	related, across, before := 0, 0, 0       // pairs proved, those across processes, and all that are true of these
	edges := map[causality.EdgeKind][2]int{} // true ones, and proved ones among these
	for seed := range histories() {
		h := truth.Generate(seed)
		g, of := graph(h)
		for n := range causality.Node(g.Len()) {
			past := g.Past(n, causality.Proved)
			for m := range causality.Node(g.Len()) {
				a, b := of[m], of[n]
				if a.Process() != b.Process() && h.HappenedBefore(a.Moment(), b.Moment()) {
					before++
				}
				if past.Grade(m) != causality.Proved {
					continue
				}
				related++
				if a.Process() != b.Process() {
					across++
				}
				if h.HappenedBefore(a.Moment(), b.Moment()) || a.Process() == b.Process() && h.HappenedBefore(a.Report(), b.Report()) {
					continue
				}
				t.Fatalf("seed %d: %s of %s by %v, clock %d, is not before %s of %s by %v, clock %d", seed,
					a.Subject, a.ID, a.Process(), a.Clock, b.Subject, b.ID, b.Process(), b.Clock)
			}
		}
		for _, e := range g.Edges() {
			c := edges[e.Kind]
			if h.HappenedBefore(of[e.From].Moment(), of[e.To].Moment()) {
				c[0]++
			}
			if e.Grade == causality.Proved {
				c[1]++
			}
			edges[e.Kind] = c
		}
	}
	t.Logf("%d pairs proved; across processes %d of %d true ones", related, across, before)
	for kind, c := range edges {
		t.Logf("%v: %d true, %d proved", kind, c[0], c[1])
	}
	if across == 0 {
		t.Error("nothing is proved")
	}
}
