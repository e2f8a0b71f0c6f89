package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

func TestRestartsAreTheProcessesAfterTheFirst(t *testing.T) {
	t.Parallel()
	other := ev(state.WorkerHeartbeat, "", "w2", 7, 50)
	c := apply(state.New(state.Options{}), heartbeat(10, 100), heartbeat(11, 200), heartbeat(12, 300), heartbeat(12, 310), other)
	for name, tt := range map[string]struct {
		since float64
		want  []state.Restart
	}{
		"all":        {0, []state.Restart{{Worker: "w1", At: at(200)}, {Worker: "w1", At: at(300)}}},
		"the newest": {250, []state.Restart{{Worker: "w1", At: at(300)}}},
		"none":       {301, nil},
	} {
		got := c.Restarts(at(tt.since))
		for i := range got {
			got[i].At -= got[i].At % 1_000_000 // an offset is an estimate
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
