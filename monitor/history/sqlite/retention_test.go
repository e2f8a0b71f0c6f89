package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
)

// noon is when the last of the tasks here ended.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// fill writes n succeeded tasks, one a minute until noon, with text that does not compress.
func fill(t testing.TB, d *sqlite.DB, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	c := state.New(state.Options{Track: true})
	for i := range n {
		args := make([]byte, 300)
		for k := range args {
			args[k] = byte('a' + random.IntN(26))
		}
		at := noon().Add(time.Duration(i-n+1) * time.Minute).UnixMicro()
		e := state.Event{
			Kind: state.TaskReceived, ID: fmt.Sprintf("task-%06d", i), Hostname: "w@a", PID: 1, Clock: int64(2*i + 1),
			Micros: at, ReceivedMicros: at, Name: "a", Args: string(args), Present: state.FieldClock | state.FieldName | state.FieldArgs,
		}
		c.Apply(&e)
		e.Kind, e.Clock, e.Present = state.TaskSucceeded, e.Clock+1, state.FieldClock
		c.Apply(&e)
		if c.Unsaved() == 1000 || i == n-1 {
			var b history.Batch
			for _, u := range c.TakeUnsaved(c.Unsaved()) {
				b.Tasks = append(b.Tasks, history.Task{View: u.View, Events: u.Events, FirstReceipt: u.FirstReceipt, ReceivedAt: u.ReceivedAt})
			}
			if _, err := d.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if err := c.Saved(true, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func keeping(t testing.TB, dir string, o sqlite.Options) *sqlite.DB {
	t.Helper()
	o.Dir = dir
	d, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, d) })
	return d
}

func TestPruningBySizeFreesTheDisk(t *testing.T) {
	t.Parallel()
	const most, all = 1 << 20, 1000
	dir := t.TempDir()
	d := keeping(t, dir, sqlite.Options{Rules: history.RetentionRules{MaxSize: most}})
	fill(t, d, all)
	if err := d.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := d.PlanPrune(t.Context(), noon())
	if err != nil {
		t.Fatal(err)
	}
	if before.UsedBytes <= most || before.Size.N == 0 || before.Size.N >= all {
		t.Fatalf("before: %+v, want more than %d bytes and a part of the tasks to go", before, most)
	}
	removed, freed := 0, int64(0)
	err = d.Prune(t.Context(), noon(), func(p history.Pruned) { removed, freed = removed+len(p.Tasks), freed+p.Bytes })
	if err != nil {
		t.Fatal(err)
	}
	after, err := d.PlanPrune(t.Context(), noon())
	if err != nil {
		t.Fatal(err)
	}
	if after.UsedBytes > most || after.UsedBytes < most/2 {
		t.Errorf("bytes in use = %d, want somewhat below %d", after.UsedBytes, most)
	}
	if after.Tasks != all-removed || after.Tasks == 0 || after.Size.N != 0 {
		t.Errorf("after removing %d: %+v", removed, after)
	}
	if diff := float64(before.Size.N) / float64(removed); diff < 0.5 || diff > 2 {
		t.Errorf("planned to remove %d, removed %d", before.Size.N, removed)
	}
	if freed == 0 {
		t.Error("no space was given back")
	}
	if got, want := after.Oldest, noon().Add(-time.Duration(after.Tasks-1)*time.Minute); !got.Equal(want) {
		t.Errorf("oldest = %v, want %v", got, want)
	}
	info, err := os.Stat(filepath.Join(dir, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("removed %d tasks, file %d bytes, %d in use, %+v", removed, info.Size(), after.UsedBytes, before)
}

// TestAFileThatOutgrowsItsRuleIsPrunedSoon fills it between two looks at what is too old.
func TestAFileThatOutgrowsItsRuleIsPrunedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 1 << 20
		d := keeping(t, t.TempDir(), sqlite.Options{Rules: history.RetentionRules{MaxSize: most}, Now: noon})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx, func([]string) {}) }()
		<-time.After(1500 * time.Millisecond) // while nobody looks
		fill(t, d, 1000)
		<-time.After(30 * time.Second)
		plan, err := d.PlanPrune(t.Context(), noon())
		if err != nil || plan.UsedBytes > most || plan.Tasks == 0 || plan.Tasks == 1000 {
			t.Errorf("30 s later: %+v, %v, want a part of the tasks, in at most %d bytes", plan, err, most)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestActiveTasksDoNotCountAgainstTheSize has more active tasks than the size allows, and finished ones that fit.
func TestActiveTasksDoNotCountAgainstTheSize(t *testing.T) {
	t.Parallel()
	const most = 2 << 20
	d := keeping(t, t.TempDir(), sqlite.Options{Rules: history.RetentionRules{MaxSize: most}})
	fill(t, d, 500)
	c := state.New(state.Options{Track: true})
	for i := range 3000 {
		e := state.Event{
			Kind: state.TaskReceived, ID: fmt.Sprintf("active-%06d", i), Hostname: "w@a", PID: 2, Clock: int64(i + 1), Micros: noon().UnixMicro(),
			Args: strings.Repeat(strconv.Itoa(i)+",", 1000)[:1000], Present: state.FieldClock | state.FieldArgs,
		}
		c.Apply(&e)
	}
	write := func() {
		var b history.Batch
		for _, u := range c.TakeUnsaved(c.Unsaved()) {
			b.Tasks = append(b.Tasks, history.Task{View: u.View, Events: u.Events, Stored: u.Stored})
		}
		if _, err := d.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := c.Saved(true, nil); err != nil {
			t.Fatal(err)
		}
	}
	prune := func() (removed int) {
		err := d.Prune(t.Context(), noon(), func(p history.Pruned) { removed += len(p.Tasks) })
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	write()
	if n := prune(); n > 0 {
		t.Errorf("removed %d of 500 finished tasks, which fit", n)
	}
	p, err := d.PlanPrune(t.Context(), noon())
	if h := d.Health(); err != nil || !h.OverMaxSize || h.ActiveBytes < most || p.ActiveBytes < most || p.Active.N != 3000 || p.Size.N != 0 {
		t.Errorf("plan %+v, %v, health %+v, want 3,000 active tasks to take more than %d bytes", p, err, h, most)
	}
	for i := range 3000 {
		c.Conclude(fmt.Sprintf("active-%06d", i), state.Conclusion{Reason: state.ReasonExpired, At: noon().UnixMicro()})
	}
	write()
	prune()
	if p, err = d.PlanPrune(t.Context(), noon()); err != nil || p.UsedBytes > most || d.Health().OverMaxSize || d.Health().ActiveBytes != 0 {
		t.Errorf("once they are lost: plan %+v, %v, health %+v, want at most %d bytes", p, err, d.Health(), most)
	}
}

func TestClockSetForwardRemovesNothing(t *testing.T) {
	t.Parallel()
	now := noon()
	d := keeping(t, sqlite.Memory, sqlite.Options{
		Rules: history.RetentionRules{Succeeded: time.Hour}, Now: func() time.Time { return now },
	})
	fill(t, d, 200)
	for _, skew := range []time.Duration{0, -24 * time.Hour, 400 * 24 * time.Hour} {
		now = noon().Add(skew)
		got, err := d.ReferenceTime(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := noon().Add(min(skew, 0)); got.Before(want) || got.Sub(want) > time.Minute {
			t.Errorf("%v off: today = %v, want about %v", skew, got, want)
		}
	}
	p, err := d.PlanPrune(t.Context(), noon())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Succeeded, (history.Count{N: 139, Exact: true}); got != want {
		t.Errorf("too old = %+v, want %+v", got, want)
	}
}

// BenchmarkPrune removes tasks while a batch is written every 10 ms, and says how long one waited at most.
func BenchmarkPrune(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		b.StopTimer()
		d := keeping(b, b.TempDir(), sqlite.Options{Rules: history.RetentionRules{Succeeded: time.Nanosecond}})
		fill(b, d, n)
		if err := d.Index(b.Context()); err != nil {
			b.Fatal(err)
		}
		done, waits := make(chan struct{}), make(chan []time.Duration)
		go func() {
			var list []time.Duration
			ticker := time.NewTicker(10 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-done:
					waits <- list
					return
				case <-ticker.C:
				}
				begin := time.Now()
				if _, err := d.Write(b.Context(), history.Batch{Journal: []byte("event")}); err != nil {
					b.Error(err)
				}
				list = append(list, time.Since(begin))
			}
		}()
		b.StartTimer()
		if err := d.Prune(b.Context(), noon().Add(time.Hour), func(history.Pruned) {}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		close(done)
		list := <-waits
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)-1].Milliseconds()), "longest-wait-ms")
		b.ReportMetric(float64(list[len(list)*99/100].Milliseconds()), "p99-wait-ms")
		b.StartTimer()
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

func TestPruningLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := keeping(t, dir, sqlite.Options{Rules: history.RetentionRules{Succeeded: time.Hour}})
	fill(t, d, 800)
	if err := d.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "history.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := raw.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	check := func(when string, want int) {
		t.Helper()
		for what, query := range map[string]string{
			"tasks":  `SELECT count(*) FROM tasks`,
			"events": `SELECT count(*) FROM events JOIN tasks USING (task)`,
			"all":    `SELECT count(*) FROM events`,
		} {
			var got int
			if err := raw.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if got != want {
				t.Errorf("%s: %d %s, want %d", when, got, what, want)
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	removed := 0
	err = d.Prune(ctx, noon(), func(p history.Pruned) {
		if removed += len(p.Tasks); removed > 200 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("prune: %v, want that it was canceled", err)
	}
	check("halfway", 800-removed)
	if err := d.Prune(t.Context(), noon(), func(history.Pruned) {}); err != nil {
		t.Fatal(err)
	}
	check("in the end", 61)
	if n := d.Indexed(t); n != 61 {
		t.Errorf("%d texts, want 61", n)
	}
	var state string
	if err := raw.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&state); err != nil || state != "ok" {
		t.Errorf("integrity: %q, %v", state, err)
	}
}

func TestRunPrunesAndTellsWhatIsGone(t *testing.T) {
	t.Parallel()
	d := keeping(t, sqlite.Memory, sqlite.Options{
		Rules: history.RetentionRules{Succeeded: time.Hour}, Now: noon,
	})
	fill(t, d, 100)
	ctx, stop := context.WithCancel(t.Context())
	var pruned []string
	err := d.Run(ctx, func(ids []string) {
		if pruned = append(pruned, ids...); len(pruned) >= 39 {
			stop()
		}
	})
	if err != nil || len(pruned) != 39 || pruned[0] != "task-000000" || pruned[38] != "task-000038" {
		t.Errorf("run: %v, told of %q, want the oldest 39 tasks", err, pruned)
	}
}
