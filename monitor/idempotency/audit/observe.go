package audit

import (
	"cmp"
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency/settings"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// maxObserved bounds the names of tasks whose run times are added up.
const maxObserved = 5_000

// observe reads how long tasks run and how far ahead their ETAs lie.
func (r *Report) observe(ctx context.Context, o Options) map[string]settings.Observed {
	list := map[string]settings.Observed{}
	r.runTimes(ctx, o, list)
	r.delays(ctx, o, list)
	return list
}

// runTimes adds the run times of the window. Those of the last hours are of all events, by the minute that they came in.
func (r *Report) runTimes(ctx context.Context, o Options, list map[string]settings.Observed) {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	histograms := map[string]rollup.Histogram{}
	err := o.Rollups.Rollups(ctx, history.RollupRange{
		From: o.Now.Add(-Window).Truncate(time.Hour), To: o.Now.Add(time.Hour), Span: time.Hour, OmitCounts: true, Run: true, By: history.ByName,
	}, func(m history.Rollup) error {
		h, known := histograms[m.Name]
		if len(m.Run) == 0 || m.Name == "" || !known && len(histograms) == maxObserved {
			return nil
		}
		err := h.MergeSaved(m.Run)
		histograms[m.Name] = h
		return err
	})
	if err != nil {
		r.late("Run times", err)
	}
	for name, h := range histograms {
		list[name] = settings.Observed{
			Runs: h.Count(), P99: time.Duration(h.Quantile(.99)) * time.Microsecond, Longest: time.Duration(h.Quantile(1)) * time.Microsecond,
		}
	}
}

// delays adds the longest times to an ETA, of the newest tasks that have one.
func (r *Report) delays(ctx context.Context, o Options, list map[string]settings.Observed) {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	request := history.TaskRequest{
		Query: query.New(query.And{
			query.Between(query.ETA, 0, maxMicros), query.Between(query.Updated, o.Now.Add(-Window).UnixMicro(), maxMicros),
		}),
		Limit: pageSize, Now: o.Now,
	}
	for read := 0; read < maxETAs; read += pageSize {
		page, err := o.Tasks.Tasks(ctx, request)
		if err != nil {
			r.late("ETAs", err)
			return
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			eta, ok := query.ETA.Int(t)
			from := held(t)
			if !ok || t.Name == nil || from == 0 {
				continue
			}
			seen := list[*t.Name]
			seen.Delay = max(seen.Delay, time.Duration(eta-from)*time.Microsecond)
			if len(list) < maxObserved {
				list[*t.Name] = seen
			}
		}
		if request.From = page.Next; page.Next == nil || page.Searched > 0 {
			return
		}
	}
}

// held returns when a worker first received the newest attempt at a task, else when it was sent, µs since 1970 UTC, 0 if
// both are unknown.
func held(t *state.Task) int64 {
	first := int64(0)
	for i := range t.Executions {
		e := &t.Executions[i]
		if at := e.ReceivedAt; at != 0 && e.Attempt == t.Executions[len(t.Executions)-1].Attempt && (first == 0 || at < first) {
			first = at
		}
	}
	return cmp.Or(first, t.SentAt)
}

// maxMicros is a time that no task has, µs since 1970 UTC.
const maxMicros = 1 << 53
