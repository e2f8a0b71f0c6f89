package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// answerTime is how long a page of groups may take.
const answerTime = 150 * time.Millisecond

// manyDuplicates makes a history of n tasks: a fifth is one call, two fifths are pairs.
func manyDuplicates(t testing.TB, n int) *sqlite.DB {
	t.Helper()
	dir := t.TempDir()
	d := open(t, dir)
	write(t, d, history.Batch{Tasks: []history.Task{calledTask("3f0bd0a5-94b4-4d6c-8f0e-000000000001", "(1,)", "{}")}})
	closed(t, d)
	script(t, dir, fmt.Sprintf(`
		CREATE TEMP TABLE numbers AS WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT i, CASE WHEN i %% 10 < 2 THEN 0 WHEN i %% 10 < 5 THEN i ELSE i / 2 * 2 + 100000000 END AS c FROM n;
		INSERT INTO tasks (task, id, clock, micros, origin, state, final, name, worker, received, started, finished, updated, run, flags, call, dup)
			SELECT i, CAST(printf('%%016d', i) AS BLOB), clock + i, micros + i, origin, state, final, name, worker, received + i, started + i, finished + i,
				updated + i, run, flags, CAST(printf('%%016d', c) AS BLOB), CASE WHEN i %% 10 BETWEEN 2 AND 4 THEN 0 WHEN i %% 250 = 7 THEN 24 ELSE 16 END
			FROM numbers, tasks WHERE task = 1;
		INSERT INTO events (task, body) SELECT i, body FROM numbers, events WHERE task = 1;
		INSERT INTO duplicates (key, name, n, newest, marks)
			SELECT call, min(name), count(*), max(task), max(dup) FROM tasks WHERE task > 1 GROUP BY call HAVING count(*) > 1;
		INSERT INTO meta (key, value) SELECT 'duplicate groups', count(*) FROM duplicates;
		INSERT INTO meta (key, value) SELECT 'duplicate tasks', sum(n) FROM duplicates;`, n))
	d = open(t, dir)
	t.Cleanup(func() { closed(t, d) })
	return d
}

// calledTask is a task that has succeeded, as Celery's events show it.
func calledTask(id, args, kwargs string) history.Task {
	c := state.New(state.Options{Track: true})
	for i, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
		at := int64(1_790_000_000_000_000 + i*1_000_000)
		c.Apply(&state.Event{
			Kind: kind, ID: id, Hostname: "celery@a", PID: 7, Clock: int64(i + 1), Micros: at, ReceivedMicros: at, Name: "shop.pay", Args: args,
			Kwargs: kwargs, Result: "'done'", Present: state.FieldClock | state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldResult,
		})
	}
	u := c.TakeUnsaved(1)[0]
	return history.Task{View: u.View, Events: u.Events}
}

// duplicateRequests are pages that people see.
func duplicateRequests() map[string]history.DuplicateRequest {
	return map[string]history.DuplicateRequest{
		"newest":           {Limit: 50, Tasks: 10},
		"most":             {Limit: 50, Tasks: 10, Most: true},
		"overlapping":      {Limit: 50, Tasks: 10, Marks: state.Overlapping},
		"overlapping most": {Limit: 50, Tasks: 10, Marks: state.Overlapping, Most: true},
		"resend":           {Limit: 50, Tasks: 10, Marks: state.Resend},
		"name":             {Limit: 50, Tasks: 10, Name: "shop.pay"},
		"name most":        {Limit: 50, Tasks: 10, Name: "shop.pay", Most: true},
		"deep":             {Limit: 50, Tasks: 10, After: &history.DuplicatePosition{Newest: 5_000}},
	}
}

// TestGroupsOfManyTasks asks a history of 20,000 tasks for pages of groups. If it is to be thorough, there are a million
// tasks, and each page must come in time: a machine that is busy with other tests cannot promise that.
func TestGroupsOfManyTasks(t *testing.T) {
	t.Parallel()
	tasks := 20_000
	if testenv.Thorough() {
		tasks = 1_000_000
	}
	d := manyDuplicates(t, tasks)
	for name, r := range duplicateRequests() {
		best := time.Hour
		var page history.DuplicatePage
		for range 5 { // other tests run too
			begin := time.Now()
			var err error
			if page, err = d.DuplicateGroups(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(begin))
		}
		if want := 50; len(page.Groups) != want && r.Marks != state.Resend {
			t.Errorf("%s: %d groups, want %d", name, len(page.Groups), want)
		}
		if testenv.Thorough() && best > answerTime {
			t.Errorf("%s took %v, want at most %v", name, best, answerTime)
		}
	}
	if s, err := d.DuplicateStats(t.Context()); err != nil || s.Tasks != tasks || s.Grouped == 0 || s.Grouped >= tasks {
		t.Errorf("stats: %+v, %v", s, err)
	}
}

// BenchmarkDuplicates asks for pages of groups, and for tasks by dup:, among a million tasks.
func BenchmarkDuplicates(b *testing.B) {
	d := manyDuplicates(b, 1_000_000)
	for name, r := range duplicateRequests() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.DuplicateGroups(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, value := range []string{query.DupAny, query.DupOverlapping, query.DupResend, "30303030303030303030303030303030"} {
		q := query.New(query.Equal(query.Dup, value))
		b.Run("dup "+value, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Tasks(b.Context(), history.TaskRequest{Query: q, Limit: 50, Now: time.Unix(1_790_000_000, 0)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("stats", func(b *testing.B) {
		for b.Loop() {
			if _, err := d.DuplicateStats(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestTasksOfAnEarlierSchemaAreGrouped groups what was saved before calls were known, step by step.
func TestTasksOfAnEarlierSchemaAreGrouped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	const n = 300
	var tasks []history.Task
	for i := range n {
		args := fmt.Sprintf("(%d,)", i/3)
		if i%10 == 0 {
			args = "('cut...',)"
		}
		tasks = append(tasks, calledTask(fmt.Sprintf("3f0bd0a5-94b4-4d6c-8f0e-%012d", i), args, "{}"))
	}
	write(t, d, history.Batch{Tasks: tasks})
	want := duplicateStats(t, d)
	if want.Groups == 0 || want.Ungrouped != n/10 {
		t.Fatalf("stats: %+v", want)
	}
	closed(t, d)
	script(t, dir, schema9)
	d = open(t, dir)
	if got := duplicateStats(t, d); got.Pending != n || got.Groups != 0 {
		t.Errorf("stats of the earlier schema: %+v, want %d pending", got, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, func([]string) {}) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for duplicateStats(t, d).Pending > 0 {
		<-tick.C
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := duplicateStats(t, d); got.Groups != want.Groups || got.Grouped != want.Grouped || got.Ungrouped != want.Ungrouped {
		t.Errorf("stats: %+v, want %+v", got, want)
	}
	closed(t, d)
}

func duplicateStats(t *testing.T, d *sqlite.DB) history.DuplicateStats {
	t.Helper()
	s, err := d.DuplicateStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRepairGroupsByTheRulesOfTheFile repairs a history of two tasks that only a rule makes one call.
func TestRepairGroupsByTheRulesOfTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	rule := history.DuplicateRule{Name: "shop.pay", Exclude: []string{"at"}, At: time.Unix(1_790_000_000, 0), Actor: "ada"}
	if _, err := d.SaveDuplicateRule(t.Context(), rule, history.AuditRecord{At: rule.At, Action: "exclude fields"}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		task := calledTask(fmt.Sprintf("3f0bd0a5-94b4-4d6c-8f0e-%012d", i), "()", fmt.Sprintf("{'at': %d}", i))
		write(t, d, history.Batch{Tasks: []history.Task{task}})
	}
	closed(t, d)
	renamed := dir + "/history.damaged-20261122T100000Z.db"
	rename(t, file(dir), renamed)
	d = open(t, dir)
	defer closed(t, d)
	if done := recovery(t, d, renamed); done.Rows["duplicate_rules"] != 1 || len(done.Incomplete) > 0 {
		t.Errorf("%+v, want one rule and nothing missing", done)
	}
	if got := duplicateStats(t, d); got.Groups != 1 || got.Grouped != 2 {
		t.Errorf("stats: %+v, want a group of two tasks", got)
	}
	if rules, err := d.DuplicateRules(t.Context()); err != nil || len(rules) != 1 || rules[0].Actor != "ada" {
		t.Errorf("rules: %+v, %v", rules, err)
	}
}
