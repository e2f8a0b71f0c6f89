package historytest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

func historyTests() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"Write keeps tasks":                                 storeTest.writeTasks,
		"Write replaces tasks that are stored":              storeTest.writeAgain,
		"Write repeated changes nothing":                    storeTest.writeTwice,
		"Write tells what it holds of tasks said to be new": storeTest.writeKnown,
		"Write takes a task that is said to be stored":      storeTest.writeUnknown,
		"Write does nothing once its context has ended":     storeTest.writeContext,
		"Write keeps hostile ids apart":                     storeTest.writeIDs,
		"Write keeps hostile texts":                         storeTest.writeTexts,
		"Write numbers journal entries":                     storeTest.journalNumbers,
		"Write forgets journal entries":                     storeTest.journalForget,
		"Restore reads checkpoints":                         storeTest.restoreCheckpoint,
		"Restore reads the newest tasks":                    storeTest.restoreTasks,
		"RestoreMore reads what Restore omits":              storeTest.restoreMore,
		"Restore reads more where the journal is long":      storeTest.restoreWithJournal,
		"Restore follows tasks that end":                    storeTest.restoreEnded,
		"Restore stops at an error":                         storeTest.restoreError,
		"Restore of nothing":                                storeTest.restoreNothing,
		"Children come by stamp":                            storeTest.children,
		"Calls may be made from several goroutines":         storeTest.concurrent,
		"Close waits for calls":                             storeTest.closeBusy,
	}
}

// expectTasks fails the test unless the store has the events of all tasks.
func (c storeTest) expectTasks(tasks []history.Task) {
	c.Helper()
	for _, t := range tasks {
		got, err := c.Task(c.Context(), t.View.ID)
		if err != nil {
			c.Errorf("task %q: %v", t.View.ID, err)
			continue
		}
		if diff := cmp.Diff(t.Events, got); diff != "" {
			c.Errorf("events of task %q (-want +got):\n%s", t.View.ID, diff)
		}
	}
}

func (c storeTest) writeTasks() {
	active := []state.Event{event(state.TaskReceived, uuid(3), 30)}
	tasks := c.fold(slices.Concat(succeed(uuid(1), 10), succeed("two", 20), active)...)
	if got, want := c.write(history.Batch{Tasks: tasks}), (history.WriteResult{}); !cmp.Equal(got, want) {
		c.Errorf("written = %+v, want %+v", got, want)
	}
	c.expectTasks(tasks)
	c.reopen()
	c.expectTasks(tasks)
	if _, err := c.Task(c.Context(), uuid(4)); !errors.Is(err, history.ErrNotFound) {
		c.Errorf("task that was not written: error %v, want %v", err, history.ErrNotFound)
	}
}

func (c storeTest) writeAgain() {
	events := succeed(uuid(1), 10)
	c.write(history.Batch{Tasks: c.fold(events[0])})
	whole := stored(c.fold(events...))
	if got := c.write(history.Batch{Tasks: whole}); len(got.Existing) > 0 {
		c.Errorf("known = %q, want none", got.Existing)
	}
	c.expectTasks(whole)
	if got, want := len(c.restored(100).tasks), 1; got != want {
		c.Errorf("restored %d tasks, want %d", got, want)
	}
}

func (c storeTest) writeTwice() {
	tasks := stored(c.fold(slices.Concat(succeed(uuid(1), 10), succeed("two", 20))...))
	p := history.Checkpoint{Clock: 9, Workers: map[string][]byte{"w": []byte("{}")}}
	b := history.Batch{Tasks: tasks, Checkpoint: &p}
	c.write(b)
	want := c.restored(100)
	c.write(b)
	if diff := cmp.Diff(want, c.restored(100), cmp.AllowUnexported(restored{})); diff != "" {
		c.Errorf("restored after the same batch again (-want +got):\n%s", diff)
	}
}

func (c storeTest) writeKnown() {
	events := succeed(uuid(1), 10)
	held := c.fold(events[0])
	c.write(history.Batch{Tasks: held})

	other := c.fold(succeed(uuid(2), 20)...)
	got := c.write(history.Batch{Journal: []byte("j"), Tasks: append(c.fold(events[1]), other...)})
	want := history.WriteResult{JournalEntry: got.JournalEntry, Existing: map[string][]byte{uuid(1): held[0].Events}}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("written (-want +got):\n%s", diff)
	}
	c.expectTasks(append(held, other...))
}

func (c storeTest) writeUnknown() {
	tasks := stored(c.fold(succeed(uuid(1), 10)...))
	if got := c.write(history.Batch{Tasks: tasks}); len(got.Existing) > 0 {
		c.Errorf("known = %q, want none", got.Existing)
	}
	c.expectTasks(tasks)
}

func (c storeTest) writeContext() {
	ended, cancel := context.WithCancel(c.Context())
	cancel()
	b := history.Batch{
		Journal: []byte("j"), Tasks: c.fold(succeed(uuid(1), 10)...), Checkpoint: &history.Checkpoint{Clock: 9},
	}
	if _, err := c.Write(ended, b); !errors.Is(err, context.Canceled) {
		c.Errorf("write with an ended context: error %v, want %v", err, context.Canceled)
	}
	if diff := cmp.Diff(restored{}, c.restored(100), cmp.AllowUnexported(restored{})); diff != "" {
		c.Errorf("restored (-want +got):\n%s", diff)
	}
	if got := c.Health().LastError; got != "" {
		c.Errorf("health says %q of a write that was given up", got)
	}
}

func (c storeTest) writeIDs() {
	var events []state.Event
	for name, id := range hostile() {
		e := succeed(id, 10+len(name))
		e[1].Result = name
		events = append(events, e...)
	}
	tasks := c.fold(events...)
	c.write(history.Batch{Tasks: tasks})
	c.expectTasks(tasks)
	c.reopen()
	c.expectTasks(tasks)
	c.write(history.Batch{Tasks: stored(tasks)})

	want := make(map[string][]byte, len(tasks))
	for _, t := range tasks {
		want[t.View.ID] = t.Events
	}
	if diff := cmp.Diff(want, c.restored(100).tasks); diff != "" {
		c.Errorf("restored (-want +got):\n%s", diff)
	}
	for _, id := range []string{uuid(2), "042", "SIXTEEN BYTES IT", "a"} {
		if _, err := c.Task(c.Context(), id); !errors.Is(err, history.ErrNotFound) {
			c.Errorf("task %q: error %v, want %v", id, err, history.ErrNotFound)
		}
	}
}

func (c storeTest) writeTexts() {
	second := 0
	for name, text := range hostile() {
		second += 10
		e := event(state.TaskReceived, uuid(second), second)
		e.Present |= state.FieldName | state.FieldArgs | state.FieldRootID | state.FieldParentID | state.FieldETA
		e.Name, e.Hostname, e.Args, e.RootID, e.ParentID, e.ETA = text, text, text, text, text, text
		tasks := c.fold(e)
		for range 2 { // the second time, all texts are known
			if _, err := c.Write(c.Context(), history.Batch{Tasks: stored(tasks)}); err != nil {
				c.Errorf("write task with %s text: %v", name, err)
			}
		}
		c.expectTasks(tasks)
		got, err := c.Children(c.Context(), text, 500)
		if err != nil || text != "" && !slices.Equal(got, []string{uuid(second)}) {
			c.Errorf("children of task with %s id = %q, error %v, want %q", name, got, err, uuid(second))
		}
	}
	c.reopen()
	if got, want := len(c.restored(0).tasks), len(hostile()); got != want {
		c.Errorf("restored %d tasks, want %d", got, want)
	}
}

func (c storeTest) children() {
	var events []state.Event
	want := make([]string, 9)
	for i := range want {
		e := event(state.TaskReceived, uuid(i), 90-i)
		if i%3 == 0 {
			e.ID = "child " + strconv.Itoa(i)
		}
		e.Present |= state.FieldParentID
		e.ParentID = uuid(100)
		events = append(events, e)
		want[len(want)-1-i] = e.ID
	}
	events = append(events, succeed(uuid(100), 20)...)
	c.write(history.Batch{Tasks: c.fold(events...)})
	for _, n := range []int{500, 9, 4} {
		got, err := c.Children(c.Context(), uuid(100), n)
		if err != nil {
			c.Fatalf("children: %v", err)
		}
		if diff := cmp.Diff(want[:min(n, 9)], got); diff != "" {
			c.Errorf("at most %d children (-want +got):\n%s", n, diff)
		}
	}
	if got, err := c.Children(c.Context(), "child 0", 500); len(got) > 0 || err != nil {
		c.Errorf("children of a task without any = %q, error %v", got, err)
	}
}

func (c storeTest) concurrent() {
	const writers, rounds = 4, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				id := uuid(w*rounds + i)
				tasks := c.fold(succeed(id, 10+i)...)
				if _, err := c.Write(c.Context(), history.Batch{Journal: []byte(id), Tasks: tasks}); err != nil {
					c.Errorf("write: %v", err)
				}
				if _, err := c.Task(c.Context(), id); err != nil {
					c.Errorf("task %s after it was written: %v", id, err)
				}
				if _, err := c.SaveView(c.Context(), history.View{Name: id}); err != nil {
					c.Errorf("save view: %v", err)
				}
				c.Health()
			}
		})
		wg.Go(func() {
			for range rounds {
				if err := c.Restore(c.Context(), new(restored).into(10)); err != nil {
					c.Errorf("restore: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := c.restored(writers * rounds)
	if len(got.tasks) != writers*rounds || len(got.journal) != writers*rounds {
		c.Errorf("restored %d tasks and %d entries, want %d each", len(got.tasks), len(got.journal), writers*rounds)
	}
}

func (c storeTest) closeBusy() {
	var wg sync.WaitGroup
	begun := make(chan struct{})
	tasks := make([][]history.Task, 4)
	kept := make([]int, len(tasks))
	for w := range tasks {
		for i := range 200 {
			tasks[w] = append(tasks[w], c.fold(succeed(uuid(w*200+i), 10+i)...)...)
		}
		wg.Go(func() {
			for i := range tasks[w] {
				if _, err := c.Write(c.Context(), history.Batch{Tasks: tasks[w][i : i+1]}); err != nil {
					return
				}
				if kept[w]++; w == 0 && i == 5 {
					close(begun)
				}
			}
		})
	}
	<-begun
	if err := c.Close(); err != nil {
		c.Errorf("close while busy: %v", err)
	}
	wg.Wait()
	if _, err := c.Write(c.Context(), history.Batch{Tasks: tasks[0][:1]}); err == nil {
		c.Error("write after close: no error")
	}
	if _, err := c.Task(c.Context(), uuid(0)); err == nil || errors.Is(err, history.ErrNotFound) {
		c.Errorf("task after close: error %v, want one that does not say it is missing", err)
	}
	if !c.Durable {
		return
	}
	c.Store = c.open()
	for w, n := range kept {
		c.expectTasks(tasks[w][:n])
	}
}
