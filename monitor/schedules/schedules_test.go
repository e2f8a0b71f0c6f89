package schedules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/state"
)

const second = int64(time.Second / time.Microsecond)

// start is a Monday at midnight.
var start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).UnixMicro()

// sent is a task that was sent so many seconds after start and succeeded within a second.
func sent(client, args string, at int64) state.Task {
	micros := start + at*second
	runtime := 0.5
	t := state.Task{
		ID: fmt.Sprintf("%s-%s-%d", client, args, at), Name: new("reports.nightly"), State: state.Success, Args: &args, Kwargs: new("{}"),
		Client: &client, SentAt: micros, RuntimeSeconds: &runtime,
	}
	t.ReceivedAt, t.StartedAt, t.SucceededAt = micros+second/10, micros+second/10, micros+second/2
	return t
}

// every returns n tasks, one each period.
func every(period int64, n int, client string) []state.Task {
	var list []state.Task
	for i := range n {
		list = append(list, sent(client, "()", int64(i)*period))
	}
	return list
}

// only returns the schedule among tasks in any order.
func only(tb testing.TB, tasks []state.Task) schedules.Schedule {
	tb.Helper()
	rand.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	found := schedules.Learn(tasks)
	if len(found) != 1 {
		tb.Fatalf("found %d schedules, want 1: %+v", len(found), found)
	}
	return found[0]
}

func TestLearn(t *testing.T) {
	t.Parallel()
	childless := every(60, 6, "beat@a")
	for i := range childless {
		childless[i].ParentID = new("parent")
	}
	for name, tc := range map[string]struct {
		tasks []state.Task
		want  []int64 // periods, s
	}{
		"none":                       {nil, nil},
		"regular":                    {every(60, 6, "gen1@a"), []int64{60}},
		"too few":                    {every(60, 5, "gen1@a"), nil},
		"too fast":                   {every(0, 20, "gen1@a"), nil},
		"beat restarted":             {append(every(60, 4, "gen1@a"), sent("gen2@a", "()", 245), sent("gen2@a", "()", 305), sent("gen2@a", "()", 365)), []int64{60}},
		"beat moved":                 {append(every(60, 4, "gen1@a"), sent("gen1@b", "()", 240), sent("gen1@b", "()", 300)), []int64{60}},
		"sent by people, too":        {append(every(60, 8, "gen1@a"), sent("web@b", "()", 7), sent("web@b", "()", 9), sent("web@b", "()", 130), sent("web@b", "()", 135), sent("web@b", "()", 301), sent("web@b", "()", 311)), []int64{60}},
		"on the host of beat":        {append(every(60, 8, "gen1@a"), sent("gen7@a", "()", 7), sent("gen7@a", "()", 9), sent("gen7@a", "()", 130), sent("gen7@a", "()", 135), sent("gen7@a", "()", 301), sent("gen7@a", "()", 311)), []int64{60}},
		"two entries of one name":    {append(every(60, 8, "gen1@a"), sent("gen1@a", "(1,)", 0), sent("gen1@a", "(1,)", 300), sent("gen1@a", "(1,)", 600), sent("gen1@a", "(1,)", 900), sent("gen1@a", "(1,)", 1200), sent("gen1@a", "(1,)", 1500)), []int64{300, 60}},
		"sent by tasks":              {childless, nil},
		"at random":                  {random(40), nil},
		"no client and no send seen": {unsent(every(60, 6, "gen1@a")), []int64{60}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int64
			for _, s := range schedules.Learn(tc.tasks) {
				got = append(got, s.Period/second)
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("periods %v, want %v", got, tc.want)
			}
		})
	}
}

func random(n int) []state.Task {
	r := rand.New(rand.NewPCG(1, 2))
	var list []state.Task
	at := 0.0
	for range n {
		at += r.ExpFloat64() * 60
		list = append(list, sent("web@a", "()", int64(at)))
	}
	return list
}

func unsent(list []state.Task) []state.Task {
	for i := range list {
		list[i].SentAt, list[i].Client = 0, nil
	}
	return list
}

func TestMissedAndOverlapping(t *testing.T) {
	t.Parallel()
	list := every(60, 20, "beat@a")
	list = append(list[:10:10], list[13:]...) // three are missing
	list[4].SucceededAt = list[5].StartedAt + second
	s := only(t, list)
	if s.Missed != 3 || s.Overlaps != 1 || len(s.Runs) != 17 {
		t.Errorf("missed %d, overlaps %d, runs %d, want 3, 1, 17", s.Missed, s.Overlaps, len(s.Runs))
	}
}

func TestWeekendsAreNotMissed(t *testing.T) {
	t.Parallel()
	var list []state.Task
	const day = int64(24 * 3600)
	for i := range int64(26) {
		if i%7 < 5 {
			list = append(list, sent("beat@a", "()", i*day))
		}
	}
	s := only(t, list) // which end on a Friday
	if s.Missed != 0 {
		t.Errorf("missed %d, want none", s.Missed)
	}
	friday := s.LastAt()
	for days, want := range map[int64]schedules.Status{1: schedules.OnTime, 3: schedules.OnTime, 4: schedules.Late, 30: schedules.Ended} {
		if got := s.Status(friday + days*day*second); got != want {
			t.Errorf("%d days after Friday: %s, want %s", days, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := only(t, every(60, 10, "beat@a"))
	for after, want := range map[int64]schedules.Status{
		0: schedules.OnTime, 59: schedules.OnTime, 66: schedules.OnTime, 75: schedules.Late, 1200: schedules.Late, 1320: schedules.Ended,
	} {
		if got := s.Status(s.LastAt() + after*second); got != want {
			t.Errorf("%d s after the last: %s, want %s", after, got, want)
		}
	}
}

// A schedule that wanders by less than a twentieth of its period is found, with its period, in whichever order its tasks come,
// whatever else has the same name.
func TestWanderingSchedulesAreFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.Int64Range(20, 100_000).Draw(t, "period")
		n := rapid.IntRange(schedules.LeastGaps+1, 60).Draw(t, "n")
		var list []state.Task
		for i := range n {
			off := rapid.Int64Range(-period/40, period/40).Draw(t, "off")
			list = append(list, sent("beat@a", "()", int64(i)*period+off))
		}
		for range rapid.IntRange(0, 4).Draw(t, "others") {
			list = append(list, sent("web@b", "()", rapid.Int64Range(0, period*int64(n)).Draw(t, "at")))
		}
		order := rapid.Permutation(list).Draw(t, "order")
		for _, s := range schedules.Learn(order) {
			if got := s.Period / second; max(got-period, period-got) <= period/10 {
				return
			}
		}
		t.Fatalf("period %d s of %d tasks not found", period, n)
	})
}
