package tasktype_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/tasktype"
)

const noon = 1_795_262_400 / 60 // minutes since 1970, a full hour

var now = time.Unix(noon*60+30, 0)

var lastHour = tasktype.Span{From: now.Add(-time.Hour), To: now, Now: now}

// counted returns a store with counters of minutes.
func counted(t testing.TB, cells ...history.Rollup) history.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Write(t.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// ran counts durations.
func ran(times ...time.Duration) []byte {
	var h rollup.Histogram
	for _, d := range times {
		h.Add(d.Microseconds())
	}
	return h.Encode()
}

func read(t testing.TB, s history.Store, length time.Duration) tasktype.Table {
	t.Helper()
	table, err := tasktype.Read(t.Context(), s, tasktype.Span{From: now.Add(-length), To: now, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestReadCountsTypes(t *testing.T) {
	t.Parallel()
	s := counted(
		t,
		history.Rollup{At: noon - 61, Name: "a", Worker: "w1", Queue: "q", Received: 1, Succeeded: 1, Run: ran(time.Second)},
		history.Rollup{At: noon - 2, Name: "a", Worker: "w1", Queue: "q", Received: 2, Succeeded: 2, Run: ran(time.Second, 3*time.Second)},
		history.Rollup{At: noon - 2, Name: "a", Worker: "w2", Queue: "r", Received: 2, Failed: 1, Retried: 1, Wait: ran(time.Minute)},
		history.Rollup{At: noon - 2, Worker: "w2", Failed: 1},
		history.Rollup{At: noon - 1},
		history.Rollup{At: noon - 50*60, Name: "old", Received: 1},
	)
	table := read(t, s, 24*time.Hour)
	if len(table.Types) != 2 || table.Types[0].Name != "" || table.Types[1].Name != "a" {
		t.Fatalf("types = %+v, want one without a name and a", table.Types)
	}
	a := table.Types[1]
	share, _ := a.FailureShare()
	got := []any{a.Received, a.Succeeded, a.Failed, a.Retried, share, a.Run.Count(), a.Wait.Count(), a.Workers.Names, a.Queues.Names, a.FailedAt}
	want := []any{int64(5), int64(3), int64(1), int64(1), .25, int64(3), int64(1), []string{"w1", "w2"}, []string{"q", "r"}, int64(noon-60) * 60e6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts of a (-want +got):\n%s", diff)
	}
	if got := a.Trend[len(a.Trend)-2]; got != (tasktype.Step{Observed: true, Received: 4, Succeeded: 2, Failed: 1}) {
		t.Errorf("the last full hour = %+v", got)
	}
	if a.Trend[0].Observed {
		t.Error("an hour without counters is observed")
	}
}

// A span that lies in the past is counted in steps for which counters are still kept, widened to whole ones.
func TestReadCountsASpan(t *testing.T) {
	t.Parallel()
	s := counted(
		t,
		history.Rollup{At: noon - 61, Name: "a", Succeeded: 1},
		history.Rollup{At: noon - 60, Name: "a", Succeeded: 2},
		history.Rollup{At: noon - 41, Name: "a", Succeeded: 4},
		history.Rollup{At: noon - 40, Name: "a", Succeeded: 8},
	)
	at := time.Unix(noon*60, 0)
	for name, test := range map[string]struct {
		now  time.Time
		step time.Duration
		want int64
	}{
		"today":               {now, time.Minute, 6},
		"of three days ago":   {at.Add(3 * 24 * time.Hour), 10 * time.Minute, 6},
		"of nine days ago":    {at.Add(9 * 24 * time.Hour), time.Hour, 14},
		"of two months ago":   {at.Add(60 * 24 * time.Hour), 24 * time.Hour, 15},
		"while it still goes": {at.Add(-50 * time.Minute), time.Minute, 2},
	} {
		span := tasktype.Span{From: at.Add(-time.Hour), To: at.Add(-40 * time.Minute), Now: test.now}
		table, err := tasktype.Read(t.Context(), s, span)
		if err != nil || len(table.Types) != 1 {
			t.Fatalf("%s: %v, %+v", name, err, table)
		}
		if got := table.Types[0].Succeeded; got != test.want || table.Step != test.step {
			t.Errorf("%s: %d in steps of %v, want %d in steps of %v", name, got, table.Step, test.want, test.step)
		}
	}
	long := tasktype.Span{From: time.Unix(0, 0), To: at, Now: at}
	if table, err := tasktype.Read(t.Context(), s, long); err != nil || len(table.Types[0].Trend) > 100 {
		t.Errorf("a long span has %d steps, %v", len(table.Types[0].Trend), err)
	}
}

// A past is counted in steps for which counters are still kept when it is read.
func TestReadCountsAPast(t *testing.T) {
	t.Parallel()
	s := counted(t, history.Rollup{At: noon - 60, Name: "a", Succeeded: 2}, history.Rollup{At: noon - 41, Name: "a", Succeeded: 4})
	at := time.Unix(noon*60, 0)
	for days, step := range map[int]time.Duration{0: time.Minute, 3: 10 * time.Minute, 9: time.Hour} {
		span := tasktype.Span{From: at.Add(-time.Hour), To: at, Now: at, Read: at.Add(time.Duration(days) * 24 * time.Hour)}
		table, err := tasktype.Read(t.Context(), s, span)
		if err != nil || len(table.Types) != 1 {
			t.Fatalf("%d days later: %v, %+v", days, err, table)
		}
		observed := max(step, 2*time.Minute)
		if step == 10*time.Minute {
			observed *= 2
		}
		if table.Types[0].Succeeded != 6 || table.Step != step || !table.To.Equal(at) || table.Observed != observed {
			t.Errorf("%d days later: %d in steps of %v until %v, observed for %v", days, table.Types[0].Succeeded, table.Step, table.To, table.Observed)
		}
	}
}

func TestRateCountsOnlyWhenAMonitorWasRunning(t *testing.T) {
	t.Parallel()
	cells := []history.Rollup{{At: noon - 5, Name: "a", Succeeded: 300}}
	for i := range int64(5) {
		cells = append(cells, history.Rollup{At: noon - 1 - i})
	}
	for _, length := range tasktype.Ranges()[:3] {
		table := read(t, counted(t, cells...), length)
		perSecond, ok := table.PerSecond(&table.Types[0])
		if table.Observed != 5*time.Minute || !ok || perSecond != 1 {
			t.Errorf("last %s: observed %s, %v tasks a second, want 5m, 1", length, table.Observed, perSecond)
		}
	}
	table := read(t, counted(t), time.Hour)
	if _, ok := table.PerSecond(&tasktype.Type{}); ok || table.Observed != 0 {
		t.Error("a rate is known of a time in which no monitor was running")
	}
}

func TestTypesAreBounded(t *testing.T) {
	t.Parallel()
	var cells []history.Rollup
	for i := range tasktype.MaxTypes + 2 {
		cells = append(cells, history.Rollup{At: noon - 1, Name: fmt.Sprintf("task%05d", i), Succeeded: 1, Run: ran(time.Duration(i) * time.Second)})
	}
	table := read(t, counted(t, cells...), time.Hour)
	if got := len(table.Types); got != tasktype.MaxTypes+1 {
		t.Errorf("%d types, want %d and (other)", got, tasktype.MaxTypes)
	}
	rows := table.Rows(nil, nil)
	tasktype.Sort(rows, "-slowest")
	if rows[0].Name != rollup.Other || rows[0].Succeeded != 2 {
		t.Errorf("the slowest row is %q of %d tasks, want the two beyond the bound", rows[0].Name, rows[0].Succeeded)
	}
}

func TestSortPutsTheUnknownLast(t *testing.T) {
	t.Parallel()
	s := counted(
		t,
		history.Rollup{At: noon - 1, Name: "slow", Succeeded: 1, Run: ran(time.Minute)},
		history.Rollup{At: noon - 1, Name: "fast", Succeeded: 9, Run: ran(time.Second)},
		history.Rollup{At: noon - 1, Name: "fails", Failed: 2},
	)
	table := read(t, s, time.Hour)
	for order, want := range map[string][]string{
		"-run": {"slow", "fast", "fails"}, "run": {"fast", "slow", "fails"}, "-failed": {"fails", "fast", "slow"},
		"name": {"fails", "fast", "slow"}, "-count": {"fast", "fails", "slow"}, "-last_failure": {"fails", "fast", "slow"},
	} {
		rows := table.Rows(nil, nil)
		tasktype.Sort(rows, order)
		var got []string
		for _, r := range rows {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("sorted by %s: %v, want %v", order, got, want)
		}
	}
	for _, key := range tasktype.SortKeys() {
		tasktype.Sort(table.Rows(nil, nil), key) // must know it
	}
}

func TestDriftComparesWithTheHoursOfTheWeekBefore(t *testing.T) {
	t.Parallel()
	var cells []history.Rollup
	for hour := range int64(24 * 7) {
		at := noon - 24*60 - 60*hour - 30
		cells = append(
			cells,
			history.Rollup{At: at, Name: "steady", Succeeded: 1, Run: ran(time.Second + time.Duration(hour%5)*20*time.Millisecond)},
			history.Rollup{At: at, Name: "erratic", Succeeded: 1, Run: ran(time.Second + time.Duration(hour%5)*time.Second)},
		)
	}
	cells = append(
		cells,
		history.Rollup{At: noon - 30*60, Name: "rare", Succeeded: 1, Run: ran(time.Second)},
		history.Rollup{At: noon - 1, Name: "rare", Succeeded: 1, Run: ran(time.Minute)},
		history.Rollup{At: noon - 1, Name: "steady", Succeeded: 1, Run: ran(1500 * time.Millisecond)},
		history.Rollup{At: noon - 1, Name: "erratic", Succeeded: 1, Run: ran(4500 * time.Millisecond)},
	)
	s := counted(t, cells...)
	table := read(t, s, 24*time.Hour)
	usual, err := tasktype.ReadUsual(t.Context(), s, table.From)
	if err != nil {
		t.Fatal(err)
	}
	drift := map[string]*tasktype.Drift{}
	for _, r := range table.Rows(usual, nil) {
		drift[r.Name] = r.Drift
	}
	if d := drift["steady"]; d == nil || !d.Unusual || d.Change < .4 || d.Change > .5 {
		t.Errorf("drift of steady = %+v, want unusual and about 0.44", d)
	}
	if d := drift["erratic"]; d == nil || d.Unusual || d.Change < .45 {
		t.Errorf("drift of erratic = %+v, want about 0.5 and usual: its hours differ as much", d)
	}
	if d := drift["rare"]; d != nil {
		t.Errorf("drift of rare = %+v, want unknown: one hour is no week", d)
	}
}

func histogram(micros []int64) (h rollup.Histogram) {
	for _, d := range micros {
		h.Add(d)
	}
	return h
}
