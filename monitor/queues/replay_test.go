package queues_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/queues"
)

// minutes are records of a queue, a minute each, by how many messages waited at the end and how many workers received.
func minutes(from time.Time, depths, received []int64) []queues.Record {
	var list []queues.Record
	for i, n := range depths {
		end := from.Add(time.Duration(i+1) * time.Minute)
		list = append(list, queues.Record{
			From: end.Add(-time.Minute), At: end, Ready: map[string]int64{"mail": n},
			Consumers: map[string][]string{"mail": {"celery@a"}}, Received: map[string]int64{"mail": received[i]},
		})
	}
	return list
}

func TestReplayTellsWhatAPollWouldHaveTold(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 9, 21, 14, 0, 0, 0, time.UTC)
	s := queues.Replay(minutes(begin, []int64{0, 60, 90}, []int64{10, 0, 120}))
	if len(s.Queues) != 1 || !s.At.Equal(begin.Add(3*time.Minute)) {
		t.Fatalf("%+v, want one queue at the end of the last minute", s)
	}
	q := s.Queues[0]
	switch {
	case q.Ready == nil || *q.Ready != 90 || len(q.Depths) != 3 || q.Depths[0].Ready != 0:
		t.Errorf("depths: %v, %+v", q.Ready, q.Depths)
	case q.OutRate == nil || *q.OutRate != 2 || q.InRate == nil || *q.InRate != 2.5 || q.RatesFrom != "events":
		t.Errorf("in %v, out %v a second from %q, want 2.5 and 2 from events", q.InRate, q.OutRate, q.RatesFrom)
	case q.AgeAtMost == nil || *q.AgeAtMost != 2*time.Minute:
		t.Errorf("the next message waits for at most %v, want 2 min: the queue was empty then", q.AgeAtMost)
	case len(q.Workers) != 1 || !q.WorkersKnown || q.Unacked != nil || len(q.Warnings) != 0:
		t.Errorf("%+v", q)
	}
}

func TestReplayConcludesNothingAcrossAGap(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 9, 21, 14, 0, 0, 0, time.UTC)
	records := append(minutes(begin, []int64{5}, []int64{0}), minutes(begin.Add(20*time.Minute), []int64{70}, []int64{60})...)
	q := queues.Replay(records).Queues[0]
	if q.InRate != nil || q.OutRate == nil || *q.OutRate != 1 || q.Age != nil || len(q.Depths) != 2 {
		t.Errorf("in %v, out %v, age %v, depths %v; want only what the last minute tells", q.InRate, q.OutRate, q.Age, q.Depths)
	}
}

func TestReplayWithoutDepths(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 9, 21, 14, 0, 0, 0, time.UTC)
	records := minutes(begin, []int64{5}, []int64{0})
	records[0].Ready, records[0].Received = nil, nil
	records[0].Unrouted = map[string]int64{"celery@a": 30}
	q := queues.Replay(records).Queues[0]
	if q.Name != "mail" || q.Ready != nil || q.OutRate == nil || *q.OutRate != 0.5 || q.InRate != nil {
		t.Errorf("%+v, want the rate of what the worker received from its only queue", q)
	}
	if s := queues.Replay(nil); !s.At.IsZero() || len(s.Queues) != 0 {
		t.Errorf("without records: %+v", s)
	}
}
