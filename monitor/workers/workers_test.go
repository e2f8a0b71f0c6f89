package workers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type rollups []history.Rollup

func (l rollups) Rollups(_ context.Context, r history.RollupRange, f func(history.Rollup) error) error {
	for _, m := range l {
		if at := time.Unix(m.At*60, 0); at.Before(r.From) || !at.Before(r.To) {
			continue
		}
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

func ran(n int, each time.Duration) []byte {
	var h rollup.Histogram
	for range n {
		h.Add(each.Microseconds())
	}
	return h.Encode()
}

func counts(t *testing.T) workers.Counts {
	t.Helper()
	hour := now.Add(-time.Hour).Unix() / 60
	c, err := workers.ReadCounts(t.Context(), rollups{
		{At: hour - 48*60, Worker: "w@a", Failed: 100}, // too long ago
		{At: hour, Name: "export", Worker: "w@a", Succeeded: 6, Failed: 2, Run: ran(6, 3*time.Second)},
		{At: hour, Name: "seldom", Worker: "w@b", Succeeded: 2, Run: ran(2, time.Second)},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCountsAreOfADay(t *testing.T) {
	t.Parallel()
	c := counts(t)
	if diff := cmp.Diff(map[string]workers.Ends{"w@a": {Succeeded: 6, Failed: 2}, "w@b": {Succeeded: 2}}, c.ByWorker); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	if share, ok := c.ByWorker["w@a"].FailureShare(); share != .25 || !ok {
		t.Errorf("failure share = %v, %v, want a quarter", share, ok)
	}
	if got := c.Usual["export"]; got < 3*time.Second || got > 3100*time.Millisecond {
		t.Errorf("usual run time = %v, want about 3 s", got)
	}
	if got, ok := c.Usual["seldom"]; ok {
		t.Errorf("usual run time of two runs = %v, want none", got)
	}
}

// cluster has tasks that run since some seconds before now, by name, on w@a, whose clock is a minute ahead.
func cluster(started map[string]int) *state.Cluster {
	c := state.New(state.Options{})
	at := now.UnixMicro()
	var events []*state.Event
	for i := range 3 {
		events = append(events, &state.Event{
			Kind: state.WorkerHeartbeat, Hostname: "w@a", PID: 7, Clock: int64(i + 1), Freq: 2,
			Micros: at + 60e6 - int64(3-i)*2e6, ReceivedMicros: at - int64(3-i)*2e6,
			Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp,
		})
	}
	clock := int64(10)
	for name, seconds := range started {
		for _, kind := range []state.Kind{state.TaskReceived, state.TaskStarted} {
			clock++
			events = append(events, &state.Event{
				Kind: kind, Hostname: "w@a", PID: 7, ID: "id-" + name, Name: name, Clock: clock, Micros: at + 60e6 - int64(seconds)*1e6, ReceivedMicros: at,
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName,
			})
		}
	}
	for _, e := range events {
		c.Apply(e)
	}
	c.Expire(at)
	return c
}

func TestLongestStandsOut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		started map[string]int
		want    string
		tooLong bool
	}{
		"nothing":                       {nil, "", false},
		"all is usual":                  {map[string]int{"export": 2}, "", false},
		"the oldest":                    {map[string]int{"other": 600, "another": 60}, "other", false},
		"one that is long for its kind": {map[string]int{"other": 600, "export": 60}, "export", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := workers.Longest(cluster(tt.started), now, counts(t))["w@a"]
			if got.Name != tt.want || got.TooLong() != tt.tooLong {
				t.Fatalf("longest = %+v, want %q", got, tt.want)
			}
			if want := time.Duration(tt.started[tt.want]) * time.Second; tt.want != "" && (got.Elapsed-want).Abs() > time.Second {
				t.Errorf("elapsed = %v, want %v by the local clock", got.Elapsed, want)
			}
		})
	}
}

func names(rows []workers.Row) (list []string) {
	for _, r := range rows {
		list = append(list, r.Name)
	}
	return list
}

func TestRowsSortByEveryColumn(t *testing.T) {
	t.Parallel()
	known := workers.Row{
		Worker: state.Worker{
			Name: "b@x", Status: state.Late, Active: new(int64(1)), Processed: new(int64(2)), RunningTasks: 3, Load: &[3]float64{4},
			Version: new("5.6"), ClockOffsetMicros: new(int64(5)), LastHeartbeatAt: 6,
		},
		Pool: "prefork", Queues: []string{"q"}, QueuesKnown: true, Memory: new(int64(7)), Ends: workers.Ends{Failed: 1},
	}
	greater := workers.Row{
		Worker: state.Worker{
			Name: "c@x", Status: state.Offline, Active: new(int64(2)), Processed: new(int64(3)), RunningTasks: 4, Load: &[3]float64{5},
			Version: new("5.7"), ClockOffsetMicros: new(int64(6)), LastHeartbeatAt: 7,
		},
		Pool: "threads", Queues: []string{"q", "r"}, QueuesKnown: true, Memory: new(int64(8)), Ends: workers.Ends{Failed: 1},
	}
	known.Ends.Succeeded = 1
	unknown := workers.Row{Worker: state.Worker{Name: "a@x", Status: state.Online}}
	for _, key := range workers.SortKeys() {
		up := []string{"b@x", "c@x", "a@x"} // what is unknown comes last
		down := []string{"c@x", "b@x", "a@x"}
		if key == "name" || key == "status" || key == "unfinished" {
			up = []string{"a@x", "b@x", "c@x"}
		}
		for order, want := range map[string][]string{key: up, "-" + key: down} {
			rows := []workers.Row{greater, unknown, known}
			workers.Sort(rows, order)
			if diff := cmp.Diff(want, names(rows)); diff != "" {
				t.Errorf("by %s (-want +got):\n%s", order, diff)
			}
		}
	}
}

func TestGroupsAreHosts(t *testing.T) {
	t.Parallel()
	row := func(name string, status state.Status, active, slots int64) workers.Row {
		return workers.Row{Worker: state.Worker{Name: name, Status: status, Active: &active, RunningTasks: 2}, Slots: &slots, Ends: workers.Ends{Succeeded: 1, Failed: 1}}
	}
	rows := []workers.Row{
		row("b@y", state.Online, 1, 4), row("z@x", state.Online, 2, 2), row("a@y", state.Offline, 3, 4), row("none", state.Online, 0, 1),
	}
	var got []string
	for _, g := range workers.ByHost(rows) {
		total := g.Total()
		got = append(got, fmt.Sprint(g.Host, names(g.Rows), total.Online, *total.Active, *total.Slots, total.Unfinished, total.Ends.Failed))
	}
	want := []string{"[none] 1 0 1 2 1", "x[z@x] 1 2 2 2 1", "y[a@y b@y] 1 1 4 4 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if got := workers.ByHost(rows[:2]); got != nil {
		t.Errorf("groups of one worker each = %v, want none", got)
	}
}

func TestRowsKeepWhatWasReported(t *testing.T) {
	t.Parallel()
	last := &state.LastReport{At: 5, Pool: "prefork", Slots: new(int64(3)), Queues: []string{"mail", "celery"}}
	list := []state.Worker{
		{Name: "new", System: new("Linux")},
		{Name: "mac", System: new("Darwin"), LastReport: last},
		{Name: "old", Status: state.Offline, LastReport: last},
		{Name: "silent", Status: state.Online, LastReport: last},
	}
	known := remote.Topology{
		Expected: []string{"mac", "new", "silent"}, Missing: []string{"silent"}, Queues: map[string][]string{"q": {"mac", "new"}},
		Pools: map[string]remote.Pool{"new": {Kind: "threads"}}, MaxRSS: map[string]int64{"new": 2, "mac": 2048},
	}
	var got []string
	for _, r := range workers.Rows(list, known, workers.Counts{}, nil) {
		memory := int64(-1)
		if r.Memory != nil {
			memory = *r.Memory
		}
		got = append(got, fmt.Sprint(r.Name, r.Pool, r.Queues, r.ReportedAt, memory))
	}
	want := []string{"newthreads[q] 0 2048", "mac[q] 0 2048", "oldprefork[celery mail] 5 -1", "silentprefork[celery mail] 5 -1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
