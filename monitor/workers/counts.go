package workers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

const (
	counted  = 24 * time.Hour
	maxNames = 10_000 // with usual run times; those of others are unknown
	minRuns  = 5      // of which a run time is usual
	usual    = .95    // part of the runs that take at most the usual time
	maxRuns  = 500    // tasks that are looked at for those that run longest
)

// Ends counts the tasks that ended on a worker.
type Ends struct{ Succeeded, Failed int64 }

// FailureShare is the part of the ended tasks that failed, 0 to 1, and false if none ended.
func (e Ends) FailureShare() (float64, bool) {
	if n := e.Succeeded + e.Failed; n > 0 {
		return float64(e.Failed) / float64(n), true
	}
	return 0, false
}

// Counts is what the counters say of the last 24 hours.
type Counts struct {
	ByWorker map[string]Ends
	Usual    map[string]time.Duration // within which 95 % of the tasks of a name succeeded
}

// ReadCounts reads the counters of the 24 hours before now, which begin with an hour.
func ReadCounts(ctx context.Context, rollups history.RollupReader, now time.Time) (Counts, error) {
	c := Counts{ByWorker: map[string]Ends{}, Usual: map[string]time.Duration{}}
	r := history.RollupRange{From: now.Add(-counted).Truncate(time.Hour), To: now, Span: time.Hour, By: history.ByWorker}
	err := rollups.Rollups(ctx, r, func(m history.Rollup) error {
		e := c.ByWorker[m.Worker]
		e.Succeeded += m.Succeeded
		e.Failed += m.Failed
		c.ByWorker[m.Worker] = e
		return nil
	})
	if err != nil {
		return Counts{}, fmt.Errorf("read counters of workers: %w", err)
	}
	runs := map[string]*rollup.Histogram{}
	r.By, r.OmitCounts, r.Run = history.ByName, true, true
	err = rollups.Rollups(ctx, r, func(m history.Rollup) error {
		if len(m.Run) == 0 || runs[m.Name] == nil && len(runs) >= maxNames {
			return nil
		}
		if runs[m.Name] == nil {
			runs[m.Name] = new(rollup.Histogram)
		}
		return runs[m.Name].MergeSaved(m.Run)
	})
	if err != nil {
		return Counts{}, fmt.Errorf("read run times: %w", err)
	}
	for name, h := range runs {
		if name != "" && name != rollup.Other && h.Count() >= minRuns {
			c.Usual[name] = time.Duration(h.Quantile(usual)) * time.Microsecond
		}
	}
	return c, nil
}

// Longest returns the running task of each worker that stands out most: of those that run far longer than usual, else of all,
// the one that has run longest. One that has run less than 10 s does not. It looks at the 500 running tasks whose last event is oldest.
func Longest(v state.View, now time.Time, c Counts) map[string]Run {
	longest := map[string]Run{}
	for _, t := range v.Tasks(state.Query{States: []state.State{state.Started}, Newer: true, Limit: maxRuns}).Tasks {
		if t.Worker == nil || t.Orphaned || t.Returned {
			continue
		}
		w, _ := v.Worker(*t.Worker)
		r, ok := NewRun(&t, w, now, c)
		if other, found := longest[w.Name]; ok && r.Elapsed >= leastLong && (!found || r.compare(other) > 0) {
			longest[w.Name] = r
		}
	}
	return longest
}

// NewRun returns a task as a Run, false if it is not known when it started on the worker.
func NewRun(t *state.Task, w state.Worker, now time.Time, c Counts) (Run, bool) {
	if t.StartedAt == 0 {
		return Run{}, false
	}
	r := Run{ID: t.ID, StartedAt: t.StartedAt}
	if t.Name != nil {
		r.Name, r.Usual = *t.Name, c.Usual[*t.Name]
	}
	if w.ClockOffsetMicros != nil {
		r.StartedAt -= *w.ClockOffsetMicros
	}
	r.Elapsed = max(now.Sub(time.UnixMicro(r.StartedAt)), 0)
	return r, true
}

// compare orders runs by how much they stand out.
func (r Run) compare(other Run) int {
	if r.TooLong() != other.TooLong() {
		if r.TooLong() {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(r.Elapsed, other.Elapsed), cmp.Compare(other.ID, r.ID))
}
