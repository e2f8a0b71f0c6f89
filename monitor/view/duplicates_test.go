package view_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// call returns the events of a task that succeeds.
func call(id string, clock int) []json.RawMessage {
	return []json.RawMessage{
		event("received", id, clock, `,"name":"pay","args":"()","kwargs":"{'order': 1}"`),
		event("started", id, clock+1, ""), event("succeeded", id, clock+2, `,"result":"None","runtime":1`),
	}
}

// TestDuplicatesShowSoon publishes a task again and waits for it to be seen as a duplicate.
func TestDuplicatesShowSoon(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.publish(call("a", 1)...)
	c.save()
	if page, err := c.Duplicates(t.Context(), history.DuplicateRequest{Limit: 10}); err != nil || len(page.Groups) > 0 {
		t.Fatalf("%d groups, %v; want none", len(page.Groups), err)
	}
	c.publish(call("b", 10)...)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var page history.TaskPage
	q := query.New(query.Equal(query.Dup, query.DupRerun))
	for len(page.Tasks) == 0 {
		<-tick.C
		var err error
		if page, err = c.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 10, Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if page.Tasks[0].ID != "b" {
		t.Errorf("task %s ran again, want b", page.Tasks[0].ID)
	}
	c.save()
	groups, err := c.Duplicates(t.Context(), history.DuplicateRequest{Limit: 10})
	if err != nil || len(groups.Groups) != 1 {
		t.Fatalf("%d groups, %v; want one", len(groups.Groups), err)
	}
	g := groups.Groups[0]
	if g.N != 2 || len(g.Pairs) != 1 || g.Verdicts[duplicates.Rerun] != 1 || g.WastedSeconds != 1 || g.Partial || !g.Pairs[0].Proved {
		t.Errorf("group %+v, want a rerun of a second", g)
	}
	one, err := c.DuplicateGroup(t.Context(), g.Key, 1)
	if err != nil || !one.Partial || one.N != 2 || len(one.Tasks) != 1 {
		t.Errorf("group %+v, %v; want the newest of two tasks", one, err)
	}
}

// TestChangedTasksStayDuplicates changes a task in memory that the history has marked.
func TestChangedTasksStayDuplicates(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.publish(call("a", 1)...)
	c.publish(call("b", 10)...)
	c.save()
	c.store.full.Store(true)
	c.publish(event("progress", "b", 20, ""))
	for _, text := range []string{query.DupRerun, query.DupAny} {
		q := query.New(query.Equal(query.Dup, text))
		page, err := c.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 10, Now: time.Now()})
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != "b" {
			t.Errorf("dup:%s: %d tasks, %v; want b", text, len(page.Tasks), err)
		}
	}
	c.store.full.Store(false)
}

// TestSchedulesWasteNothing has a call sent at regular intervals, and another at others.
func TestSchedulesWasteNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		clocks []int
		period time.Duration
		wasted float64
	}{
		"regular":   {[]int{10, 20, 30, 40, 50, 60, 70}, 10 * time.Second, 0},
		"irregular": {[]int{10, 20, 21, 47, 50, 99, 120}, 0, 6},
		"too few":   {[]int{10, 20, 30}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, state.Options{})
			for i, clock := range tc.clocks {
				c.publish(call(string(rune('a'+i)), clock)...)
			}
			c.save()
			found, err := c.Duplicates(t.Context(), history.DuplicateRequest{Limit: 10})
			if err != nil || len(found.Groups) != 1 {
				t.Fatalf("%d groups, %v; want one", len(found.Groups), err)
			}
			g := found.Groups[0]
			if g.Period != tc.period || g.WastedSeconds != tc.wasted || g.Verdicts[duplicates.Rerun] == 0 {
				t.Errorf("every %v, %v s wasted, %v; want every %v, %v s", g.Period, g.WastedSeconds, g.Verdicts, tc.period, tc.wasted)
			}
		})
	}
}

// TestRedeliveriesTellOfAcksLate has a task delivered again whose worker is known to acknowledge late.
func TestRedeliveriesTellOfAcksLate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.SetAcksLate(func(_, task string) (late, ok bool) { return task == "pay", true })
	c.publish(call("a", 1)...)
	c.publish(call("a", 10)...)
	c.save()
	g, err := c.DuplicateGroup(t.Context(), history.DuplicateKey{TaskID: "a"}, 1)
	if err != nil || len(g.Pairs) != 1 || g.Pairs[0].Verdict != duplicates.Redelivery {
		t.Fatalf("group %+v, %v; want a redelivery", g, err)
	}
	if !slices.ContainsFunc(g.Pairs[0].Evidence, func(f duplicates.Fact) bool { return f.Kind == duplicates.FactAcksLate }) {
		t.Errorf("evidence %+v lacks acks_late", g.Pairs[0].Evidence)
	}
}
