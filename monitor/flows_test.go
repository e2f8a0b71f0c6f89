package monitor_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/transport/memory"
)

func TestFlowCountsMessagesOfQueues(t *testing.T) {
	t.Parallel()
	sent := func(id, queue string, clock int) []byte {
		return fmt.Appendf(nil, `{"type":"task-sent","hostname":"gen1@h","pid":1,"clock":%d,"timestamp":%d,"uuid":%q,"queue":%q}`,
			clock, 1790000000+clock, id, queue)
	}
	b := memory.New(memory.Options{})
	m := start(t, b)
	publish(t, b, sent("a", "mail", 1), sent("b", "mail", 2), sent("c", "video", 3), sent("d", "", 4),
		body("received", "a", 5), body("received", "a", 5), body("started", "a", 6), body("received", "c", 7),
		body("received", "unsent", 8))
	await(t, m, "five tasks", func() bool { return tasks(m) == 5 })
	want := map[string]queues.Flow{"mail": {Sent: 2, Received: 1}, "video": {Sent: 1, Received: 1}}
	if diff := cmp.Diff(want, m.Flow()); diff != "" {
		t.Errorf("flow (-want +got):\n%s", diff)
	}
	for i := range 1000 {
		publish(t, b, sent("t"+strconv.Itoa(i), "q"+strconv.Itoa(i), 10+i))
	}
	await(t, m, "a thousand more", func() bool { return tasks(m) == 1005 })
	if got, want := len(m.Flow()), 500; got != want {
		t.Errorf("%d queues are counted, want %d", got, want)
	}
}
