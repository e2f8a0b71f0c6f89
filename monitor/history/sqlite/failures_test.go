package sqlite_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// failingAt is when the first of the tasks that fail was received.
var failingAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// openUntilEnd opens the history in a directory and closes it when the test ends.
func openUntilEnd(t testing.TB, dir string) *sqlite.DB {
	t.Helper()
	d := open(t, dir)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// writeFailing writes tasks that fail, one a millisecond: those of the numbers from ≤ i < to. what names a task
// and its exception.
func writeFailing(t testing.TB, d *sqlite.DB, from, to int, what func(i int) (name, exception string)) {
	t.Helper()
	c := state.New(state.Options{Track: true})
	const present = state.FieldClock | state.FieldPID | state.FieldTimestamp
	for i := from; i < to; i++ {
		name, exception := what(i)
		e := state.Event{
			Kind: state.TaskReceived, Hostname: "celery@a", PID: 1, Clock: int64(2*i + 1), ID: fmt.Sprintf("failing-%06d", i),
			Name: name, Micros: failingAt.UnixMicro() + int64(i)*1000, Present: present | state.FieldName,
		}
		c.Apply(&e)
		e.Kind, e.Clock, e.Exception, e.Present = state.TaskFailed, e.Clock+1, exception, present|state.FieldException
		c.Apply(&e)
		if i%1000 == 999 || i == to-1 {
			saveAll(t, d, c)
		}
	}
}

// saveAll writes what the cluster has not saved yet.
func saveAll(t testing.TB, d *sqlite.DB, c *state.Cluster) {
	t.Helper()
	for c.Unsaved() > 0 {
		var b history.Batch
		for _, u := range c.TakeUnsaved(1000) {
			b.Tasks = append(b.Tasks, history.Task{View: u.View, Events: u.Events, Stored: u.Stored})
		}
		w, err := d.Write(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Saved(true, w.Existing); err != nil {
			t.Fatal(err)
		}
	}
}

// word is a name for i without a digit in it, so that it shows in a fingerprint.
func word(i int) string {
	b := []byte("....")
	for n := range b {
		b[n] = byte('a' + i%26)
		i /= 26
	}
	return string(b)
}

func TestFailuresBeyondTheMostGoToOneGroupAName(t *testing.T) {
	t.Parallel()
	d := openUntilEnd(t, sqlite.Memory)
	const most, more = 100, 30
	d.LimitFailures(most, 1_000)
	names := []string{"shop.add", "shop.sub"}
	writeFailing(t, d, 0, most+more, func(i int) (string, string) {
		return names[i%2], "ValueError('no " + word(i) + "')"
	})
	page, err := d.FailureGroups(t.Context(), history.FailureRequest{Limit: 500, Now: failingAt.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := page.Open, most+len(names); got != want {
		t.Errorf("groups = %d, want %d", got, want)
	}
	got := map[string]int{}
	for _, f := range page.Groups {
		if f.Fingerprint.Type == "(other)" {
			got[f.Name] = f.Count.N
		}
	}
	if diff := cmp.Diff(map[string]int{"shop.add": more / 2, "shop.sub": more / 2}, got); diff != "" {
		t.Errorf("tasks in groups for others (-want +got):\n%s", diff)
	}
	// A group that exists takes more tasks all the same.
	const all = most + more
	writeFailing(t, d, all, all+2, func(int) (string, string) { return names[1], "ValueError('no " + word(1) + "')" })
	page, err = d.FailureGroups(t.Context(), history.FailureRequest{Limit: 1, Now: failingAt.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if got := page.Groups[0]; got.Count.N != 3 || got.Fingerprint.Message != "no "+word(1) {
		t.Errorf("the newest group = %+v, want three tasks with %s", got, word(1))
	}
}

func TestFailuresAreCountedUpToABound(t *testing.T) {
	t.Parallel()
	d := openUntilEnd(t, sqlite.Memory)
	const most = 100
	d.LimitFailures(10, most)
	for more, exact := range []bool{true, false} {
		writeFailing(t, d, more*most, most+more, func(int) (string, string) { return "shop.add", "ValueError()" })
		page, err := d.FailureGroups(t.Context(), history.FailureRequest{Limit: 1, Now: failingAt.Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		want := history.Count{N: most, Exact: exact}
		if f := page.Groups[0]; f.Count != want || f.LastHour != most {
			t.Errorf("count, last hour = %v, %d, want %v, %d", f.Count, f.LastHour, want, most)
		}
	}
}

func TestGroupsWithoutTasksAreForgotten(t *testing.T) {
	t.Parallel()
	d := openUntilEnd(t, t.TempDir())
	names := []string{"kept", "fixed", "fixed.long.ago", "over", "noted", "noted.long.ago", "assigned"}
	exception := func(i int) (string, string) { return names[i], "ValueError()" }
	writeFailing(t, d, 0, len(names), exception)
	group := func(name string) fingerprint.ID { return fingerprint.Of("ValueError()", "").ID(name) }
	for name, ago := range map[string]time.Duration{"fixed": time.Hour, "fixed.long.ago": 40 * 24 * time.Hour} {
		if err := d.ResolveFailureGroup(t.Context(), group(name), time.Now().Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	for name, n := range map[string]history.FailureNote{
		"noted":          {Text: new("known"), At: time.Now().Add(-time.Hour)},
		"noted.long.ago": {Text: new("known"), At: time.Now().Add(-40 * 24 * time.Hour)},
		"assigned":       {Assignee: new("ann"), At: time.Now().Add(-time.Hour)},
	} {
		if err := d.NoteFailureGroup(t.Context(), group(name), n); err != nil {
			t.Fatal(err)
		}
	}
	c := state.New(state.Options{Track: true})
	for i := 1; i < len(names); i++ { // all but the first have succeeded after all
		c.Apply(&state.Event{
			Kind: state.TaskSucceeded, Hostname: "celery@a", PID: 1, Clock: int64(1000 + i), ID: fmt.Sprintf("failing-%06d", i),
			Micros: failingAt.Add(time.Minute).UnixMicro(), Present: state.FieldClock | state.FieldPID | state.FieldTimestamp,
		})
	}
	saveAll(t, d, c)
	if err := d.SweepFailures(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, name := range names {
		err := d.ResolveFailureGroup(t.Context(), group(name), time.Now())
		if err == nil {
			left = append(left, name)
		} else if !errors.Is(err, history.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"kept", "fixed", "noted", "assigned"}, left); diff != "" {
		t.Errorf("groups left (-want +got):\n%s", diff)
	}
}

func TestFailuresAreReadByAnIndex(t *testing.T) {
	t.Parallel()
	plans, err := openUntilEnd(t, sqlite.Memory).ExplainFailures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, plan := range plans {
		searched := 0
		for _, step := range plan {
			switch {
			case strings.Contains(step, "USING COVERING INDEX tasks_failed (failure=?"), strings.Contains(step, "USING INDEX tasks_failed (failure=?"):
				searched++
			case strings.HasPrefix(step, "SCAN t"), strings.HasPrefix(step, "SCAN n"), strings.Contains(step, "TEMP B-TREE"):
				t.Errorf("%s: %s", what, step)
			}
		}
		if searched == 0 {
			t.Errorf("%s searches no tasks by the index of failures:\n%s", what, strings.Join(plan, "\n"))
		}
	}
}

// BenchmarkFailures asks a history of 300,000 failed tasks for the page of failures and the panel of the overview.
// Half of the tasks are in one group, the others in 10,000.
func BenchmarkFailures(b *testing.B) {
	d := openUntilEnd(b, b.TempDir())
	writeFailing(b, d, 0, 300_000, func(i int) (string, string) {
		if i%2 == 0 {
			return "shop.add", "ValueError()"
		}
		return "shop.sub", "ValueError('no " + word(i/2%9_999) + "')"
	})
	now := failingAt.Add(5 * time.Minute)
	for name, r := range map[string]history.FailureRequest{
		"page":  {Resolved: new(false), Limit: 50, Now: now},
		"panel": {Resolved: new(false), Busiest: true, Limit: 5, Now: now},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.FailureGroups(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("group", func(b *testing.B) {
		page, err := d.FailureGroups(b.Context(), history.FailureRequest{Busiest: true, Limit: 1, Now: now})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := d.FailureGroup(b.Context(), page.Groups[0].ID, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
