package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// moment is what was seen at an instant.
type moment struct {
	at       time.Time
	all      []state.Task
	failures []state.Task
}

// all reads a list page by page.
func all(t *testing.T, tasks func(history.TaskRequest) (history.TaskPage, error), q query.Query) (list []state.Task) {
	t.Helper()
	r := history.TaskRequest{Query: q, Limit: 7, Now: time.Unix(1_790_000_000, 0)}
	for {
		page, err := tasks(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, page.Tasks...)
		if r.From = page.Next; r.From == nil {
			return list
		}
	}
}

// TestThePastIsWhatWasSeen looks at a cluster while events arrive, some of them late, then at the same instants again, with
// some tasks evicted from memory and some not yet saved.
func TestThePastIsWhatWasSeen(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{MaxTasks: 30})
	failed := query.New(query.Equal(query.State, string(state.Failure)))
	read := func(r history.TaskRequest) (history.TaskPage, error) { return c.Tasks(t.Context(), r) }
	rng := rand.New(rand.NewPCG(5, 5))
	var kinds []string
	for i := range 80 {
		kinds = append(kinds, fmt.Sprint("received ", i), fmt.Sprint("started ", i), fmt.Sprint([]string{"succeeded ", "failed "}[rng.IntN(2)], i))
	}
	for i := range kinds { // a task overtakes others, and itself
		if j := i + rng.IntN(20); j < len(kinds) {
			kinds[i], kinds[j] = kinds[j], kinds[i]
		}
	}
	var seen []moment
	for n, k := range kinds {
		var kind string
		var i int
		if _, err := fmt.Sscanf(k, "%s %d", &kind, &i); err != nil {
			t.Fatal(err)
		}
		c.store.full.Store(n > len(kinds)-40)
		c.publish(event(kind, fmt.Sprintf("t%d", i), 3*i+len(kind), `,"name":"pay"`))
		if n%17 != 0 {
			continue
		}
		m := moment{all: all(t, read, query.Query{}), failures: all(t, read, failed)}
		m.at = time.Now()
		seen = append(seen, m)
	}
	same := cmpopts.IgnoreFields(state.Task{}, "Children", "Orphaned", "Returned", "OrphanReason", "Lost")
	for i, m := range seen {
		past, err := c.At(t.Context(), m.at)
		if err != nil {
			t.Fatal(err)
		}
		then := func(r history.TaskRequest) (history.TaskPage, error) { return past.Tasks(t.Context(), r) }
		if diff := cmp.Diff(m.all, all(t, then, query.Query{}), same); diff != "" {
			t.Fatalf("tasks of moment %d (-then +now):\n%s", i, diff)
		}
		if diff := cmp.Diff(m.failures, all(t, then, failed), same); diff != "" {
			t.Errorf("failures of moment %d (-then +now):\n%s", i, diff)
		}
		groups, err := past.History().FailureGroups(t.Context(), history.FailureRequest{Limit: 500, Now: m.at})
		n := 0
		for _, g := range groups.Groups {
			n += g.Count.N
		}
		if err != nil || n != len(m.failures) {
			t.Errorf("groups of moment %d: %d failures, %v; want %d", i, n, err, len(m.failures))
		}
		for _, want := range m.all {
			if got, err := past.Task(t.Context(), want.ID); err != nil || !cmp.Equal(want, got, same) {
				t.Errorf("task %s of moment %d: %v\n%s", want.ID, i, err, cmp.Diff(want, got, same))
			}
		}
	}
	c.store.full.Store(false)
}

// TestThePastStaysWhileTasksGoOn ends a task after its past was read.
func TestThePastStaysWhileTasksGoOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.publish(event("received", "a", 1, ""), event("started", "a", 2, ""))
	c.save()
	past, err := c.At(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.publish(event("succeeded", "a", 3, ""))
	c.save()
	page, err := past.Tasks(t.Context(), history.TaskRequest{Limit: 9})
	if err != nil || len(page.Tasks) != 1 || page.Tasks[0].State != state.Started {
		t.Errorf("tasks of the past: %+v, %v; want one that was started", page.Tasks, err)
	}
}

// TestStepsGoFromEventToEvent goes back and forth.
func TestStepsGoFromEventToEvent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.publish(event("received", "a", 1, ""), event("received", "b", 2, ""), event("succeeded", "a", 3, ""))
	c.save()
	c.publish(event("succeeded", "b", 4, ""))
	at, counts := time.Now(), []int{}
	for range 4 {
		past, err := c.At(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		page, err := past.Tasks(t.Context(), history.TaskRequest{Query: query.New(query.Equal(query.Is, query.IsFinished)), Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, len(page.Tasks))
		if at, _, err = past.Steps(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int{2, 2, 1, 0}, counts); diff != "" { // the first step is to the newest event itself
		t.Errorf("finished tasks, step by step backwards (-want +got):\n%s", diff)
	}
	past, err := c.At(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if before, after, err := past.Steps(t.Context()); err != nil || !before.IsZero() || !after.After(at) {
		t.Errorf("steps from the first event: %v, %v, %v; want none and the second", before, after, err)
	}
	if _, err := past.Task(t.Context(), "b"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("a task before its first event: %v, want %v", err, history.ErrNotFound)
	}
	if _, err := c.At(t.Context(), time.Now().Add(time.Hour)); !errors.Is(err, view.ErrFuture) {
		t.Errorf("the future: %v, want %v", err, view.ErrFuture)
	}
}

// counted is what a fold has counted at an instant.
type counted struct {
	at     time.Time
	counts state.Counts
}

// TestThePastCountsWhatAFoldDid compares counts at instants with those that were folded then.
func TestThePastCountsWhatAFoldDid(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.publish(event("received", "first", 0, `,"name":"n0"`))
	c.save() // which leaves a snapshot
	rng := rand.New(rand.NewPCG(6, 6))
	var seen []counted
	for n := 1; n < 120; n++ {
		kind := []string{"received", "started", "succeeded", "failed", "retried"}[rng.IntN(5)]
		c.publish(event(kind, fmt.Sprintf("t%d", rng.IntN(25)), n, fmt.Sprintf(`,"name":"n%d"`, rng.IntN(3))))
		if n%9 == 0 {
			var now counted
			c.View(func(v state.View) { now.counts = v.Counts() })
			now.at = time.Now()
			seen = append(seen, now)
		}
		if n == 60 {
			c.save()
		}
	}
	for i, m := range seen {
		past, err := c.At(t.Context(), m.at)
		if err != nil {
			t.Fatal(err)
		}
		var got state.Counts
		past.View(func(v state.View) { got = v.Counts() })
		got.Workers = m.counts.Workers // those of the snapshot
		if diff := cmp.Diff(m.counts, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("counts of moment %d (-then +now):\n%s", i, diff)
		}
	}
}

// TestAWorkflowAsItWas looks at a workflow while it runs, then at the same instants again.
func TestAWorkflowAsItWas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	in := func(parent string) string {
		return fmt.Sprintf(`,"name":"pay","root_id":"r","parent_id":%q`, parent)
	}
	type moment struct {
		at time.Time
		w  workflow.Workflow
	}
	var seen []moment
	for n, e := range []json.RawMessage{
		event("received", "r", 1, `,"name":"pay"`), event("succeeded", "r", 2, ""), event("received", "a", 3, in("r")),
		event("received", "b", 4, in("a")), event("failed", "b", 5, ""), event("succeeded", "a", 6, ""), event("received", "late", 7, in("b")),
	} {
		c.publish(e)
		if n == 3 {
			c.save()
		}
		w, err := c.Workflow(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, moment{time.Now(), w})
	}
	for _, saved := range []bool{false, true} {
		if saved {
			c.save()
		}
		for i, m := range seen {
			past, err := c.At(t.Context(), m.at)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := past.Workflow(t.Context(), "r"); err != nil || !cmp.Equal(m.w, got) {
				t.Errorf("workflow of moment %d, all saved %v: %v\n%s", i, saved, err, cmp.Diff(m.w, got))
			}
		}
	}
	past, err := c.At(t.Context(), seen[1].at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := past.Workflow(t.Context(), "a"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("a workflow that had not begun: %v, want %v", err, history.ErrNotFound)
	}
	for i, m := range seen {
		past, err := c.At(t.Context(), m.at)
		if err != nil {
			t.Fatal(err)
		}
		var want []history.WorkflowSummary
		if len(m.w.Tasks) > 1 {
			want = append(want, history.WorkflowSummary{Root: "r", Name: "pay", Summary: m.w.Summary()})
		}
		for _, status := range append(workflow.Statuses(), "") {
			var these []history.WorkflowSummary
			if len(want) > 0 && (status == "" || status == want[0].Status()) {
				these = want
			}
			if got, err := past.Workflows(t.Context(), history.WorkflowRequest{Status: status}); err != nil || !cmp.Equal(these, got.Workflows) {
				t.Errorf("list of moment %d, %q: %v\n%s", i, status, err, cmp.Diff(these, got.Workflows))
			}
		}
	}
}
