package view_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// TestDuplicatesAsTheyWere looks at a call that is made three times, while that happens and again from the end.
func TestDuplicatesAsTheyWere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	call := func(kind, id string, clock int, args string) {
		c.publish(event(kind, id, clock, fmt.Sprintf(`,"name":"pay","args":%q,"kwargs":"{}"`, args)))
	}
	var moments []time.Time
	seen := func() {
		c.save()
		moments = append(moments, time.Now())
	}
	call("received", "a", 1, "(1,)")
	call("received", "x", 2, "(7,)")
	seen() // no group yet
	c.publish(event("started", "a", 3, ""))
	call("received", "b", 4, "(1,)")
	seen() // a runs, b waits
	c.publish(event("started", "b", 5, ""))
	seen() // both run
	c.publish(event("succeeded", "a", 9, `,"runtime":5`), event("succeeded", "b", 10, `,"runtime":4`))
	call("received", "c", 20, "(1,)")
	call("received", "y", 21, "(7,)")
	seen()

	page := func(at time.Time, q history.DuplicateRequest) view.DuplicatePage {
		t.Helper()
		past, err := c.At(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		p, err := past.Duplicates(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := history.DuplicateRequest{Limit: 10}
	if p := page(moments[0], all); len(p.Groups) != 0 || p.Next != nil {
		t.Errorf("before the second task: %+v", p)
	}
	for i, want := range map[int]string{1: "b RECEIVED, a STARTED, ", 2: "b STARTED, a STARTED, "} {
		p := page(moments[i], all)
		if len(p.Groups) != 1 || p.Groups[0].N != 2 || p.Groups[0].Partial {
			t.Fatalf("moment %d: %+v, want a group of two", i, p.Groups)
		}
		got := ""
		for _, task := range p.Groups[0].Tasks {
			got += task.ID + " " + string(task.State) + ", "
		}
		if overlap := p.Groups[0].Marks&state.Overlapping != 0; got != want || overlap != (i == 2) {
			t.Errorf("moment %d: %s overlapping: %v; want %s", i, got, overlap, want)
		}
	}
	if p := page(moments[1], history.DuplicateRequest{Limit: 10, Marks: state.Overlapping}); len(p.Groups) != 0 {
		t.Errorf("what ran at once before it did: %+v", p.Groups)
	}
	if p := page(moments[3], all); len(p.Groups) != 2 || p.Groups[0].N != 2 || p.Groups[1].N != 3 {
		t.Errorf("in the end: %+v, want groups of two and three", p.Groups)
	}
	first := page(moments[3], history.DuplicateRequest{Limit: 1})
	if first.Next == nil || len(first.Groups) != 1 {
		t.Fatalf("a page of one: %+v", first)
	}
	if rest := page(moments[3], history.DuplicateRequest{Limit: 1, After: first.Next}); len(rest.Groups) != 1 || rest.Groups[0].Key == first.Groups[0].Key {
		t.Errorf("the next page: %+v", rest)
	}

	past, err := c.At(t.Context(), moments[2])
	if err != nil {
		t.Fatal(err)
	}
	if g, err := past.DuplicateGroup(t.Context(), first.Groups[0].Key, 50); err != nil || g.N != 1 { // of x alone
		t.Errorf("a call that was made once: %+v, %v", g, err)
	}
	if g, err := past.DuplicateGroup(t.Context(), history.DuplicateKey{TaskID: "a"}, 1); err != nil || g.N != 1 || !g.Tasks[0].CallID.Known() {
		t.Errorf("the group of one task: %+v, %v", g, err)
	}
	if _, err := past.DuplicateGroup(t.Context(), history.DuplicateKey{TaskID: "c"}, 1); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("a task that was not known: %v", err)
	}
}
