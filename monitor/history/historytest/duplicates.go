package historytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// duplicateTests tests history.Duplicates.
func duplicateTests() map[string]func(storeTest) {
	tests := map[string]func(storeTest){
		"Duplicates that a rule makes":              storeTest.duplicateRules,
		"Duplicates by arguments learned elsewhere": storeTest.learnArguments,
		"Duplicates that Umbel has published":       storeTest.publishedDuplicates,
	}
	for seed := range uint64(5) {
		tests[fmt.Sprintf("Duplicates are grouped however tasks are saved, %d", seed)] = func(c storeTest) { c.groupDuplicates(seed) }
	}
	return tests
}

// callOf identifies the call of a task to which no rule applies.
func callOf(t *state.Task) state.CallID {
	arguments, ok := duplicates.ArgumentsOf(t)
	if !ok || t.Name == nil {
		return state.CallID{}
	}
	return arguments.Call(*t.Name, nil)
}

// markDuplicates sets what stores know of tasks, by comparing each with each.
func markDuplicates(tasks []state.Task) {
	for i := range tasks {
		tasks[i].CallID, tasks[i].Duplicates = callOf(&tasks[i]), tasks[i].OwnDuplicates()
	}
	for i := range tasks {
		for j := range tasks {
			a, b := &tasks[i], &tasks[j]
			if i == j || !a.CallID.Known() || a.CallID != b.CallID {
				continue
			}
			x, y := duplicates.SpanOf(a), duplicates.SpanOf(b)
			if x.Started == 0 || y.Started == 0 {
				continue
			}
			if x.Started < y.Ended && y.Started < x.Ended {
				a.Duplicates |= state.Overlapping
			} else if y.Succeeded && y.Ended <= x.Started && (!x.Succeeded || x.Ended > y.Started) {
				a.Duplicates |= state.Rerun
			}
		}
	}
}

// wanted is what a test compares of a group.
type wanted struct {
	Key   string
	Name  string
	Tasks []string // ids, sorted
	Marks state.Duplicates
}

// wantedGroups returns the groups of marked tasks, by key.
func wantedGroups(tasks []state.Task) []wanted {
	by := make(map[state.CallID][]*state.Task)
	var groups []wanted
	for i := range tasks {
		by[tasks[i].CallID] = append(by[tasks[i].CallID], &tasks[i])
	}
	make := func(key history.DuplicateKey, of ...*state.Task) {
		w := wanted{Key: key.String()}
		for _, t := range of {
			if t.Name != nil {
				w.Name = *t.Name
			}
			w.Tasks, w.Marks = append(w.Tasks, t.ID), w.Marks|t.Duplicates
		}
		slices.Sort(w.Tasks)
		groups = append(groups, w)
	}
	for call, of := range by {
		if call.Known() && len(of) > 1 {
			make(history.DuplicateKey{Call: call}, of...)
			continue
		}
		for _, t := range of {
			if t.Duplicates&(state.Redelivery|state.Resend) != 0 {
				make(history.DuplicateKey{TaskID: t.ID}, t)
			}
		}
	}
	slices.SortFunc(groups, func(a, b wanted) int { return cmp.Compare(a.Key, b.Key) })
	return groups
}

// groups returns all groups that a request finds, by key, and fails the test if they come in another order than asked for.
func (c storeTest) groups(r history.DuplicateRequest, limit int) []wanted {
	c.Helper()
	var found []wanted
	r.Limit, r.Tasks = limit, history.MaxDuplicateTasks
	var last *history.DuplicatePosition
	for range 1_000 {
		page, err := c.DuplicateGroups(c.Context(), r)
		if err != nil {
			c.Fatal(err)
		}
		for _, g := range page.Groups {
			w := wanted{Key: g.Key.String(), Name: g.Name, Marks: g.Marks}
			for _, t := range g.Tasks {
				w.Tasks = append(w.Tasks, t.ID)
			}
			slices.Sort(w.Tasks)
			found = append(found, w)
			at := history.DuplicatePosition{Tasks: g.N, Newest: g.Position}
			if !r.Most {
				at.Tasks = 0
			}
			if last != nil && cmp.Or(cmp.Compare(last.Tasks, at.Tasks), cmp.Compare(last.Newest, at.Newest)) <= 0 {
				c.Fatalf("group at %+v follows one at %+v", at, *last)
			}
			last = &at
			if g.N != len(g.Tasks) {
				c.Fatalf("group %s of %d tasks has %d", g.Key, g.N, len(g.Tasks))
			}
		}
		if r.After = page.Next; r.After == nil {
			slices.SortFunc(found, func(a, b wanted) int { return cmp.Compare(a.Key, b.Key) })
			return found
		}
	}
	c.Fatal("pages of groups do not end")
	return nil
}

// expectDuplicates compares groups, numbers and searches with what the tasks say. Marks of groups may be of tasks before.
func (c storeTest) expectDuplicates(tasks []state.Task) {
	c.Helper()
	want := wantedGroups(tasks)
	got := c.groups(history.DuplicateRequest{}, 7)
	grouped, ungrouped := 0, 0
	for i := range got {
		if i < len(want) && got[i].Key == want[i].Key && want[i].Marks&^got[i].Marks == 0 {
			got[i].Marks = want[i].Marks
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		c.Fatalf("groups (-want +got):\n%s", diff)
	}
	for _, w := range want {
		grouped += len(w.Tasks)
	}
	for i := range tasks {
		if !tasks[i].CallID.Known() {
			ungrouped++
		}
	}
	s, err := c.DuplicateStats(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	if s.Groups != len(want) || s.Grouped != grouped || s.Ungrouped != ungrouped {
		c.Fatalf("%d groups, %d tasks in them, %d others; want %d, %d, %d", s.Groups, s.Grouped, s.Ungrouped, len(want), grouped, ungrouped)
	}
}

// expectMarks compares searches by each mark with what the tasks say.
func (c storeTest) expectMarks(tasks []state.Task) {
	c.Helper()
	for _, value := range query.DupValues() {
		r := history.TaskRequest{Query: query.New(query.Equal(query.Dup, value)), Limit: 500, Now: requestTime()}
		if diff := gocmp.Diff(listed(tasks, r), pages(c.T, c.Store, r, false)); diff != "" {
			c.Fatalf("dup:%s (-want +got):\n%s", value, diff)
		}
	}
	for chunk := range slices.Chunk(tasks, 500) {
		got := append([]state.Task{{ID: "not stored"}}, chunk[:min(len(chunk), 499)]...)
		for i := range got {
			got[i].CallID, got[i].Duplicates = state.CallID{}, 0
		}
		if err := c.MarkDuplicates(c.Context(), got); err != nil {
			c.Fatal(err)
		}
		for i := range got[1:] {
			if g, w := &got[i+1], &chunk[i]; g.CallID != w.CallID || g.Duplicates != w.Duplicates {
				c.Fatalf("task %s has the call %s and marks %b, want %s and %b", w.ID, g.CallID, g.Duplicates, w.CallID, w.Duplicates)
			}
		}
		if got[0].CallID.Known() || got[0].Duplicates != 0 {
			c.Fatal("a task that is not stored is marked")
		}
	}
}

// saveInSteps saves tasks of random events, some of them again and again, and returns them.
func (c storeTest) saveInSteps(seed uint64, n int) []state.Task {
	c.Helper()
	d := random{rand.New(rand.NewPCG(seed, 3))}
	cluster := state.New(state.Options{Track: true})
	ids := make(map[string]bool)
	save := func(n int) {
		var b history.Batch
		for _, u := range cluster.TakeUnsaved(n) {
			b.Tasks = append(b.Tasks, history.Task(u))
		}
		w := c.write(b)
		if err := cluster.Saved(true, w.Existing); err != nil {
			c.Fatal(err)
		}
	}
	for i := range n * 4 {
		e := d.event(n, i)
		ids[e.ID] = true
		cluster.Apply(e)
		if d.oneIn(8) {
			save(1 + d.IntN(6))
		}
	}
	for cluster.Unsaved() > 0 {
		save(100)
	}
	var tasks []state.Task
	for id := range ids {
		saved, err := c.Task(c.Context(), id)
		if err != nil {
			c.Fatal(err)
		}
		t, _, err := state.DecodeTask(id, saved)
		if err != nil {
			c.Fatal(err)
		}
		tasks = append(tasks, t)
	}
	markDuplicates(tasks)
	return tasks
}

// groupDuplicates saves tasks in five ways.
func (c storeTest) groupDuplicates(seed uint64) {
	tasks := c.saveInSteps(seed, 80)
	c.expectDuplicates(tasks)
	c.expectWorkflows(tasks)
	c.expectMarks(tasks)
	all := c.groups(history.DuplicateRequest{}, 7)
	for _, r := range []history.DuplicateRequest{
		{Most: true},
		{Marks: state.Overlapping},
		{Marks: state.Rerun | state.Resend, Most: true},
		{Name: "shop.pay"},
		{Name: "shop.pay", Most: true, Marks: state.Overlapping},
		{Name: "nobody"},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(w wanted) bool {
			return r.Marks != 0 && r.Marks&w.Marks == 0 || r.Name != "" && r.Name != w.Name
		})
		if diff := gocmp.Diff(want, c.groups(r, 3), cmpopts.EquateEmpty()); diff != "" {
			c.Fatalf("groups of %+v (-want +got):\n%s", r, diff)
		}
	}
	for _, w := range all {
		key, ok := history.ParseDuplicateKey(w.Key)
		g, err := c.DuplicateGroup(c.Context(), key, 500)
		if !ok || err != nil || g.Key != key || g.N != len(w.Tasks) || len(g.Tasks) != g.N || g.Oldest.IsZero() || g.Newest.IsZero() {
			c.Fatalf("group %s of %d tasks: %+v, %v", w.Key, len(w.Tasks), g, err)
		}
	}
	if _, err := c.DuplicateGroup(c.Context(), history.DuplicateKey{TaskID: "nobody"}, 1); !errors.Is(err, history.ErrNotFound) {
		c.Fatalf("group of an unknown task: %v, want %v", err, history.ErrNotFound)
	}
}

// pruneDuplicates removes half of the tasks, and then all.
func (c storeTest) pruneDuplicates(history.RetentionRules) {
	tasks := c.saveInSteps(9, 80)
	for _, now := range []time.Time{time.UnixMicro(1_790_000_500_000_000), requestTime().Add(time.Hour)} {
		gone := c.prune(now)
		tasks = slices.DeleteFunc(tasks, func(t state.Task) bool { return slices.Contains(gone, t.ID) })
		c.expectDuplicates(tasks)
		c.expectWorkflows(tasks)
	}
}

// call is a task that ran for a second, with the arguments that Celery would show.
func (c storeTest) call(id string, second int, kwargs string) []history.Task {
	c.Helper()
	events := succeed(id, second)
	events[0].Kind, events[0].Name, events[0].Args, events[0].Kwargs = state.TaskReceived, "pay", "()", kwargs
	events[0].Present |= state.FieldName | state.FieldArgs | state.FieldKwargs
	return c.fold(events...)
}

// runSteps runs the store until nothing is left to be grouped.
func (c storeTest) runSteps() {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Store.Run(ctx, func([]string) {}) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := c.DuplicateStats(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		if s.Pending == 0 {
			break
		}
		<-tick.C
	}
	cancel()
	if err := <-ended; err != nil {
		c.Fatal(err)
	}
}

func (c storeTest) records() int {
	c.Helper()
	list, _, err := c.AuditLog(c.Context(), history.AuditFilter{Limit: 500})
	if err != nil {
		c.Fatal(err)
	}
	return len(list)
}

// duplicateRules saves a rule, and deletes it.
func (c storeTest) duplicateRules() {
	for i := range 6 {
		c.write(history.Batch{Tasks: c.call(uuid(i), 10*i+10, fmt.Sprintf("{'order': 1, 'at': %d}", i))})
	}
	c.write(history.Batch{Tasks: c.call(uuid(6), 90, "{'order': 1, 'at': '1, 2...'}")})
	if got := c.groups(history.DuplicateRequest{}, 10); len(got) > 0 {
		c.Fatalf("%d groups, want none", len(got))
	}
	rule := history.DuplicateRule{Name: "pay", Exclude: []string{"at"}, At: requestTime(), Actor: "ada"}
	audit := history.AuditRecord{At: requestTime(), Actor: "ada", Action: "exclude", Target: "pay"}
	for _, want := range []bool{true, false} {
		if changed, err := c.SaveDuplicateRule(c.Context(), rule, audit); changed != want || err != nil || c.records() != 1 {
			c.Fatalf("rule saved: %v, %v, with %d records; want %v with one", changed, err, c.records(), want)
		}
	}
	c.write(history.Batch{Tasks: c.call(uuid(7), 100, "{'order': 1, 'at': 70}")}) // at once
	c.runSteps()
	got := c.groups(history.DuplicateRequest{}, 10)
	if len(got) != 1 || len(got[0].Tasks) != 7 || got[0].Marks != state.Rerun {
		c.Fatalf("groups: %+v, want one of 7 tasks", got)
	}
	c.reopen()
	rules, err := c.DuplicateRules(c.Context())
	if diff := gocmp.Diff([]history.DuplicateRule{rule}, rules); diff != "" || err != nil {
		c.Fatalf("rules: %v (-want +got):\n%s", err, diff)
	}
	c.write(history.Batch{Tasks: c.call(uuid(8), 110, "{'order': 1, 'at': 80}")})
	if got := c.groups(history.DuplicateRequest{}, 10); len(got) != 1 || len(got[0].Tasks) != 8 {
		c.Fatalf("groups: %+v, want one of 8 tasks", got)
	}
	rule.Exclude = nil
	if changed, err := c.SaveDuplicateRule(c.Context(), rule, audit); !changed || err != nil {
		c.Fatalf("rule deleted: %v, %v", changed, err)
	}
	c.runSteps()
	if got := c.groups(history.DuplicateRequest{}, 10); len(got) > 0 || c.records() != 2 {
		c.Fatalf("groups: %+v, %d records; want none and 2", got, c.records())
	}
	rule.Exclude = []string{"a..b"}
	if _, err := c.SaveDuplicateRule(c.Context(), rule, audit); err == nil {
		c.Fatal("a rule with a path that is none was saved")
	}
}

// learnArguments has a task whose arguments were cut grouped by what is known from elsewhere.
func (c storeTest) learnArguments() {
	whole := c.call(uuid(1), 10, "{'order': 1}")
	cut := c.call(uuid(2), 20, "{'order': 1, 'lines': [...]}")
	c.write(history.Batch{Tasks: slices.Concat(whole, cut)})
	if s, err := c.DuplicateStats(c.Context()); err != nil || s.Ungrouped != 1 || len(s.UngroupedNames) != 1 || s.UngroupedNames[0].Name != "pay" {
		c.Fatalf("stats: %+v, %v; want one task that is not grouped", s, err)
	}
	for _, x := range []struct{ id, args, kwargs string }{
		{uuid(2), `[]`, `{"order": `}, {uuid(2), `{}`, `[]`}, {uuid(2), `[]`, `{"order": 1}`}, {uuid(1), `[]`, `{}`}, {uuid(3), `[]`, `{}`},
	} {
		if err := c.LearnArguments(c.Context(), x.id, []byte(x.args), []byte(x.kwargs)); err != nil {
			c.Fatal(err)
		}
	}
	for range 2 {
		got := c.groups(history.DuplicateRequest{}, 10)
		if len(got) != 1 || len(got[0].Tasks) != 2 || got[0].Marks != state.Rerun {
			c.Fatalf("groups: %+v, want one of 2 tasks", got)
		}
		c.write(history.Batch{Tasks: stored(cut)}) // its events still do not show them
	}
	if s, err := c.DuplicateStats(c.Context()); err != nil || s.Ungrouped != 0 {
		c.Fatalf("stats: %+v, %v; want all tasks grouped", s, err)
	}
}

// publishedDuplicates has the arguments of a task that was cut in the outbox.
func (c storeTest) publishedDuplicates() {
	command := commandOf("q")
	command.TaskID = uuid(2)
	command.Payload = fmt.Appendf(nil, `{"id":%q,"name":"pay","args":[],"kwargs":{"order":1}}`, uuid(2))
	r := history.CommandRequest{Commands: []history.Command{command}, Audit: history.AuditRecord{At: requestTime(), Actor: "ada", Action: "publish"}}
	if _, _, err := c.Enqueue(c.Context(), r); err != nil {
		c.Fatal(err)
	}
	c.write(history.Batch{Tasks: slices.Concat(c.call(uuid(1), 10, "{'order': 1}"), c.call(uuid(2), 20, "{'order': ...}"))})
	if got := c.groups(history.DuplicateRequest{}, 10); len(got) != 1 || len(got[0].Tasks) != 2 {
		c.Fatalf("groups: %+v, want one of 2 tasks", got)
	}
}
