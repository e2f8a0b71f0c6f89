package historytest

import (
	"errors"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// failures tests history.FailureGroups.
func failures() map[string]func(storeTest) {
	tests := map[string]func(storeTest){}
	for name, test := range map[string]func(failureTest){
		"Failures groups by name and fingerprint":      failureTest.groups,
		"Failures come in pages":                       failureTest.pages,
		"Failures come by those of the last hour":      failureTest.busiest,
		"Failures come by a span of time":              failureTest.span,
		"Failures count a task once":                   failureTest.countOnce,
		"Failures forget a task that succeeded":        failureTest.succeeded,
		"Failures are resolved and come back":          failureTest.resolve,
		"Failures tell resolved groups apart":          failureTest.resolvedApart,
		"Failures are noted and assigned":              failureTest.note,
		"Failures miss groups that are not there":      failureTest.missing,
		"Failures are found by a query":                failureTest.query,
		"Failures show the newest exception and trend": failureTest.newest,
		"Failures may be as old as the caller allows":  failureTest.stale,
		"Failures stay resolved":                       failureTest.reopened,
	} {
		tests[name] = func(c storeTest) {
			test(failureTest{c, state.New(state.Options{Track: true}), time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC), new(int64)})
		}
	}
	return tests
}

// failing is a store with the cluster that writes to it.
type failureTest struct {
	storeTest
	tasks *state.Cluster
	now   time.Time
	clock *int64
}

// report folds in that a task failed, with its exception, or, without one, that it succeeded.
func (o failureTest) report(id, name, exception string, at time.Time) {
	*o.clock++
	e := state.Event{
		Kind: state.TaskFailed, Hostname: "celery@a", PID: 1, Clock: *o.clock, Micros: at.UnixMicro(), ID: id,
		Present: state.FieldException | state.FieldClock | state.FieldPID | state.FieldTimestamp, Exception: exception,
	}
	if exception == "" {
		e.Kind = state.TaskSucceeded
		e.Present &^= state.FieldException
	}
	received := e
	received.Kind, received.Present, received.Name = state.TaskReceived, state.FieldName|state.FieldClock|state.FieldPID|state.FieldTimestamp, name
	received.Micros--
	o.tasks.Apply(&received)
	*o.clock++
	e.Clock = *o.clock
	o.tasks.Apply(&e)
}

// save writes what was reported.
func (o failureTest) save() {
	o.Helper()
	for o.tasks.Unsaved() > 0 {
		var b history.Batch
		for _, u := range o.tasks.TakeUnsaved(1000) {
			b.Tasks = append(b.Tasks, history.Task{View: u.View, Events: u.Events, Stored: u.Stored})
		}
		if err := o.tasks.Saved(true, o.write(b).Existing); err != nil {
			o.Fatalf("merge: %v", err)
		}
	}
}

// list asks for groups as of now.
func (o failureTest) list(r history.FailureRequest) history.FailurePage {
	o.Helper()
	if r.Limit == 0 {
		r.Limit = 100
	}
	if r.Now.IsZero() {
		r.Now = o.now
	}
	page, err := o.FailureGroups(o.Context(), r)
	if err != nil {
		o.Fatalf("failures: %v", err)
	}
	return page
}

// first returns the group that failed last.
func (o failureTest) first() history.FailureGroup {
	o.Helper()
	groups := o.list(history.FailureRequest{}).Groups
	if len(groups) == 0 {
		o.Fatal("there are no groups")
	}
	return groups[0]
}

// describe is a group in short.
func describe(groups []history.FailureGroup) []string {
	list := []string{}
	for _, f := range groups {
		list = append(list, strconv.Itoa(f.Count.N)+" "+f.Name+" "+f.Fingerprint.Type+" "+f.Fingerprint.Message)
	}
	return list
}

func (o failureTest) groups() {
	ago := func(m int) time.Time { return o.now.Add(-time.Duration(m) * time.Minute) }
	o.report("1", "shop.add", "ValueError('no 7')", ago(50))
	o.report("2", "shop.add", "ValueError('no 8')", ago(5))
	o.report("3", "shop.add", "KeyError('x')", ago(20))
	o.report("4", "shop.sub", "ValueError('no 7')", ago(2000))
	o.report("5", "shop.sub", "", ago(1))
	o.save()
	page := o.list(history.FailureRequest{})
	want := []string{"2 shop.add ValueError no <n>", "1 shop.add KeyError x", "1 shop.sub ValueError no <n>"}
	if diff := cmp.Diff(want, describe(page.Groups)); diff != "" {
		o.Errorf("groups (-want +got):\n%s", diff)
	}
	if page.Open != 3 || page.Resolved != 0 || page.Next != nil {
		o.Errorf("open, resolved, next = %d, %d, %v, want 3, 0, none", page.Open, page.Resolved, page.Next)
	}
	f := page.Groups[0]
	if !f.FirstAt.Equal(ago(50)) || !f.LastAt.Equal(ago(5)) || !f.Count.Exact || f.LastHour != 2 {
		o.Errorf("group = %+v, want two failures of the last hour", f)
	}
	if got := page.Groups[2]; got.LastHour != 0 {
		o.Errorf("failures in the last hour = %d, want 0", got.LastHour)
	}
	one, err := o.FailureGroup(o.Context(), f.ID, o.now)
	if err != nil {
		o.Fatal(err)
	}
	if diff := cmp.Diff(f, one); diff != "" {
		o.Errorf("the group by its id (-in the list +got):\n%s", diff)
	}
}

func (o failureTest) pages() {
	want := []string{}
	for i := range 7 {
		name := "task_" + string(rune('a'+i))
		at := o.now.Add(-time.Duration(i/2) * time.Minute) // some at one time
		o.report(name, name, "ValueError()", at)
		want = append(want, name)
	}
	o.save()
	seen := map[string]bool{}
	var last time.Time
	var after *history.FailurePosition
	for range 10 {
		page := o.list(history.FailureRequest{Limit: 2, After: after})
		for _, f := range page.Groups {
			if seen[f.Name] || !last.IsZero() && f.LastAt.After(last) {
				o.Errorf("%s at %v comes after %v", f.Name, f.LastAt, last)
			}
			seen[f.Name], last = true, f.LastAt
		}
		if after = page.Next; after == nil {
			break
		}
	}
	for _, name := range want {
		if !seen[name] {
			o.Errorf("%s is on no page", name)
		}
	}
}

func (o failureTest) busiest() {
	for i, group := range []struct {
		name   string
		n      int
		before time.Duration
	}{{"few", 2, time.Minute}, {"many", 5, 30 * time.Minute}, {"old", 9, 2 * time.Hour}} {
		for j := range group.n {
			o.report(strconv.Itoa(i)+"-"+strconv.Itoa(j), group.name, "ValueError()", o.now.Add(-group.before))
		}
	}
	o.save()
	want := []string{"5 many ValueError ", "2 few ValueError "}
	if diff := cmp.Diff(want, describe(o.list(history.FailureRequest{Busiest: true}).Groups)); diff != "" {
		o.Errorf("groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], describe(o.list(history.FailureRequest{Busiest: true, Limit: 1}).Groups)); diff != "" {
		o.Errorf("first group (-want +got):\n%s", diff)
	}
}

func (o failureTest) countOnce() {
	o.report("1", "shop.add", "ValueError('no 7')", o.now)
	o.save()
	o.report("1", "shop.add", "ValueError('no 7')", o.now.Add(time.Second)) // delivered twice
	o.save()
	if diff := cmp.Diff([]string{"1 shop.add ValueError no <n>"}, describe(o.list(history.FailureRequest{}).Groups)); diff != "" {
		o.Errorf("groups (-want +got):\n%s", diff)
	}
}

func (o failureTest) succeeded() {
	o.report("1", "shop.add", "ValueError('no 7')", o.now)
	o.save()
	id := o.first().ID
	o.report("1", "shop.add", "", o.now.Add(time.Second))
	o.save()
	if got := describe(o.list(history.FailureRequest{}).Groups); len(got) > 0 {
		o.Errorf("groups = %v, want none", got)
	}
	if _, err := o.FailureGroup(o.Context(), id, o.now); !errors.Is(err, history.ErrNotFound) {
		o.Errorf("group by its id: %v, want history.ErrNotFound", err)
	}
}

func (o failureTest) resolve() {
	o.report("1", "shop.add", "ValueError('no 7')", o.now.Add(-time.Hour))
	o.save()
	id := o.first().ID
	check := func(when string, resolved, cameBack bool) {
		o.Helper()
		f, err := o.FailureGroup(o.Context(), id, o.now)
		if err != nil {
			o.Fatalf("%s: %v", when, err)
		}
		if f.Resolved() != resolved || f.Recurred() != cameBack {
			o.Errorf("%s: resolved, came back = %v, %v, want %v, %v", when, f.Resolved(), f.Recurred(), resolved, cameBack)
		}
	}
	set := func(at time.Time) {
		o.Helper()
		if err := o.ResolveFailureGroup(o.Context(), id, at); err != nil {
			o.Fatal(err)
		}
	}
	check("at first", false, false)
	set(o.now)
	check("once resolved", true, false)
	set(time.Time{})
	check("once reopened", false, false)
	set(o.now)
	o.report("2", "shop.add", "ValueError('no 8')", o.now.Add(-time.Minute))
	o.save()
	check("after an earlier failure", true, false)
	o.report("3", "shop.add", "ValueError('no 9')", o.now.Add(time.Minute))
	o.save()
	check("after a later failure", false, true)
	set(o.now.Add(2 * time.Minute))
	check("once resolved again", true, false)
}

func (o failureTest) note() {
	o.report("1", "shop.add", "ValueError('no 7')", o.now.Add(-time.Hour))
	o.report("2", "shop.sub", "KeyError('x')", o.now.Add(-time.Minute))
	o.save()
	id := o.list(history.FailureRequest{}).Groups[1].ID
	note := func(n history.FailureNote) {
		o.Helper()
		if err := o.NoteFailureGroup(o.Context(), id, n); err != nil {
			o.Fatal(err)
		}
	}
	check := func(when, text, by string, at time.Time, assignee string) {
		o.Helper()
		f, err := o.FailureGroup(o.Context(), id, o.now)
		if err != nil {
			o.Fatalf("%s: %v", when, err)
		}
		if f.Note != text || f.NotedBy != by || !f.NotedAt.Equal(at) || f.Assignee != assignee {
			o.Errorf("%s: note %q by %q at %v, assigned to %q, want %q by %q at %v, assigned to %q", when, f.Note, f.NotedBy, f.NotedAt, f.Assignee, text, by, at, assignee)
		}
	}
	check("at first", "", "", time.Time{}, "")
	note(history.FailureNote{Text: new("Ticket <7>\nüber"), By: "ann", At: o.now})
	check("once noted", "Ticket <7>\nüber", "ann", o.now, "")
	note(history.FailureNote{Assignee: new("bob"), By: "ann", At: o.now.Add(time.Second)})
	check("once assigned", "Ticket <7>\nüber", "ann", o.now, "bob")
	if page := o.list(history.FailureRequest{Assignee: "bob"}); len(page.Groups) != 1 || page.Groups[0].ID != id || page.Open != 1 || page.Resolved != 0 {
		o.Errorf("groups of bob = %+v, want the one that is assigned to him", page)
	}
	if page := o.list(history.FailureRequest{Assignee: "ann"}); len(page.Groups) != 0 || page.Open != 0 {
		o.Errorf("groups of ann = %+v, want none", page)
	}
	if err := o.ResolveFailureGroup(o.Context(), id, o.now); err != nil {
		o.Fatal(err)
	}
	check("once resolved", "Ticket <7>\nüber", "ann", o.now, "bob")
	note(history.FailureNote{Text: new(""), Assignee: new(""), By: "bob", At: o.now})
	check("once removed", "", "", time.Time{}, "")
}

func (o failureTest) resolvedApart() {
	o.report("1", "fixed", "ValueError()", o.now.Add(-time.Minute))
	o.report("2", "broken", "ValueError()", o.now.Add(-time.Hour))
	o.save()
	if err := o.ResolveFailureGroup(o.Context(), o.first().ID, o.now); err != nil {
		o.Fatal(err)
	}
	for resolved, want := range map[bool][]string{true: {"1 fixed ValueError "}, false: {"1 broken ValueError "}} {
		page := o.list(history.FailureRequest{Resolved: &resolved})
		if diff := cmp.Diff(want, describe(page.Groups)); diff != "" {
			o.Errorf("resolved = %v (-want +got):\n%s", resolved, diff)
		}
		if page.Open != 1 || page.Resolved != 1 {
			o.Errorf("open, resolved = %d, %d, want 1, 1", page.Open, page.Resolved)
		}
	}
}

func (o failureTest) missing() {
	id := fingerprint.Fingerprint{Type: "ValueError"}.ID("nobody")
	if _, err := o.FailureGroup(o.Context(), id, o.now); !errors.Is(err, history.ErrNotFound) {
		o.Errorf("Failure: %v, want history.ErrNotFound", err)
	}
	if err := o.ResolveFailureGroup(o.Context(), id, o.now); !errors.Is(err, history.ErrNotFound) {
		o.Errorf("Resolve: %v, want history.ErrNotFound", err)
	}
	if err := o.NoteFailureGroup(o.Context(), id, history.FailureNote{Text: new("x"), At: o.now}); !errors.Is(err, history.ErrNotFound) {
		o.Errorf("Note: %v, want history.ErrNotFound", err)
	}
	if page := o.list(history.FailureRequest{}); len(page.Groups) > 0 || page.Open+page.Resolved > 0 {
		o.Errorf("groups of an empty store = %+v", page)
	}
}

func (o failureTest) newest() {
	at := func(ago time.Duration) time.Time { return o.now.Add(-ago) }
	o.report("old", "shop.add", "ValueError('no 1')", at(50*time.Hour))
	o.report("dawn", "shop.add", "ValueError('no 2')", at(23*time.Hour))
	o.report("now", "shop.add", "ValueError('no 3')", at(0))
	o.report("ahead", "shop.add", "ValueError('no 4')", at(-3*time.Hour)) // its clock is ahead
	o.save()
	f := o.first()
	if f.TaskID != "ahead" || f.Example != "ValueError('no 4')" {
		o.Errorf("newest = %s with %s, want ahead with no 4", f.TaskID, f.Example)
	}
	want := make([]int64, history.TrendHours)
	want[0], want[history.TrendHours-1] = 1, 2
	if diff := cmp.Diff(want, f.Trend); diff != "" {
		o.Errorf("trend (-want +got):\n%s", diff)
	}
}

func (o failureTest) stale() {
	o.report("1", "shop.add", "ValueError()", o.now)
	o.save()
	ask := func(after time.Duration) int {
		o.Helper()
		return len(o.list(history.FailureRequest{Now: o.now.Add(after), MaxAge: 5 * time.Second}).Groups)
	}
	if got := ask(0); got != 1 {
		o.Errorf("groups = %d, want 1", got)
	}
	o.report("2", "shop.add", "KeyError()", o.now)
	o.save()
	if got := ask(5 * time.Second); got != 2 {
		o.Errorf("groups after as long as an answer may be kept = %d, want 2", got)
	}
	if err := o.ResolveFailureGroup(o.Context(), o.first().ID, o.now.Add(time.Second)); err != nil {
		o.Fatal(err)
	}
	page := o.list(history.FailureRequest{Now: o.now.Add(6 * time.Second), MaxAge: 5 * time.Second})
	if page.Resolved != 1 {
		o.Errorf("resolved groups right after the first was resolved = %d, want 1", page.Resolved)
	}
}

func (o failureTest) query() {
	o.report("1", "shop.add", "ValueError('no 7')", o.now.Add(-time.Second))
	o.report("2", "shop.add", "ValueError('no 8')", o.now)
	o.report("3", "shop.add", "KeyError('x')", o.now)
	o.report("4", "shop.add", "", o.now)
	o.save()
	f := o.list(history.FailureRequest{}).Groups
	for _, group := range f {
		q, err := query.Parse("failure:" + group.ID.String())
		if err != nil {
			o.Fatal(err)
		}
		page, err := o.Tasks(o.Context(), history.TaskRequest{Query: q, Limit: 10, Now: o.now})
		if err != nil {
			o.Fatal(err)
		}
		if len(page.Tasks) != group.Count.N || page.Tasks[0].ID != group.TaskID {
			o.Errorf("%s finds %d tasks, want the %d of the group from its newest on", q, len(page.Tasks), group.Count.N)
		}
	}
}

// span asks for the groups that failed between two moments, the first of which is in it.
func (o failureTest) span() {
	from, to := o.now.Add(-24*time.Hour), o.now.Add(-12*time.Hour)
	o.report("1", "shop.add", "ValueError('no 7')", from.Add(-time.Microsecond))
	o.report("2", "shop.add", "ValueError('no 8')", from)
	o.report("3", "shop.add", "ValueError('no 9')", to.Add(-time.Microsecond))
	o.report("4", "shop.add", "ValueError('no 10')", to)
	o.report("5", "shop.sub", "KeyError('x')", to)
	o.report("6", "shop.sub", "TypeError('x')", to.Add(-time.Hour))
	o.save()
	r := history.FailureRequest{From: from, To: to}
	page := o.list(r)
	want := []string{"4 shop.add ValueError no <n>", "1 shop.sub TypeError x"}
	if diff := cmp.Diff(want, describe(page.Groups)); diff != "" {
		o.Fatalf("groups of the span (-want +got):\n%s", diff)
	}
	if page.Open != 2 {
		o.Errorf("open groups of the span = %d, want 2", page.Open)
	}
	add := page.Groups[0]
	first, last := add.Trend[0], add.Trend[history.TrendHours-1]
	if add.Within != 2 || len(add.Trend) != history.TrendHours || first != 1 || last != 1 {
		o.Errorf("within = %d, trend = %v, want 2, one in the first part and one in the last", add.Within, add.Trend)
	}
	if got := page.Groups[1].Trend[22]; got != 1 {
		o.Errorf("trend of the other = %v, want its failure in the 23rd half hour", page.Groups[1].Trend)
	}
	r.Only = &page.Groups[1].ID
	if diff := cmp.Diff(want[1:], describe(o.list(r).Groups)); diff != "" {
		o.Errorf("the one group (-want +got):\n%s", diff)
	}
	r.From, r.To = from.Add(time.Hour), from.Add(2*time.Hour)
	if got := describe(o.list(r).Groups); len(got) > 0 {
		o.Errorf("groups of an hour without failures = %v", got)
	}
}

func (o failureTest) reopened() {
	o.report("1", "shop.add", "ValueError('no 7')", o.now)
	o.save()
	f := o.first()
	if err := o.ResolveFailureGroup(o.Context(), f.ID, o.now); err != nil {
		o.Fatal(err)
	}
	o.reopen()
	again, err := o.FailureGroup(o.Context(), f.ID, o.now)
	if err != nil {
		o.Fatal(err)
	}
	f.ResolvedAt = o.now
	if diff := cmp.Diff(f, again); diff != "" {
		o.Errorf("the group after the store was opened again (-want +got):\n%s", diff)
	}
}
