package rollup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// source has counters in a store, and tasks of its own, newest first.
type source struct {
	store history.Store
	tasks []state.Task
}

func (s source) Tasks(_ context.Context, r history.TaskRequest) (history.TaskPage, error) {
	var p history.TaskPage
	for i := range s.tasks {
		t := &s.tasks[i]
		if !r.Query.Match(t, r.Now) || r.From != nil && t.Stamp.Clock >= r.From.Stamp.Clock {
			continue
		}
		if len(p.Tasks) == r.Limit {
			p.Next = &state.Position{Stamp: p.Tasks[len(p.Tasks)-1].Stamp}
			return p, nil
		}
		p.Tasks = append(p.Tasks, *t)
	}
	return p, nil
}

// counting is a source with counters.
func counting(t testing.TB, cells ...history.Rollup) source {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Write(t.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}}); err != nil {
		t.Fatal(err)
	}
	return source{store: s}
}

var now = time.Unix(noon*60+30, 0)

func read(t testing.TB, s source, q string, ago time.Duration, g rollup.Group) rollup.Result {
	t.Helper()
	parsed, err := query.Parse(q)
	if err != nil {
		t.Fatal(err)
	}
	got, err := rollup.Read(t.Context(), s, s.store, rollup.Request{Query: parsed, From: now.Add(-ago), To: now, Now: now, GroupBy: g})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// told is a series in short: what is known of the last n steps.
func told(s rollup.Result, n int) []string {
	var list []string
	for _, l := range s.Series {
		for _, p := range l.Points[len(l.Points)-n:] {
			if !p.Observed {
				list = append(list, l.Name+" -")
				continue
			}
			list = append(list, fmt.Sprintf("%s %d %d %d %d, %d %d", l.Name, p.Received, p.Succeeded, p.Failed, p.Retried,
				p.Wait.Count(), p.Run.Quantile(1)))
		}
	}
	return list
}

func cell(at int64, name, worker, queue string, received int64) history.Rollup {
	return history.Rollup{
		At: at, Name: name, Worker: worker, Queue: queue, Received: received, Succeeded: 2, Failed: 1,
		Wait: of(5).Encode(), Run: of(50, 100).Encode(),
	}
}

func TestSeriesFollowTheQuery(t *testing.T) {
	t.Parallel()
	s := counting(t,
		cell(noon-1, "billing.charge", "celery@a", "billing", 4), cell(noon-1, "mail.send", "celery@a", "", 8),
		cell(noon, "mail.send", "celery@b", "mail", 16), history.Rollup{At: noon - 3}, history.Rollup{At: noon - 1})
	for name, tt := range map[string]struct {
		query string
		group rollup.Group
		want  []string
	}{
		"all":           {"", "", []string{" 0 0 0 0, 0 0", " -", " 12 4 2 0, 2 100", " 16 2 1 0, 1 100"}},
		"a name":        {"name:mail.send", "", []string{" 0 0 0 0, 0 0", " -", " 8 2 1 0, 1 100", " 16 2 1 0, 1 100"}},
		"a pattern":     {"name:billing.*", "", []string{" 0 0 0 0, 0 0", " -", " 4 2 1 0, 1 100", " 0 0 0 0, 0 0"}},
		"two fields":    {"name:mail.send worker:celery@b", "", []string{" 0 0 0 0, 0 0", " -", " 0 0 0 0, 0 0", " 16 2 1 0, 1 100"}},
		"one or other":  {"queue:mail OR name:billing.charge", "", []string{" 0 0 0 0, 0 0", " -", " 4 2 1 0, 1 100", " 16 2 1 0, 1 100"}},
		"none of these": {"-queue:mail", "", []string{" 0 0 0 0, 0 0", " -", " 12 4 2 0, 2 100", " 0 0 0 0, 0 0"}},
		"a state":       {"state:failure", "", []string{" 0 0 0 0, 0 0", " -", " 0 0 2 0, 0 0", " 0 0 1 0, 0 0"}},
		"by queue": {"name:mail.send", rollup.ByQueue, []string{
			"mail 0 0 0 0, 0 0", "mail -", "mail 0 0 0 0, 0 0", "mail 16 2 1 0, 1 100",
			" 0 0 0 0, 0 0", " -", " 8 2 1 0, 1 100", " 0 0 0 0, 0 0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := read(t, s, tt.query, 10*time.Minute, tt.group)
			if got.SampledTasks != 0 || got.Step != time.Minute || len(got.Series[0].Points) != 11 {
				t.Errorf("%d tasks, step %v, %d points, want the counters of 11 minutes", got.SampledTasks, got.Step, len(got.Series[0].Points))
			}
			if diff := cmp.Diff(tt.want, told(got, 4)); diff != "" {
				t.Errorf("the last 4 minutes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeriesHaveBoundedLengthAndKeptSpans(t *testing.T) {
	t.Parallel()
	s := counting(t, cell(noon, "a", "w", "q", 7))
	for ago, want := range map[time.Duration]time.Duration{
		time.Hour:            time.Minute,
		6*time.Hour - 30e9:   2 * time.Minute,
		24 * time.Hour:       10 * time.Minute,
		7 * 24 * time.Hour:   time.Hour,
		30 * 24 * time.Hour:  6 * time.Hour,
		365 * 24 * time.Hour: 24 * time.Hour,
	} {
		got := read(t, s, "", ago, "")
		if got.Step != want {
			t.Errorf("step of %v = %v, want %v", ago, got.Step, want)
		}
		points := got.Series[0].Points
		if last := points[len(points)-1]; last.Received != 7 || !last.Observed {
			t.Errorf("last point of %v = %v, want 7 received", ago, last)
		}
	}
}

func TestSeriesNameTheGreatestLines(t *testing.T) {
	t.Parallel()
	var cells []history.Rollup
	for i := range int64(20) {
		cells = append(cells, cell(noon, fmt.Sprint("n", i), "w", "q", 100*i))
	}
	var got []string
	for _, l := range read(t, counting(t, cells...), "", time.Minute, rollup.ByName).Series {
		got = append(got, fmt.Sprint(l.Name, " ", l.Points[len(l.Points)-1].Received))
	}
	want := []string{"n19 1900", "n18 1800", "n17 1700", "n16 1600", "n15 1500", "n14 1400", "n13 1300", "(other) 7800"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// Who looks for what is slow wants the slowest, however seldom they are.
func TestLinesComeByWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	often, slow, waits := cell(noon, "often", "w", "q", 900), cell(noon, "slow", "w", "q", 2), cell(noon, "waits", "w", "q", 1)
	for m, took := range map[*history.Rollup][2]int64{&often: {1000, 1000}, &slow: {2000, 9_000_000}, &waits: {8_000_000, 3000}} {
		m.Wait, m.Run = of(took[0]).Encode(), of(took[1]).Encode()
	}
	s := counting(t, often, slow, waits)
	for rank, want := range map[rollup.Measure][]string{
		rollup.Count: {"often", "slow", "waits"}, rollup.Run: {"slow", "waits", "often"}, rollup.Wait: {"waits", "slow", "often"},
	} {
		got, err := rollup.Read(t.Context(), s, s.store, rollup.Request{From: now.Add(-time.Minute), To: now, Now: now, GroupBy: rollup.ByName, RankBy: rank})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range got.Series {
			names = append(names, l.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("by %q (-want +got):\n%s", rank, diff)
		}
	}
}

// What counters do not tell is read from the newest tasks.
func TestSeriesOfOtherQueriesAreMadeFromTasks(t *testing.T) {
	t.Parallel()
	s := counting(t, cell(noon, "a", "w", "q", 7))
	task := func(i int, args string) state.Task {
		at := (noon*60 - int64(i)) * 1_000_000
		run := 0.5
		v := state.Task{ID: fmt.Sprint(i), Name: new("a"), Args: &args, State: state.Success, UpdatedAt: at}
		v.Stamp.Clock = int64(100_000 - i)
		v.Executions = []state.Execution{{RuntimeSeconds: &run}}
		v.Executions[0].ReceivedAt, v.Executions[0].SucceededAt = at-1, at
		return v
	}
	for i := range 600 {
		s.tasks = append(s.tasks, task(i, fmt.Sprintf("(%d,)", i%2)))
	}
	got := read(t, s, `args:"(1"`, 11*time.Minute, "")
	if got.SampledTasks != 300 || got.More {
		t.Errorf("made from %d tasks, more %v, want all 300", got.SampledTasks, got.More)
	}
	want := []string{" 30 30 0 0, 0 500736", " 30 30 0 0, 0 500736", " 0 0 0 0, 0 0"}
	if diff := cmp.Diff(want, told(got, 3)); diff != "" {
		t.Errorf("the last 3 minutes (-want +got):\n%s", diff)
	}

	for i := range 11_000 {
		s.tasks = append(s.tasks, task(600+i, "(1,)"))
	}
	s.tasks = s.tasks[600:]
	got = read(t, s, `args:"(1"`, 5*time.Hour, "")
	if got.SampledTasks != rollup.MaxSampledTasks || !got.More {
		t.Errorf("made from %d tasks, more %v, want the newest %d", got.SampledTasks, got.More, rollup.MaxSampledTasks)
	}
	if first := got.Series[0].Points[0]; first.Observed {
		t.Error("what lies before the tasks that were read is said to be known")
	}
}
