package ingest_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/queues"
)

func TestQueueCountersCountMessages(t *testing.T) {
	t.Parallel()
	sent := func(id, queue string, clock int) []byte {
		return fmt.Appendf(nil, `{"type":"task-sent","hostname":"gen1@h","pid":1,"clock":%d,"timestamp":%d,"uuid":%q,"queue":%q}`,
			clock, 1790000000+clock, id, queue)
	}
	b := inproc.New(inproc.Options{})
	m := start(t, b)
	publish(t, b, sent("a", "mail", 1), sent("b", "mail", 2), sent("c", "video", 3), sent("d", "", 4),
		body("received", "a", 5), body("received", "a", 5), body("started", "a", 6), body("received", "c", 7),
		body("received", "unsent", 8))
	await(t, m, "five tasks", func() bool { return tasks(m) == 5 })
	want := map[string]queues.Counters{"mail": {Sent: 2, Received: 1}, "video": {Sent: 1, Received: 1}}
	got, unrouted := m.QueueCounters()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flow (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"w1": 1}, unrouted); diff != "" {
		t.Errorf("unrouted (-want +got):\n%s", diff)
	}
	for i := range 1000 {
		publish(t, b, sent("t"+strconv.Itoa(i), "q"+strconv.Itoa(i), 10+i))
	}
	await(t, m, "a thousand more", func() bool { return tasks(m) == 1005 })
	got, _ = m.QueueCounters()
	if len(got) != 500 {
		t.Errorf("%d queues are counted, want 500", len(got))
	}
}
