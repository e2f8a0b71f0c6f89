package duplicates_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/state"
)

// base is when tests begin, µs since 1970 UTC.
const base = int64(1_790_000_000_000_000)

// at returns the time of a second.
func at(second float64) int64 { return base + int64(second*1e6) }

// ran returns a task that succeeded.
func ran(id, worker string, from, to float64) state.Task {
	t := running(id, worker, from)
	t.State, t.SucceededAt = state.Success, at(to)
	t.Executions[0].State, t.Executions[0].SucceededAt = state.Success, at(to)
	return t
}

// running returns a task that has started.
func running(id, worker string, from float64) state.Task {
	times := state.Times{ReceivedAt: at(from - 1), StartedAt: at(from)}
	return state.Task{
		ID: id, Name: new("shop.pay"), State: state.Started, Worker: &worker, Times: times,
		Executions: []state.Execution{{Worker: worker, PID: 7, State: state.Started, Times: times}},
	}
}

// compared says that the clocks of some workers were compared, and by how many seconds they are ahead.
func compared(ahead map[string]float64) duplicates.Options {
	return duplicates.Options{Now: at(1000), Offset: func(worker string) (int64, bool) {
		s, ok := ahead[worker]
		return int64(s * 1e6), ok
	}}
}

// verdict is what a test expects of a pair.
type verdict struct {
	Verdict       duplicates.Verdict
	Proved        bool
	First, Second string
	Wasted        float64
}

func verdicts(pairs []duplicates.Pair) (list []verdict) {
	for _, p := range pairs {
		list = append(list, verdict{p.Verdict, p.Proved, p.First.TaskID, p.Second.TaskID, math.Round(p.WastedSeconds*10) / 10})
	}
	return list
}

func TestVerdictsOnTwoTasks(t *testing.T) {
	t.Parallel()
	both := compared(map[string]float64{"a": 0, "b": 0})
	failed := ran("1", "a", 0, 5)
	failed.State, failed.SucceededAt, failed.FailedAt = state.Failure, 0, at(5)
	lost := running("1", "a", 0)
	lost.Lost = &state.Conclusion{Reason: state.ReasonOrphaned}
	skipped := ran("2", "b", 2, 3)
	skipped.Result = new("{'status': 'skipped', 'reason': 'concurrent_execution'}")
	other := ran("2", "b", 6, 7)
	other.Result = new("{'status': 'skipped', 'reason': 'no_orders'}")
	for name, test := range map[string]struct {
		a, b state.Task
		o    duplicates.Options
		want []verdict
	}{
		"overlap on one worker":            {ran("1", "a", 0, 5), ran("2", "a", 4, 9), duplicates.Options{}, []verdict{{duplicates.Overlapping, true, "1", "2", 1}}},
		"overlap by clocks never compared": {ran("1", "a", 0, 5), ran("2", "b", 2, 9), duplicates.Options{}, []verdict{{duplicates.Overlapping, false, "1", "2", 3}}},
		"overlap by compared clocks":       {ran("1", "a", 0, 5), ran("2", "b", 2, 9), both, []verdict{{duplicates.Overlapping, true, "1", "2", 3}}},
		"overlap within the margin":        {ran("1", "a", 0, 5), ran("2", "b", 4.5, 9), both, []verdict{{duplicates.Overlapping, false, "1", "2", 0.5}}},
		"no overlap once clocks are corrected": {
			ran("1", "a", 0, 5), ran("2", "b", 4, 9), compared(map[string]float64{"a": 0, "b": -10}),
			[]verdict{{duplicates.Rerun, true, "1", "2", 5}},
		},
		"the other was first once clocks are corrected": {
			ran("1", "a", 0, 5), ran("2", "b", 6, 9), compared(map[string]float64{"a": 0, "b": 100}),
			[]verdict{{duplicates.Rerun, true, "2", "1", 5}},
		},
		"rerun on one worker":           {ran("1", "a", 0, 5), ran("2", "a", 6, 8), duplicates.Options{}, []verdict{{duplicates.Rerun, true, "1", "2", 2}}},
		"rerun by clocks not compared":  {ran("1", "a", 0, 5), ran("2", "b", 6, 8), duplicates.Options{}, []verdict{{duplicates.Rerun, false, "1", "2", 2}}},
		"both still run":                {running("1", "a", 0), running("2", "a", 10), both, []verdict{{duplicates.Overlapping, false, "1", "2", 990}}},
		"the first still runs":          {running("1", "a", 0), ran("2", "a", 10, 12), both, []verdict{{duplicates.Overlapping, false, "1", "2", 2}}},
		"after a failure":               {failed, ran("2", "a", 6, 8), both, nil},
		"after one that was lost":       {lost, ran("2", "a", 6, 8), both, nil},
		"skipped by a lock":             {ran("1", "a", 0, 5), skipped, both, []verdict{{duplicates.Skipped, true, "1", "2", 0}}},
		"skipped for another reason":    {ran("1", "a", 0, 5), other, both, []verdict{{duplicates.Rerun, false, "1", "2", 1}}},
		"one that waits":                {ran("1", "a", 0, 5), state.Task{ID: "2", State: state.Received}, both, nil},
		"one after the other to the µs": {ran("1", "a", 0, 5), ran("2", "a", 5, 8), both, []verdict{{duplicates.Rerun, false, "1", "2", 3}}},
	} {
		for _, tasks := range [][]state.Task{{test.a, test.b}, {test.b, test.a}} {
			pairs := duplicates.Judge(tasks, test.o)
			if diff := cmp.Diff(test.want, verdicts(pairs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			for _, p := range pairs {
				if len(p.Evidence) == 0 || slices.ContainsFunc(p.Evidence, func(f duplicates.Fact) bool { return f.Text == "" || f.Task == "" }) {
					t.Errorf("%s: evidence %+v", name, p.Evidence)
				}
			}
		}
	}
}

func TestVerdictsOnOneTask(t *testing.T) {
	t.Parallel()
	twice := ran("1", "a", 0, 5)
	first := twice.Executions[0]
	second := first
	second.Worker, second.StartedAt, second.SucceededAt = "b", at(10), at(14)
	twice.Executions = append(twice.Executions, second)
	gone := twice
	gone.Executions = slices.Clone(twice.Executions)
	gone.Executions[0].SucceededAt, gone.Executions[0].State = 0, state.Started
	gone.Executions[1].Worker, gone.Executions[1].PID = "a", 9
	retried := twice
	retried.Executions = slices.Clone(twice.Executions)
	retried.Executions[1].Attempt = 1
	waited := twice
	waited.Executions = slices.Clone(twice.Executions)
	waited.Executions[0].Times = state.Times{ReceivedAt: at(0)}
	replaced := twice
	replaced.Executions = slices.Clone(twice.Executions)
	replaced.Executions[0].Replaced = true
	resent := ran("1", "a", 0, 5)
	resent.Sends = []state.Sent{{At: at(0), Client: "c"}, {At: at(3), Client: "c"}, {At: at(4), Client: "c", Attempt: 1}}
	either := twice
	either.Sends = []state.Sent{{At: at(0), Client: "c"}, {At: at(3), Client: "c"}}
	for name, test := range map[string]struct {
		task  state.Task
		want  []verdict
		facts duplicates.FactKind
	}{
		"redelivered though it had succeeded": {twice, []verdict{{duplicates.Redelivery, true, "1", "1", 4}}, duplicates.FactRedelivered},
		"redelivered after its worker died":   {gone, []verdict{{duplicates.Redelivery, true, "1", "1", 0}}, duplicates.FactWorkerLost},
		"retried":                             {retried, []verdict{{duplicates.Retry, true, "1", "1", 0}}, duplicates.FactAttempt},
		"received twice before it began":      {waited, nil, ""},
		"replaced by another task":            {replaced, nil, ""},
		"delivered again or sent again": {
			either, []verdict{{duplicates.Redelivery, false, "1", "1", 4}, {duplicates.Resend, true, "1", "1", 0}}, duplicates.FactSent,
		},
		"sent twice": {resent, []verdict{{duplicates.Resend, true, "1", "1", 0}}, duplicates.FactSent},
	} {
		o := duplicates.Options{AcksLate: func(string, string) (bool, bool) { return true, true }}
		pairs := duplicates.Judge([]state.Task{test.task}, o)
		if diff := cmp.Diff(test.want, verdicts(pairs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, p := range pairs {
			has := func(k duplicates.FactKind) bool {
				return slices.ContainsFunc(p.Evidence, func(f duplicates.Fact) bool { return f.Kind == k })
			}
			if !has(test.facts) || p.Verdict == duplicates.Redelivery && !has(duplicates.FactAcksLate) {
				t.Errorf("%s: evidence %+v lacks %s", name, p.Evidence, test.facts)
			}
		}
	}
}

// drawn draws tasks that really ran at times that the test knows, on workers whose clocks are off.
func drawn(t *rapid.T) (tasks []state.Task, truth map[string][2]float64, ahead map[string]float64) {
	ahead = map[string]float64{}
	for _, w := range []string{"a", "b", "c"} {
		ahead[w] = float64(rapid.IntRange(-100, 100).Draw(t, "clock of "+w))
	}
	truth = map[string][2]float64{}
	for i := range rapid.IntRange(2, 8).Draw(t, "tasks") {
		id, w := strconv.Itoa(i), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "worker")
		from := float64(rapid.IntRange(200, 300).Draw(t, "from")) / 2
		to := from + float64(rapid.IntRange(0, 40).Draw(t, "run"))/2
		truth[id] = [2]float64{from, to}
		tasks = append(tasks, ran(id, w, from+ahead[w], to+ahead[w]))
	}
	return tasks, truth, ahead
}

// TestWhatIsProvedIsTrue draws clusters whose clocks are off by much, of which heartbeats tell all but half a second.
func TestWhatIsProvedIsTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks, truth, ahead := drawn(t)
		for w := range ahead {
			if rapid.Bool().Draw(t, w+" was never compared") {
				delete(ahead, w)
			} else {
				ahead[w] += rapid.Float64Range(-0.49, 0.49).Draw(t, "error of "+w)
			}
		}
		for _, p := range duplicates.Judge(tasks, compared(ahead)) {
			a, b := truth[p.First.TaskID], truth[p.Second.TaskID]
			overlap := a[0] < b[1] && b[0] < a[1]
			switch {
			case !p.Proved:
			case p.Verdict == duplicates.Overlapping && !overlap:
				t.Errorf("%v and %v are proved to overlap", a, b)
			case p.Verdict == duplicates.Rerun && b[0] < a[1]:
				t.Errorf("%v is proved to have run after %v", b, a)
			}
		}
	})
}

// TestVerdictsDoNotDependOnTheOrder judges tasks in any order.
func TestVerdictsDoNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks, _, ahead := drawn(t)
		sorted := func(list []verdict) []verdict {
			slices.SortFunc(list, func(a, b verdict) int { return strings.Compare(a.Second, b.Second) })
			return list
		}
		want := sorted(verdicts(duplicates.Judge(tasks, compared(ahead))))
		got := sorted(verdicts(duplicates.Judge(rapid.Permutation(tasks).Draw(t, "order"), compared(ahead))))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		if len(want) >= len(tasks) {
			t.Errorf("%d verdicts on %d tasks, want one at most on each but the first", len(want), len(tasks))
		}
	})
}

// TestCompareIsSymmetric compares spans both ways.
func TestCompareIsSymmetric(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string) duplicates.Span {
			from := rapid.Int64Range(0, 5).Draw(t, name)
			return duplicates.Span{Started: from, Ended: from + rapid.Int64Range(0, 5).Draw(t, name), Succeeded: rapid.Bool().Draw(t, name)}
		}
		a, b := span("a"), span("b")
		x, y := duplicates.Compare(a, b)
		y2, x2 := duplicates.Compare(b, a)
		if x != x2 || y != y2 {
			t.Errorf("compared one way %v, %v, the other way %v, %v", x, y, x2, y2)
		}
		if (x == state.Overlapping) != (y == state.Overlapping) || x == state.Rerun && y == state.Rerun {
			t.Errorf("marks %v and %v", x, y)
		}
	})
}
