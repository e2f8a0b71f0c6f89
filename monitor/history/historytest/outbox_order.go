package historytest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
)

func (c storeTest) orderCounted() {
	first, other := ids(c.enqueue(commandOf("a"), commandOf("b"), commandOf("c"))), ids(c.enqueue(commandOf("d")))
	c.claim(after(1), 2, 1)
	c.settle(after(2), history.Outcome{ID: first[0], State: history.CommandDead, Error: "refused"})
	for order, want := range map[int64]map[history.CommandState]int{
		first[0]: {history.CommandDead: 1, history.CommandInFlight: 1, history.CommandPending: 1},
		other[0]: {history.CommandPending: 1},
		first[1]: {},
	} {
		got, err := c.RequestStates(c.Context(), order)
		if err != nil {
			c.Fatalf("states of order %d: %v", order, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			c.Errorf("states of order %d (-want +got):\n%s", order, diff)
		}
	}
}
