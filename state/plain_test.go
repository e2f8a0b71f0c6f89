package state

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPlainHistoriesAreFoldedAsAllAre compares the short way with the long one after each event, of histories that are the usual
// one but for some events that are missing, come twice, late, or from elsewhere.
func TestPlainHistoriesAreFoldedAsAllAre(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 4))
	kinds := []Kind{TaskSent, TaskReceived, TaskStarted, TaskSucceeded}
	plain, other := 0, 0
	for n := range 20_000 {
		c := New(Options{})
		c.unpackedOnly = true
		id := fmt.Sprint("t", n)
		clock, micros := int64(random.IntN(3)), int64(1e15)
		for step := range 3 + random.IntN(4) {
			e := Event{
				Kind: kinds[step%len(kinds)], ID: id, Hostname: "w1", PID: 7, Name: "a.b", Queue: "q", ParentID: "p",
				Present: FieldName | FieldQueue | FieldParentID | FieldRetries, ReceivedMicros: micros,
			}
			clock, micros = clock+1, micros+1000
			e.Clock, e.Micros = clock, micros
			if random.IntN(4) == 0 {
				e = unusual(random, e)
			}
			ch := c.Apply(&e)
			r := c.row(id)
			short, ok := c.plain(r)
			if !ok {
				other++
				continue
			}
			plain++
			long := c.rules.summarize(c.chain(r, nil))
			long.flags |= short.flags &^ folded
			if short.worker = 0; short != long {
				t.Fatalf("history %d, step %d: %+v, the long way %+v", n, step, short, long)
			}
			if !ch.New {
				continue
			}
			if first, missing := c.firstOfKind(r, r.tail), c.unstartedBy(r); ch.First != first || ch.Unstarted != missing {
				t.Fatalf("history %d, step %d: first %v, missing %+v, the long way %v, %+v", n, step, ch.First, ch.Unstarted, first, missing)
			}
		}
	}
	if plain < 10_000 || other < 10_000 {
		t.Errorf("%d plain histories and %d others: the test tries too few", plain, other)
	}
}

// unusual changes an event in one way.
func unusual(random *rand.Rand, e Event) Event {
	switch random.IntN(12) {
	case 0:
		e.Kind = Kind(1 + random.IntN(int(TaskCustom)))
	case 1:
		e.Clock = int64(random.IntN(8))
	case 2:
		e.Micros += int64(random.IntN(8000)) - 4000
	case 3:
		e.PID = 8
	case 4:
		e.Hostname = "w2"
	case 5:
		e.Retries = int64(random.IntN(3))
	case 6:
		e.ParentID = e.ID
	case 7:
		e.Present &^= FieldName
	case 8:
		e.Present |= unmeasured
		e.Null |= unmeasured
	case 9:
		e.Name = "a.c"
	case 10:
		e.PID, e.Hostname = 0, "w1"
	default:
		e.Kind, e.Subject = TaskCustom, "progress"
	}
	return e
}
