package queues_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/queues"
)

func TestSortPutsTheUnknownLast(t *testing.T) {
	t.Parallel()
	list := []queues.Queue{
		{Queue: broker.Queue{Name: "a"}, WorkersKnown: true},
		{Queue: broker.Queue{Name: "b", Ready: new(int64(9)), Consumers: new(int64(3))}, OutRate: new(.5), AgeAtLeast: new(time.Minute)},
		{Queue: broker.Queue{Name: "c", Ready: new(int64(0))}, OutRate: new(2.0), Age: new(time.Second), DrainTime: new(time.Hour)},
		{Queue: broker.Queue{Name: "d", Ready: new(int64(9)), Unacked: new(int64(1))}},
	}
	for order, want := range map[string]string{
		"name": "a b c d", "-name": "d c b a", "ready": "c b d a", "-ready": "b d c a", "-consumers": "b a c d", "out": "b c a d",
		"age": "c b a d", "-age": "b c a d", "drain": "c a b d", "-unacked": "d a b c", "-in": "a b c d",
	} {
		sorted := slices.Clone(list)
		slices.Reverse(sorted)
		queues.Sort(sorted, order)
		var names []string
		for _, q := range sorted {
			names = append(names, q.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
	}
}
