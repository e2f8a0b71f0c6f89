package historytest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

func (c storeTest) journalNumbers() {
	var want []entry
	last := uint64(0)
	for i := range 10 {
		body := "journal " + strconv.Itoa(i)
		n := c.write(history.Batch{Journal: []byte(body)}).JournalEntry
		if n <= last {
			c.Errorf("entry %d after entry %d, want a higher number", n, last)
		}
		last = n
		want = append(want, entry{Number: n, Events: body})
		if i == 4 {
			c.reopen()
		}
	}
	if diff := cmp.Diff(want, c.restored(0).journal); diff != "" {
		c.Errorf("journal (-want +got):\n%s", diff)
	}
	c.write(history.Batch{TrimJournal: last})
	c.reopen()
	if got := c.write(history.Batch{Journal: []byte("next")}).JournalEntry; got <= last {
		c.Errorf("entry %d after entry %d was forgotten, want a higher number", got, last)
	}
}

func (c storeTest) journalForget() {
	var numbers []uint64
	for i := range 5 {
		b := history.Batch{Journal: []byte{byte(i)}}
		if i == 3 {
			b.Checkpoint = &history.Checkpoint{Clock: 1}
		}
		numbers = append(numbers, c.write(b).JournalEntry)
	}
	c.write(history.Batch{TrimJournal: numbers[1]})
	want := []entry{
		{numbers[2], "\x02", true},
		{numbers[3], "\x03", true},
		{numbers[4], "\x04", false},
	}
	if diff := cmp.Diff(want, c.restored(0).journal); diff != "" {
		c.Errorf("journal (-want +got):\n%s", diff)
	}
	c.write(history.Batch{Checkpoint: &history.Checkpoint{Clock: 2}})
	want[2].Checkpointed = true
	c.reopen()
	if diff := cmp.Diff(want, c.restored(0).journal); diff != "" {
		c.Errorf("journal after a checkpoint (-want +got):\n%s", diff)
	}
}

func (c storeTest) restoreCheckpoint() {
	c.write(history.Batch{Checkpoint: &history.Checkpoint{
		Clock: 41, Workers: map[string][]byte{"a": []byte(`{"n":1}`), "b": []byte(`{"n":2}`), "gone": []byte(`{}`)},
	}})
	c.write(history.Batch{At: 7, Journal: []byte("j")})
	c.write(history.Batch{Journal: []byte("j")})
	c.write(history.Batch{Checkpoint: &history.Checkpoint{
		Clock: 42, Workers: map[string][]byte{"b": []byte(`{"n":3}`), "\x00": []byte(`{}`), "gone": nil, "never": nil},
	}})
	c.reopen()
	got := c.restored(0)
	want := map[string]string{"a": `{"n":1}`, "b": `{"n":3}`, "\x00": `{}`}
	if diff := cmp.Diff(want, got.workers); diff != "" || got.clock != 42 || got.at != 7 {
		c.Errorf("clock = %d, want 42; last write at %d, want 7; workers (-want +got):\n%s", got.clock, got.at, diff)
	}
}

func (c storeTest) restoreTasks() {
	var events []state.Event
	for i := range 20 {
		events = append(events, succeed(uuid(i), 10+i)...)
	}
	events = append(events, event(state.TaskReceived, "active", 2))
	tasks := c.fold(events...)
	c.write(history.Batch{Tasks: tasks})
	c.reopen()

	ids := func(n int) []string {
		all := []string{"active"}
		for i := 20 - n; i < 20; i++ {
			all = append(all, uuid(i))
		}
		return slices.Sorted(slices.Values(all))
	}
	left := func(i int) []state.Position {
		return []state.Position{{ID: tasks[i].View.ID, Stamp: tasks[i].View.Stamp}}
	}
	for n, want := range map[int][]state.Position{
		0: left(19), 1: left(18), 7: left(12), 19: left(0), 20: nil, 1000: nil,
	} {
		got := c.restored(n)
		if diff := cmp.Diff(ids(min(n, 20)), slices.Sorted(maps.Keys(got.tasks))); diff != "" {
			c.Errorf("tasks restored of at most %d (-want +got):\n%s", n, diff)
		}
		if diff := cmp.Diff(want, got.left); diff != "" {
			c.Errorf("left of at most %d (-want +got):\n%s", n, diff)
		}
	}
}

func (c storeTest) restoreMore() {
	var events []state.Event
	for i := range 20 {
		for _, e := range succeed(uuid(i), 10+i/4) { // four of the same clock and time
			e.Hostname = "celery@" + strconv.Itoa(i%2)
			events = append(events, e)
		}
	}
	events = append(events, event(state.TaskReceived, "active", 2))
	c.write(history.Batch{Tasks: c.fold(events...)})
	c.reopen()
	for _, limit := range []int{1, 3, 4, 7, 100} {
		got := c.restored(5)
		for from, calls := &got.left[0], 0; from != nil; calls++ {
			tasks, left, err := c.RestoreMore(c.Context(), *from, limit)
			if err != nil || len(tasks) == 0 || calls > 20 {
				c.Fatalf("call %d for %d tasks read %d, error %v", calls, limit, len(tasks), err)
			}
			if most := limit + 3; len(tasks) > most {
				c.Errorf("%d tasks are read at once, want at most %d", len(tasks), most)
			}
			for _, t := range tasks {
				if got.tasks[t.ID] == nil {
					got.tasks[t.ID] = t.Events
				}
			}
			if left != nil && left.Compare(*from) >= 0 {
				c.Fatalf("%v is left from %v on, want an older one", left, from)
			}
			from = left
		}
		for i := range 20 {
			if saved, err := c.Task(c.Context(), uuid(i)); err != nil || !bytes.Equal(saved, got.tasks[uuid(i)]) {
				c.Errorf("%d at once: task %d is restored as %q, saved as %q, error %v", limit, i, got.tasks[uuid(i)], saved, err)
			}
		}
		if len(got.tasks) != 21 {
			c.Errorf("%d tasks, want 21", len(got.tasks))
		}
	}
}

func (c storeTest) restoreWithJournal() {
	var events []state.Event
	for i := range 20 {
		events = append(events, succeed(uuid(i), 10+i)...)
	}
	c.write(history.Batch{Tasks: c.fold(events...), Journal: bytes.Repeat([]byte("j"), 10<<10)})
	for most, want := range map[int]int{0: 3, 4: 4, 10: 10, 1000: 20} {
		var r restored
		o := r.into(3)
		o.MaxWithJournal = most
		if err := c.Restore(c.Context(), o); err != nil || len(r.tasks) != want {
			c.Errorf("at most %d: %d tasks, error %v, want %d", most, len(r.tasks), err, want)
		}
	}
}

func (c storeTest) restoreEnded() {
	events := succeed(uuid(1), 10)
	c.write(history.Batch{Tasks: c.fold(events[0])})
	if got := c.restored(0); len(got.tasks) != 1 || got.left != nil {
		c.Errorf("restored %d tasks, left %v, want the active task", len(got.tasks), got.left)
	}
	c.write(history.Batch{Tasks: stored(c.fold(events...))})
	if got := c.restored(0); len(got.tasks) != 0 || len(got.left) != 1 {
		c.Errorf("restored %d tasks, left %v, want the ended task left", len(got.tasks), got.left)
	}
}

func (c storeTest) restoreError() {
	c.write(history.Batch{Journal: []byte("j"), Tasks: c.fold(append(succeed("1", 10), succeed("2", 20)...)...)})
	stop := errors.New("stop")
	calls := 0
	call := func(fails bool) error {
		if calls++; fails {
			return stop
		}
		return nil
	}
	for at, want := range map[string]int{"checkpoint": 1, "task": 2, "left": 3, "journal": 4} {
		calls = 0
		err := c.Restore(c.Context(), history.RestoreOptions{
			MaxTasks:   1,
			Checkpoint: func(history.Checkpoint) error { return call(at == "checkpoint") },
			Task:       func(string, []byte) error { return call(at == "task") },
			Omitted:    func(state.Position) error { return call(at == "left") },
			Journal:    func(uint64, []byte, bool) error { return call(at == "journal") },
		})
		if !errors.Is(err, stop) || calls != want {
			c.Errorf("restore that fails at its %s: error %v after %d calls, want %v after %d", at, err, calls, stop, want)
		}
	}
}

func (c storeTest) restoreNothing() {
	c.reopen()
	if diff := cmp.Diff(restored{}, c.restored(100), cmp.AllowUnexported(restored{})); diff != "" {
		c.Errorf("restored (-want +got):\n%s", diff)
	}
}
