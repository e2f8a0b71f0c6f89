package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// source is a cluster with one worker, in which some tasks wait.
type source struct {
	*testcluster.Cluster

	waiting []state.Task
	err     error
	reads   int
}

func newSource(t *testing.T, waiting ...state.Task) *source {
	t.Helper()
	s := &source{Cluster: testcluster.New(t, state.Options{}), waiting: waiting}
	s.Apply(&state.Event{
		Kind: state.WorkerHeartbeat, Hostname: "celery@a", PID: 1, Clock: 1, Micros: noon.UnixMicro(), ReceivedMicros: noon.UnixMicro(), Freq: 2,
		Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp,
	})
	return s
}

func (s *source) Health() view.Health {
	return view.Health{Ready: true, Broker: view.BrokerHealth{Connected: true, Since: noon.Add(-time.Hour)}}
}

func (s *source) Tasks(context.Context, history.TaskRequest) (history.TaskPage, error) {
	s.reads++
	return history.TaskPage{Tasks: s.waiting}, s.err
}

func (s *source) Count(context.Context, query.Query) (history.Count, error) {
	return history.Count{N: len(s.waiting), Exact: true}, s.err
}

func (s *source) History() view.History { return counters{} }

// counters are those of a cluster in which nothing has ended.
type counters struct{ view.History }

func (counters) Rollups(context.Context, history.RollupRange, func(history.Rollup) error) error {
	return nil
}

func verdict(t *testing.T, s *source) (flow.Verdict, string) {
	t.Helper()
	v := flow.NewReader(s, nil, nil, func() time.Time { return noon }).Verdict(t.Context())
	var texts []string
	for _, r := range v.Reasons {
		texts = append(texts, r.Text)
	}
	return v, strings.Join(texts, " ")
}

func TestReaderFindsTheOldestTask(t *testing.T) {
	t.Parallel()
	at := func(before time.Duration) int64 { return noon.Add(-before).UnixMicro() }
	received := state.Task{ID: "received"}
	received.ReceivedAt = at(2 * time.Minute)
	later := state.Task{ID: "later", SentAt: at(3 * time.Hour), ETA: new(noon.Add(-10 * time.Second).Format(time.RFC3339))}
	for name, tc := range map[string]struct {
		waiting []state.Task
		want    string
		level   flow.Level
	}{
		"none":             {nil, "1 worker is online.", flow.Flowing},
		"sent":             {[]state.Task{{ID: "sent", SentAt: at(3 * time.Minute)}, received}, "2 tasks wait to start, the oldest for 3 min.", flow.Flowing},
		"received":         {[]state.Task{received}, "1 task waits to start, the oldest for 2 min.", flow.Flowing},
		"for long":         {[]state.Task{{ID: "sent", SentAt: at(time.Hour)}}, "the oldest for 60 min; up to 5 min is usual.", flow.Degraded},
		"since its ETA":    {[]state.Task{later}, "1 task waits to start, the oldest for 10 s.", flow.Flowing},
		"of unknown times": {[]state.Task{{ID: "unknown"}}, "1 task waits to start, the oldest for 0 s.", flow.Flowing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, text := verdict(t, newSource(t, tc.waiting...))
			if v.Level != tc.level || !strings.Contains(text, tc.want) {
				t.Errorf("%s: %s, want %s: %s", v.Level, text, tc.level, tc.want)
			}
		})
	}
}

func TestReaderKnowsNothingWithoutHistory(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.err = errors.New("disk on fire")
	if v, text := verdict(t, s); v.Level != flow.Unknown || !strings.Contains(text, "The history cannot be read.") {
		t.Errorf("%s: %s, want unknown", v.Level, text)
	}
}

func TestReaderReadsSeldom(t *testing.T) {
	t.Parallel()
	now, s := noon, newSource(t)
	r := flow.NewReader(s, nil, nil, func() time.Time { return now })
	for range 100 {
		r.Verdict(t.Context())
	}
	if s.reads != 1 {
		t.Errorf("read %d times within a moment, want once", s.reads)
	}
	now = now.Add(3 * time.Second)
	if r.Verdict(t.Context()); s.reads != 2 {
		t.Errorf("read %d times, want anew after 3 s", s.reads)
	}
}
