package historytest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// pastTests are tests of times past, each on a random history.
func pastTests() map[string]func(storeTest) {
	tests := make(map[string]func(storeTest))
	for seed := range uint64(testenv.Trials(20)) {
		tests[fmt.Sprint("past of history ", seed)] = func(c storeTest) { past(c, seed) }
	}
	return tests
}

// past compares the tasks as of random instants of random histories with those of a cluster that had received no more.
// Events arrive in random order; tasks are written in between.
func past(c storeTest, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	var events []state.Event
	for i := range 30 {
		events = append(events, event(state.TaskReceived, uuid(i), 3*i))
		switch rng.IntN(3) {
		case 0:
			events = append(events, succeed(uuid(i), 3*i+rng.IntN(40)+2)...)
		case 1:
			events = append(events, event(state.TaskFailed, uuid(i), 3*i+rng.IntN(3)+1))
		}
	}
	for range 20 { // some overtake others
		i, j := rng.IntN(len(events)), rng.IntN(len(events))
		events[i], events[j] = events[j], events[i]
	}
	cluster := state.New(state.Options{Track: true})
	var then []map[string]state.Task
	receipt := func(i int) int64 { return epoch + int64(i+1)*700_000 }
	for i := range events {
		events[i].ReceivedMicros = receipt(i)
		cluster.Apply(&events[i])
		then = append(then, byID(cluster.Tasks(state.Query{Limit: 500}).Tasks))
		if rng.IntN(4) > 0 && i < len(events)-1 {
			continue
		}
		b := history.Batch{At: receipt(i), Checkpoint: &history.Checkpoint{Clock: cluster.Clock(), Counts: cluster.Counts()}}
		for _, u := range cluster.TakeUnsaved(100) {
			b.Tasks = append(b.Tasks, history.Task(u))
		}
		c.write(b)
		if err := cluster.Saved(true, nil); err != nil {
			c.Fatal(err)
		}
	}
	for range 20 {
		i := rng.IntN(len(events))
		c.pastTasks(receipt(i), then[i])
		before, after, err := c.Steps(c.Context(), receipt(i))
		if want := receipt(i + 1); i == len(events)-1 && after != 0 || i < len(events)-1 && after != want || err != nil {
			c.Errorf("the event after %d is %d, %v; want %d", i, after-epoch, err, want-epoch)
		}
		if want := receipt(i - 1); i > 0 && before != want {
			c.Errorf("the event before %d is %d, want %d", i, before-epoch, want-epoch)
		}
		c.pastSnapshot(receipt(i), then[i])
	}
}

// pastTasks gathers the tasks as of an instant as a reader does: those that it divides, and the list of the others.
func (c storeTest) pastTasks(at int64, want map[string]state.Task) {
	c.Helper()
	r := state.Reader{Until: at}
	got := map[string]state.Task{}
	_, err := c.TasksAround(c.Context(), at, 100, func(id string, events []byte) error {
		task, err := r.Task(id, events)
		got[id] = task
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	page, err := c.Tasks(c.Context(), history.TaskRequest{Query: query.Query{}, Limit: 500, Until: at})
	if err != nil {
		c.Fatal(err)
	}
	for _, t := range page.Tasks {
		if _, twice := got[t.ID]; twice {
			c.Errorf("task %s is on both sides of %d", t.ID, at)
		}
		got[t.ID] = t
	}
	for id := range got {
		t := got[id]
		t.Children = want[id].Children
		got[id] = t
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Fatalf("tasks as of %d (-then +now):\n%s", at-epoch, diff)
	}
	active := map[string]bool{}
	if _, err := c.ActiveSince(c.Context(), at, 100, func(id string, events []byte) error {
		task, err := r.Task(id, events)
		active[id] = true
		return errors.Join(err, errIf(task.State.Final(), "final"))
	}); err != nil {
		c.Fatal(err)
	}
	for _, t := range page.Tasks {
		if t.State.Final() == active[t.ID] {
			c.Errorf("task %s in state %s is listed as active: %v", t.ID, t.State, active[t.ID])
		}
	}
}

func (c storeTest) pastSnapshot(at int64, tasks map[string]state.Task) {
	c.Helper()
	snapshot, err := c.Snapshot(c.Context(), at)
	if err != nil {
		c.Fatal(err)
	}
	if snapshot.At > at {
		c.Errorf("snapshot of %d as of %d", snapshot.At, at)
	}
	for t := range maps.Values(tasks) {
		if snapshot.Clock != 0 && t.Stamp.Clock > snapshot.Clock {
			c.Errorf("clock %d of a task exceeds the bound %d", t.Stamp.Clock, snapshot.Clock)
		}
	}
}

func errIf(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}

func byID(list []state.Task) map[string]state.Task {
	m := make(map[string]state.Task, len(list))
	for _, t := range list {
		slices.Sort(t.Children)
		m[t.ID] = t
	}
	return m
}
