package tasktype_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

func TestReadDetailTellsWorkersAndQueuesApart(t *testing.T) {
	t.Parallel()
	s := counted(
		t,
		history.Rollup{At: noon - 2, Name: "a", Worker: "w1", Queue: "q", Received: 60, Succeeded: 50, Run: ran(time.Second, 3*time.Second)},
		history.Rollup{At: noon - 2, Name: "a", Worker: "w2", Queue: "q", Received: 60, Failed: 40},
		history.Rollup{At: noon - 2, Name: "b", Worker: "w3", Queue: "r", Succeeded: 5, Run: ran(time.Hour)},
		history.Rollup{At: noon - 1},
	)
	d, err := tasktype.ReadDetail(t.Context(), s, lastHour, "a")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range append(d.Workers, d.Queues...) {
		got = append(got, fmt.Sprint(p.Name, p.Succeeded, p.Failed, p.Run.Count()))
	}
	if diff := cmp.Diff([]string{"w20 40 0", "w150 0 2", "q50 40 2"}, got); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	// In two minutes 120 tasks of 2 s arrived, all in the first: Little's law.
	needed, ok := d.Needed(&d.Type)
	if !ok || math.Abs(needed.Average-2) > .05 || math.Abs(needed.Busiest-4) > .1 || needed.BusiestFrom.Unix() != (noon-2)*60 {
		t.Errorf("needed = %+v, %v, want 2 processes, and 4 in the minute from 11:58", needed, ok)
	}
	if d, err = tasktype.ReadDetail(t.Context(), s, lastHour, "nope"); err != nil || d.Type.Name != "" {
		t.Errorf("detail of an unknown name = %+v, %v", d.Type, err)
	}
}

func TestHeatMapHasEveryRun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var d tasktype.Detail
		runs := int64(0)
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			h := histogram(rapid.SliceOfN(rapid.Int64Range(0, 24*3600*1e6), 0, 20).Draw(t, "µs"))
			runs += h.Count()
			d.Runs = append(d.Runs, h)
		}
		m := d.HeatMap()
		if m.Rows > 24 || (runs > 0) != (m.Rows > 0) || runs > 0 && m.Low >= m.High {
			t.Fatalf("%d runs in %d rows from %d to %d µs", runs, m.Rows, m.Low, m.High)
		}
		shown := int64(0)
		for _, c := range m.Cells {
			shown += c.Count
			if c.Row < 0 || c.Row >= m.Rows || c.Level < 1 || c.Level > 5 || c.Count > m.Most {
				t.Fatalf("cell %+v of %+v", c, m)
			}
		}
		if shown != runs {
			t.Fatalf("%d runs are shown, want %d", shown, runs)
		}
	})
}

// tasks has n tasks, of which some have an argument.
func tasksWith(n int, args string, worker string, st state.State) []state.Task {
	list := make([]state.Task, n)
	for i := range list {
		list[i] = state.Task{
			State: st, Worker: &worker, Args: new(strings.ReplaceAll(args, "#", fmt.Sprint(i))), Kwargs: new("{}"), RuntimeSeconds: new(float64(i)),
		}
	}
	return list
}

func TestCompareFindsWhatFailedTasksShare(t *testing.T) {
	t.Parallel()
	failed := append(tasksWith(18, "(#, {'customer': 'acme', 'vip': True})", "w1", state.Failure), tasksWith(2, "(#, {'customer': 'zoo'...", "w2", state.Failure)...)
	good := append(tasksWith(190, "(#, {'customer': 'zoo', 'vip': True})", "w1", state.Success), tasksWith(10, "(#, {'customer': 'acme', 'vip': True})", "w2", state.Success)...)
	got := tasktype.Compare(failed, good)
	want := tasktype.Comparison{Selected: 20, Others: 200, Traits: []tasktype.Trait{
		{Field: "args[1].customer", Value: `"acme"`, Selected: 18, SelectedOf: 18, Others: 10, OthersOf: 200},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("comparison (-want +got):\n%s", diff)
	}
	hidden := func(list []state.Task) []state.Task {
		for i := range list {
			list[i].Args, list[i].Kwargs = nil, nil
		}
		return list
	}
	if got := tasktype.Compare(hidden(failed), hidden(good)); len(got.Traits) != 0 {
		t.Errorf("traits of tasks without arguments: %+v", got.Traits)
	}
}

// TestCompareSeldomFindsWhatIsNotThere draws both sides from one distribution.
func TestCompareSeldomFindsWhatIsNotThere(t *testing.T) {
	t.Parallel()
	found, trials := 0, 0
	for seed := range 200 {
		draw := func(n, offset int) []state.Task {
			list := make([]state.Task, n)
			for i := range list {
				x := uint64(seed*100_003+offset+i) * 0x9e3779b97f4a7c15
				x ^= x >> 29
				list[i].Args = new(fmt.Sprintf("(%d, %d, %d)", x%3, x>>8%7, x>>16%20))
			}
			return list
		}
		trials++
		if len(tasktype.Compare(draw(40, 0), draw(400, 50_000)).Traits) > 0 {
			found++
		}
	}
	if found > trials/20 {
		t.Errorf("found traits in %d of %d comparisons of equal tasks, want at most one in 20", found, trials)
	}
}

type listed []state.Task

func (l listed) Tasks(_ context.Context, r history.TaskRequest) (history.TaskPage, error) {
	var p history.TaskPage
	for i := range l {
		if len(p.Tasks) < r.Limit && r.Query.Match(&l[i], now) {
			p.Tasks = append(p.Tasks, l[i])
		}
	}
	return p, nil
}

func TestSampleHasTheSlowest(t *testing.T) {
	t.Parallel()
	all := append(tasksWith(100, "(1,)", "w", state.Success), tasksWith(2, "(1,)", "w", state.Failure)...)
	for i := range all {
		all[i].Name = new("a")
	}
	s, err := tasktype.ReadSample(t.Context(), listed(all), "a", query.Query{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if s.Tasks != 102 || len(s.Slowest) != 3 || *s.Slowest[0].RuntimeSeconds != 99 || s.Failures.Selected != 2 || s.Slow.Selected != 5 || s.Slow.Others != 95 {
		t.Errorf("sample of %d tasks, slowest %v, %d failed, %d slow, %d not", s.Tasks, s.Slowest, s.Failures.Selected, s.Slow.Selected, s.Slow.Others)
	}
}
