package control

import (
	"context"
	"maps"
)

// pools asks all workers for their pools, and returns them by worker.
func (i *Inspector) pools(ctx context.Context, alive []string) map[string]Pool {
	a, err := i.client.Ask(ctx, Question{Method: "stats", Expect: alive, Timeout: patience})
	if err != nil {
		return nil
	}
	told := make(map[string]Pool)
	for _, r := range a.Replies {
		var one Inspection
		if problem(r) == "" && decodeStats(&one, r.Value) {
			told[r.Node] = one.Stats.Pool
		}
	}
	return told
}

// standing are pools that workers which are alive told of, now or before.
func standing(before, now map[string]Pool, alive []string) map[string]Pool {
	all := maps.Clone(now)
	if all == nil {
		all = make(map[string]Pool)
	}
	for _, node := range alive {
		pool, before := before[node]
		if _, told := all[node]; !told && before {
			all[node] = pool
		}
	}
	return all
}

// Last returns what is known of a worker, and has it not asked.
func (i *Inspector) Last(name string) Inspection {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.nodes[name]
	if s == nil {
		s = &subject{inspection: Inspection{Node: name}}
	}
	return i.shown(name, s)
}
