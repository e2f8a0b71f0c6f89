package queues_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/queues"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	flows := map[string]queues.Counters{"mail": {Sent: 5, Received: 4}}
	consumers := map[string][]string{"mail": {"w1", "w2", "both"}, "video": {"both", "w3"}, "": {"odd"}}
	unrouted := map[string]int64{"w1": 10, "w2": 20, "both": 40, "w3": 80, "gone": 160, "odd": 320}
	want := map[string]queues.Counters{"mail": {Sent: 5, Received: 34}, "video": {Received: 80}}
	if diff := cmp.Diff(want, queues.RouteCounters(flows, unrouted, consumers)); diff != "" {
		t.Errorf("routed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]queues.Counters{"mail": {Sent: 5, Received: 4}}, flows); diff != "" {
		t.Errorf("flows that were handed in (-want +got):\n%s", diff)
	}
	if got := queues.RouteCounters(nil, nil, nil); len(got) != 0 {
		t.Errorf("nothing routed = %v", got)
	}
}
