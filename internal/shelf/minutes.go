package shelf

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Rollups counts what happened to the tasks of the cluster, alone by their names. Nobody watched in other
// minutes.
func (m *memory) Rollups(_ context.Context, r history.RollupRange, f func(history.Rollup) error) error {
	type key struct {
		at                  int64
		name, worker, queue string
	}
	cells := map[key]*history.Rollup{}
	for _, t := range m.match(query.Query{}, time.Now()) {
		cell := func(micros int64) *history.Rollup {
			at := time.UnixMicro(micros).Truncate(r.Span).Unix() / 60
			k := key{at, text(t.Name), text(t.Worker), text(t.Queue)}
			if cells[k] == nil {
				cells[k] = &history.Rollup{At: at, Name: k.name, Worker: k.worker, Queue: k.queue}
			}
			return cells[k]
		}
		for _, e := range t.Executions {
			count(e, cell)
		}
	}
	var list []history.Rollup
	for k, c := range cells {
		at := time.Unix(60*k.at, 0)
		if !at.Before(r.From) && at.Before(r.To) {
			list = append(list, *c)
		}
	}
	slices.SortFunc(list, func(a, b history.Rollup) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Worker, b.Worker))
	})
	for _, c := range list {
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

func count(e state.Execution, cell func(micros int64) *history.Rollup) {
	if e.ReceivedAt != 0 {
		cell(e.ReceivedAt).Received++
	}
	if e.FailedAt != 0 {
		cell(e.FailedAt).Failed++
	}
	if e.RetriedAt != 0 {
		cell(e.RetriedAt).Retried++
	}
	if e.SucceededAt != 0 {
		c := cell(e.SucceededAt)
		c.Succeeded++
		if e.RuntimeSeconds != nil {
			var h rollup.Histogram
			h.Add(int64(*e.RuntimeSeconds * 1e6))
			c.Run, _ = rollup.MergeEncoded(c.Run, h.Encode()) // made here
		}
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
