package alert

import (
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// deafWorkers judges rules of kind DeafWorker.
type deafWorkers struct {
	*selection

	rule Rule
}

func (d *deafWorkers) judge(r *Record) (map[string]seen, bool) {
	if !r.QueuesKnown || !r.Connected {
		return nil, false
	}
	waiting := map[string]int64{}
	for _, q := range r.Queues {
		waiting[q.Name] = q.Ready
	}
	busy := map[string]bool{}
	for i := range r.Cells {
		if r.Cells[i].Received > 0 {
			busy[r.Cells[i].Worker] = true
		}
	}
	holds := map[string]seen{}
	for _, w := range r.Workers {
		if !w.Alive || w.Running > 0 || busy[w.Name] || busy[rollup.Other] || !d.match("", w.Name, "") {
			continue
		}
		for _, q := range w.Queues {
			if n := waiting[q]; n > 0 {
				holds[w.Name] = seen{float64(n), Evidence{
					Text: fmt.Sprintf("%s sends heartbeats and runs nothing, but received no task while %d %s in queue %s.",
						w.Name, n, plural(float64(n), "waits", "wait"), q),
					Worker: w.Name, Queue: q, Query: query.New(query.Equal(query.Queue, q)).String(),
				}}
				break
			}
		}
	}
	return holds, true
}

// clockOffsets judges rules of kind ClockOffset.
type clockOffsets struct {
	*selection

	rule Rule
}

func (o *clockOffsets) judge(r *Record) (map[string]seen, bool) {
	holds := map[string]seen{}
	limit := int64(o.rule.Limit * float64(second))
	for _, w := range r.Workers {
		if !w.Alive || !o.match("", w.Name, "") {
			continue
		}
		least, most, way := w.Offset.Low, w.Offset.High, "ahead"
		if w.Offset.High < 0 {
			least, way, most = -w.Offset.High, "behind", state.OpenHigh
			if w.Offset.Low != state.OpenLow {
				most = -w.Offset.Low
			}
		}
		if least <= limit {
			continue
		}
		text := fmt.Sprintf("The clock of %s is at least %s %s", w.Name, brief(least), way)
		if most != state.OpenHigh {
			text += ", and at most " + brief(most)
		}
		holds[w.Name] = seen{float64(least) / 1e6, Evidence{Text: text + ".", Worker: w.Name, Query: query.New(query.Equal(query.Worker, w.Name)).String()}}
	}
	return holds, true
}

// stuckQueues judges rules of kind StuckQueue.
type stuckQueues struct {
	*selection

	rule   Rule
	before map[string]int64 // depths in the last record
}

func (s *stuckQueues) judge(r *Record) (map[string]seen, bool) {
	if !r.QueuesKnown {
		return nil, false
	}
	holds, depths := map[string]seen{}, map[string]int64{}
	for _, q := range r.Queues {
		depths[q.Name] = q.Ready
		before, known := s.before[q.Name]
		stuck := q.Taken == TakenNone || q.Taken == TakenUnknown && known && q.Ready >= before
		if stuck && float64(q.Ready) > s.rule.Limit && s.match("", "", q.Name) {
			holds[q.Name] = seen{float64(q.Ready), Evidence{
				Text: fmt.Sprintf("%d %s in queue %s, and nothing is taken from it.", q.Ready,
					plural(float64(q.Ready), "message waits", "messages wait"), q.Name),
				Queue: q.Name, Query: query.New(query.Equal(query.Queue, q.Name)).String(),
			}}
		}
	}
	s.before = depths
	return holds, true
}

// Bounds of what overdueRuns learns.
const (
	maxNames = 1_000
	hours    = 24
	relearn  = 600 * second // how often the usual duration of a name is computed
)

// overdueRuns judges rules of kind OverdueRun.
type overdueRuns struct {
	*selection

	rule  Rule
	names map[string]*usual
}

// usual is how long tasks of a name ran in the last hours.
type usual struct {
	hours  [hours]rollup.Histogram
	hour   [hours]int64 // since 1970, of the histogram at the same place
	period int64        // that p99 was computed in
	p99    int64        // µs
	n      int64
}

func (o *overdueRuns) judge(r *Record) (map[string]seen, bool) {
	holds := map[string]seen{}
	for _, run := range r.Running { // before this record is learnt
		if !o.match(run.Name, run.Worker, "") {
			continue
		}
		u := o.names[run.Name]
		if u == nil {
			continue
		}
		u.compute(r.At)
		took := r.At - run.Since
		if u.n < o.rule.Least || float64(took) <= o.rule.Factor*float64(u.p99) {
			continue
		}
		holds[run.TaskID] = seen{float64(took) / 1e6, Evidence{
			Text:   fmt.Sprintf("%s has run for %s; 99 %% of %d runs took at most %s.", run.Name, span(took), u.n, brief(u.p99)),
			TaskID: run.TaskID, Worker: run.Worker, Query: query.New(query.Equal(query.ID, run.TaskID)).String(), From: time.UnixMicro(run.Since).UTC(),
		}}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Name == "" || len(c.Run) == 0 || c.Name == rollup.Other {
			continue
		}
		h, err := rollup.ParseHistogram(c.Run)
		if err != nil {
			continue
		}
		u := o.names[c.Name]
		if u == nil {
			if len(o.names) >= maxNames {
				continue
			}
			u = &usual{}
			o.names[c.Name] = u
		}
		u.add(r.At, h)
	}
	return holds, true
}

func (u *usual) add(at int64, h rollup.Histogram) {
	hour := at / (3600 * second)
	i := hour % hours
	if u.hour[i] != hour {
		u.hour[i], u.hours[i] = hour, nil
	}
	u.hours[i].Merge(h)
}

// compute brings p99 up to date, once in a while.
func (u *usual) compute(at int64) {
	period := at / relearn
	if period == u.period && u.n > 0 {
		return
	}
	var all rollup.Histogram
	hour := at / (3600 * second)
	for i, h := range u.hours {
		if u.hour[i] > hour-hours {
			all.Merge(h)
		}
	}
	u.period, u.p99, u.n = period, all.Quantile(.99), all.Count()
}

// brief writes microseconds to the millisecond.
func brief(micros int64) string {
	return (time.Duration(micros) * time.Microsecond).Round(time.Millisecond).String()
}
