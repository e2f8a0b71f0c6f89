package state_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

func TestEvictionSparesActiveTasks(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{MaxTasks: 100})
	apply(c, ev(state.TaskReceived, "active", "w1", 10, 1))
	for i := range 500 {
		apply(c, ev(state.TaskSucceeded, fmt.Sprint("done", i), "w1", 10, float64(i+2)))
	}
	counts := c.Counts()
	if counts.Tasks > 100 || counts.Evicted != uint64(501-counts.Tasks) {
		t.Errorf("%d tasks held, %d evicted, want at most 100 of 501", counts.Tasks, counts.Evicted)
	}
	if _, ok := c.Task("active"); !ok {
		t.Error("an active task was evicted before finished ones")
	}
	if _, ok := c.Task("done499"); !ok {
		t.Error("the newest task was evicted")
	}
	for i := range 300 {
		apply(c, ev(state.TaskReceived, fmt.Sprint("a", i), "w1", 10, float64(i+1000)))
	}
	if n := c.Counts().Tasks; n > 100 {
		t.Errorf("%d active tasks held, want at most 100", n)
	}
}

func TestEvictionMakesRoomForManyTasksAtOnce(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]state.Kind{"active": state.TaskSent, "finished": state.TaskSucceeded} {
		c := state.New(state.Options{MaxTasks: 1000})
		for i := range 1001 {
			apply(c, ev(kind, fmt.Sprint("t", i), "w1", 10, float64(i+1)))
		}
		if n := c.Counts().Tasks; n != 990 {
			t.Errorf("%d %s tasks are left of 1,001, want 990: the search must be worth its cost", n, name)
		}
		if _, ok := c.Task("t11"); !ok {
			t.Errorf("more than the 11 oldest %s tasks were evicted", name)
		}
	}
}

func TestOneTaskIsKeptAtLeast(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{MaxTasks: 1})
	for i := range 10 {
		apply(c, ev(state.TaskReceived, fmt.Sprint("t", i), "w1", 10, float64(i+1)))
		if page := c.Tasks(state.Query{}); len(page.Tasks) != 1 || c.Counts().Tasks != 1 {
			t.Fatalf("%d tasks listed, %d counted, want 1", len(page.Tasks), c.Counts().Tasks)
		}
	}
}

func TestEndlessNamesStayBounded(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{MaxTasks: 100_000})
	for i := range 60_000 {
		e := ev(state.TaskReceived, fmt.Sprint("t", i), "w1", 10, float64(i+1))
		e.Name = fmt.Sprint("name", i)
		apply(c, e)
	}
	if names, _ := c.Capped(); names == 0 || len(c.Names()) > 50_001 {
		t.Errorf("%d names held, %d capped, want a bound", len(c.Names()), names)
	}
	if n := c.Counts().Tasks; n != 60_000 {
		t.Errorf("%d tasks held, want all 60,000", n)
	}
}

func TestATaskThatNeverStopsReportingStaysBounded(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}), ev(state.TaskReceived, "a", "w1", 10, 1), ev(state.TaskStarted, "a", "w1", 10, 2))
	for i := range 1000 {
		e := ev(state.TaskCustom, "a", "w1", 11, float64(i+3))
		e.Subject = "progress"
		apply(c, e)
	}
	apply(c, ev(state.TaskSucceeded, "a", "w1", 10, 2000))
	if got := mustTask(t, c, "a"); got.State != state.Success || got.ReceivedAt != at(1) || len(c.TaskEvents("a")) > 64 {
		t.Errorf("got %s, received at %d, %d events", got.State, got.ReceivedAt, len(c.TaskEvents("a")))
	}
}

// FuzzFold feeds arbitrary events: nothing may panic, and no event may change another task.
func FuzzFold(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte("the quick brown fox jumps over the lazy dog, again and again"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := apply(state.New(state.Options{MaxTasks: 50}), ev(state.TaskReceived, "still", "calm", 1, 1))
		want := mustTask(t, c, "still")
		for i := 0; i+4 <= len(data); i += 4 {
			e := ev(state.Kind(data[i]%16), fmt.Sprint("t", data[i+1]%8), fmt.Sprint("w", data[i+1]%3), int64(data[i+2]%4), float64(data[i+3]))
			e.Retries = int64(data[i+2]) - 3
			e.Subject = string(data[i : i+1])
			e.ParentID, e.RootID = fmt.Sprint("t", data[i+3]%8), fmt.Sprint("t", data[i+2]%8)
			e.Present |= state.Fields(data[i]) << 3
			if data[i+3] == 0 {
				e.Clock = 1 << 62
			}
			apply(c, e)
			c.Tasks(state.Query{Text: "t1"})
		}
		c.Counts()
		got := mustTask(t, c, "still")
		got.Orphaned, got.OrphanReason, got.Lost = want.Orphaned, want.OrphanReason, want.Lost
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("another task's events changed it (-before +after):\n%s", diff)
		}
	})
}

// TestATaskThatIsTriedForEver keeps the newest attempts.
func TestATaskThatIsTriedForEver(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	second := 0.0
	for attempt := range int64(200) {
		for _, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskRetried} {
			second++
			apply(c, retry(ev(kind, "a", "w1", 10, second), attempt))
		}
	}
	got := mustTask(t, c, "a")
	if got.State != state.Retry || *got.Retries != 199 || got.RetriedAt != at(second) || len(got.Executions) > 64 {
		t.Errorf("got %s of attempt %d in %d executions", got.State, *got.Retries, len(got.Executions))
	}
	if _, lost := c.Capped(); lost != 600-64 {
		t.Errorf("%d events counted as not kept, want %d", lost, 600-64)
	}
}

func TestFamiliesOfAnyShape(t *testing.T) {
	t.Parallel()
	child := func(id, parent, root string, second float64) state.Event {
		e := ev(state.TaskReceived, id, "w1", 10, second)
		e.ParentID, e.RootID, e.Present = parent, root, e.Present|state.FieldParentID|state.FieldRootID
		return e
	}
	c := apply(state.New(state.Options{}),
		child("a", "b", "b", 1), child("b", "a", "a", 2), // each other's parent
		child("self", "self", "self", 3),
		child("ABC", "abc", "abc", 4), child("abc", "ABC", "ABC", 5)) // other ids, not the same
	for i := range 10_000 {
		apply(c, child(fmt.Sprint("child", i), "crowd", "crowd", float64(i+10)))
	}
	apply(c, ev(state.TaskReceived, "crowd", "w1", 10, 20_000))
	for id, want := range map[string]int{"a": 1, "b": 1, "self": 0, "ABC": 1, "abc": 1, "crowd": 1000} {
		if got := len(mustTask(t, c, id).Children); got != want {
			t.Errorf("%s lists %d children, want %d", id, got, want)
		}
	}
	if page := c.Tasks(state.Query{Root: "crowd", Limit: 500}); len(page.Tasks) != 500 || page.Older == nil {
		t.Errorf("%d tasks of the crowd on the first page, want 500 and more to come", len(page.Tasks))
	}
}
