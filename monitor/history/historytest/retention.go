package historytest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// retention tests history.Retention.
func retention() map[string]func(storeTest) {
	tests := map[string]func(storeTest){}
	for name, test := range map[string]struct {
		rules history.RetentionRules
		run   func(storeTest, history.RetentionRules)
	}{
		"Retention keeps for ever by default":    {history.RetentionRules{}, storeTest.keepAll},
		"Retention removes by class and age":     {history.RetentionRules{Succeeded: time.Hour, Failed: 3 * time.Hour}, storeTest.pruneOld},
		"Retention removes lost tasks by age":    {history.RetentionRules{Lost: time.Hour}, storeTest.pruneLost},
		"Retention goes by receipt":              {history.RetentionRules{Succeeded: time.Hour}, storeTest.pruneByReceipt},
		"Retention may be interrupted":           {history.RetentionRules{Succeeded: time.Hour}, storeTest.pruneInterrupted},
		"Retention thins events":                 {history.RetentionRules{Events: time.Hour}, storeTest.pruneEvents},
		"Retention lets removed tasks come back": {history.RetentionRules{Succeeded: time.Hour}, storeTest.pruneReturned},
		"Retention removes by size":              {history.RetentionRules{MaxSize: 1}, storeTest.pruneSize},
		"Retention keeps duplicates true":        {history.RetentionRules{Succeeded: time.Minute, Failed: time.Minute}, storeTest.pruneDuplicates},
		"Retention removes commands":             {history.RetentionRules{Commands: time.Hour}, storeTest.pruneCommands},
	} {
		tests[name] = func(c storeTest) {
			if err := c.Close(); err != nil {
				c.Fatalf("close store: %v", err)
			}
			c.Store = c.OpenWithRules(c.T, test.rules)
			c.Cleanup(func() {
				if err := c.Close(); err != nil {
					c.Errorf("close store: %v", err)
				}
			})
			test.run(c, test.rules)
		}
	}
	return tests
}

// fail returns the events of a task that fails in the given second.
func fail(id string, second int) []state.Event {
	end := event(state.TaskFailed, id, second)
	end.Exception = "KeyError('x')"
	end.Present |= state.FieldException
	return []state.Event{event(state.TaskStarted, id, second-1), end}
}

// hours writes a task of each class in each of the first six hours, the first just after it began.
func (c storeTest) hours() {
	c.Helper()
	var events []state.Event
	for h := range 6 {
		n := strconv.Itoa(h)
		events = append(events, succeed("succeeded "+n, 3600*h+10)...)
		events = append(events, fail("failed "+n, 3600*h+20)...)
		events = append(events, event(state.TaskStarted, "active "+n, 3600*h+30))
	}
	c.write(history.Batch{Tasks: c.fold(events...)})
}

// hour is the time so many hours after the first event.
func hour(n int) time.Time { return time.UnixMicro(epoch).Add(time.Duration(n) * time.Hour) }

// left returns the ids of all tasks by id, and checks that all ways to them agree.
func (c storeTest) left() []string {
	c.Helper()
	page, err := c.Tasks(c.Context(), history.TaskRequest{Limit: 500, Now: hour(6)})
	if err != nil {
		c.Fatalf("list tasks: %v", err)
	}
	ids := []string{}
	for _, t := range page.Tasks {
		ids = append(ids, t.ID)
		if _, err := c.Task(c.Context(), t.ID); err != nil {
			c.Errorf("task %s is listed, and yet: %v", t.ID, err)
		}
	}
	slices.Sort(ids)
	n, err := c.Count(c.Context(), query.Query{}, hour(6), 1000)
	if want := (history.Count{N: len(ids), Exact: true}); n != want || err != nil {
		c.Errorf("count = %+v, %v, want %+v", n, err, want)
	}
	p, err := c.PlanPrune(c.Context(), hour(0))
	if p.Tasks != len(ids) || err != nil {
		c.Errorf("plan counts %d tasks, %v, want %d", p.Tasks, err, len(ids))
	}
	return ids
}

// prune removes what is due and returns the ids that went.
func (c storeTest) prune(now time.Time) []string {
	c.Helper()
	gone := []string{}
	err := c.Prune(c.Context(), now, func(p history.Pruned) { gone = append(gone, p.Tasks...) })
	if err != nil {
		c.Fatalf("prune: %v", err)
	}
	slices.Sort(gone)
	return gone
}

func (c storeTest) keepAll(rules history.RetentionRules) {
	c.hours()
	if diff := cmp.Diff(rules, c.RetentionRules()); diff != "" {
		c.Errorf("rules (-want +got):\n%s", diff)
	}
	if gone := c.prune(hour(24 * 365)); len(gone) > 0 {
		c.Errorf("removed %v, want nothing", gone)
	}
	if got, want := len(c.left()), 18; got != want {
		c.Errorf("tasks left = %d, want %d", got, want)
	}
}

func (c storeTest) pruneOld(history.RetentionRules) {
	c.hours()
	all := c.left()
	p, err := c.PlanPrune(c.Context(), hour(6))
	if err != nil {
		c.Fatal(err)
	}
	if p.Succeeded != (history.Count{N: 5, Exact: true}) || p.Failed != (history.Count{N: 3, Exact: true}) || p.Events.N != 0 || p.Size.N != 0 {
		c.Errorf("plan = %+v, want 5 succeeded and 3 failed", p)
	}
	if got, want := p.Oldest, time.UnixMicro(epoch+10e6); !got.Equal(want) {
		c.Errorf("oldest = %v, want %v", got, want)
	}
	gone := c.prune(hour(6))
	want := []string{"failed 0", "failed 1", "failed 2", "succeeded 0", "succeeded 1", "succeeded 2", "succeeded 3", "succeeded 4"}
	if diff := cmp.Diff(want, gone); diff != "" {
		c.Errorf("removed (-want +got):\n%s", diff)
	}
	rest := slices.DeleteFunc(all, func(id string) bool { return slices.Contains(gone, id) })
	if diff := cmp.Diff(rest, c.left()); diff != "" {
		c.Errorf("left (-want +got):\n%s", diff)
	}
	for _, id := range gone {
		if _, err := c.Task(c.Context(), id); !errors.Is(err, history.ErrNotFound) {
			c.Errorf("task %s: %v, want ErrNotFound", id, err)
		}
	}
	if again := c.prune(hour(6)); len(again) > 0 {
		c.Errorf("removed %v once more", again)
	}
}

// pruneByReceipt has workers whose clocks are off by months.
func (c storeTest) pruneByReceipt(history.RetentionRules) {
	const months = 200 * 24 * 3600
	write := func(id string, second, received int) {
		events := succeed(id, second)
		for i := range events {
			events[i].ReceivedMicros = hour(received).UnixMicro()
		}
		c.write(history.Batch{Tasks: c.fold(events...)})
	}
	write("ahead, old", months, 1)
	write("behind, old", -months, 1)
	write("ahead, new", months, 5)
	write("behind, new", -months, 5)
	if got, err := c.ReferenceTime(c.Context()); err != nil || got.After(hour(5).Add(time.Hour)) {
		c.Errorf("today = %v, %v, want about when the newest event was received, %v", got, err, hour(5))
	}
	if diff := cmp.Diff([]string{"ahead, old", "behind, old"}, c.prune(hour(5))); diff != "" {
		c.Errorf("removed (-want +got):\n%s", diff)
	}
	tasks := c.fold(succeed("behind, new", -months)...)
	tasks[0].ReceivedAt = 0 // changed without an event
	c.write(history.Batch{Tasks: stored(tasks)})
	if gone := c.prune(hour(5)); len(gone) > 0 {
		c.Errorf("removed %v after it was saved again, want nothing", gone)
	}
}

// pruneInterrupted stops after the first transaction. What is left is whole, and the rest goes later.
func (c storeTest) pruneInterrupted(history.RetentionRules) {
	var events []state.Event
	for i := range 900 {
		events = append(events, succeed(uuid(i), i+2)...)
	}
	c.write(history.Batch{Tasks: c.fold(events...)})
	ctx, stop := context.WithCancel(c.Context())
	first := 0
	err := c.Prune(ctx, hour(6), func(p history.Pruned) {
		first += len(p.Tasks)
		stop()
	})
	if !errors.Is(err, context.Canceled) {
		c.Fatalf("prune: %v, want that it was canceled", err)
	}
	n, err := c.Count(c.Context(), query.Query{}, hour(6), 1000)
	if want := (history.Count{N: 900 - first, Exact: true}); n != want || err != nil || first == 0 {
		c.Errorf("count = %+v, %v, want %+v", n, err, want)
	}
	if got, want := len(c.prune(hour(6))), 900-first; got != want {
		c.Errorf("removed %d later, want %d", got, want)
	}
	if rest := c.left(); len(rest) > 0 {
		c.Errorf("left = %v", rest)
	}
}

// pruneEvents has events of progress, of which an execution shows the last.
func (c storeTest) pruneEvents(history.RetentionRules) {
	events := succeed("x", 100)
	for i := range 10 {
		progress := event(state.TaskCustom, "x", 10+i)
		progress.Subject = "progress"
		events = append(events, progress)
	}
	c.write(history.Batch{Tasks: c.fold(events...)})
	before, err := c.Task(c.Context(), "x")
	if err != nil {
		c.Fatal(err)
	}
	thinned := 0
	count := func(p history.Pruned) { thinned += p.Events }
	for _, now := range []time.Time{hour(1), hour(2), hour(3)} { // too early, just right, done already
		p, err := c.PlanPrune(c.Context(), now)
		if want := (history.Count{N: map[bool]int{true: 1}[now.Equal(hour(2))], Exact: true}); p.Events != want || err != nil {
			c.Errorf("at %v: plan to thin = %+v, %v, want %+v", now, p.Events, err, want)
		}
		if err := c.Prune(c.Context(), now, count); err != nil {
			c.Fatal(err)
		}
	}
	after, err := c.Task(c.Context(), "x")
	if err != nil {
		c.Fatal(err)
	}
	want, less, err := new(state.Reader).Compact("x", before)
	if !less || err != nil {
		c.Fatalf("nothing to thin (%v)", err)
	}
	if string(after) != string(want) || thinned != 1 {
		c.Errorf("thinned %d, events = %q, want 1 and %q", thinned, after, want)
	}
}

// pruneReturned writes a task again that a monitor still takes for stored.
func (c storeTest) pruneReturned(history.RetentionRules) {
	tasks := c.fold(succeed("x", 10)...)
	c.write(history.Batch{Tasks: tasks})
	if diff := cmp.Diff([]string{"x"}, c.prune(hour(2))); diff != "" {
		c.Fatalf("removed (-want +got):\n%s", diff)
	}
	c.write(history.Batch{Tasks: stored(tasks)})
	if diff := cmp.Diff([]string{"x"}, c.left()); diff != "" {
		c.Errorf("left (-want +got):\n%s", diff)
	}
}

// pruneLost removes unfinished tasks an hour after it was concluded that they are lost, or a person has dismissed them.
func (c storeTest) pruneLost(history.RetentionRules) {
	cluster := state.New(state.Options{Track: true})
	for _, id := range []string{"lost", "lost late", "dismissed", "found", "active"} {
		cluster.Apply(new(event(state.TaskStarted, id, 1)))
	}
	for id, k := range map[string]state.Conclusion{
		"lost":      {Reason: state.ReasonNotRunning, At: hour(0).UnixMicro()},
		"lost late": {Reason: state.ReasonOrphaned, At: hour(2).UnixMicro()},
		"dismissed": {Reason: state.ReasonDismissed, Evidence: "ann", At: hour(0).UnixMicro()},
		"found":     {Reason: state.ReasonExpired, At: hour(0).UnixMicro()},
	} {
		cluster.Conclude(id, k)
	}
	save := func() {
		var b history.Batch
		for _, u := range cluster.TakeUnsaved(cluster.Unsaved()) {
			b.Tasks = append(b.Tasks, history.Task(u))
		}
		c.write(b)
		if err := cluster.Saved(true, nil); err != nil {
			c.Fatal(err)
		}
	}
	save()
	cluster.Apply(new(event(state.TaskCustom, "found", 2)))
	save()
	p, err := c.PlanPrune(c.Context(), hour(2))
	if p.Lost != (history.Count{N: 2, Exact: true}) || err != nil {
		c.Errorf("plan removes %+v lost tasks, %v, want 2", p.Lost, err)
	}
	if diff := cmp.Diff([]string{"dismissed", "lost"}, c.prune(hour(2))); diff != "" {
		c.Errorf("removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"active", "found", "lost late"}, c.left()); diff != "" {
		c.Errorf("left (-want +got):\n%s", diff)
	}
}

// pruneSize leaves nothing but active tasks, since not even those fit.
func (c storeTest) pruneSize(history.RetentionRules) {
	c.hours()
	gone := c.prune(hour(0))
	if got, want := len(gone), 12; got != want {
		c.Errorf("removed %v, want %d tasks", gone, want)
	}
	want := []string{"active 0", "active 1", "active 2", "active 3", "active 4", "active 5"}
	if diff := cmp.Diff(want, c.left()); diff != "" {
		c.Errorf("left (-want +got):\n%s", diff)
	}
}
