package templates

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/monitor/workflow"
)

const (
	minGap   = 1_000_000 // µs of a gap that is folded
	gapShare = 8         // it is at least this part of the whole
	foldPart = 30        // what a fold is drawn as: this part of what is left
	maxTicks = 5
	minApart = 120 // thousandths of the axis between two labels
	minStep  = 100 // µs, the shortest that a label can tell
)

// workflowAxis is the time axis of a workflow.
func workflowAxis(w *workflow.Workflow) axis {
	s := w.Summary()
	last := s.StartedAt
	for i := range w.Tasks {
		for _, e := range w.Tasks[i].Executions {
			last = max(last, e.ReceivedAt, e.StartedAt, e.EndedAt)
		}
	}
	return axis{first: s.StartedAt, length: max(last-s.StartedAt, 1)}
}

// gaps are the long spans in which nothing runs, begins or ends, in order.
func (x axis) gaps(w *workflow.Workflow) []fold {
	var busy []fold
	for i := range w.Tasks {
		t := &w.Tasks[i]
		busy = append(busy, fold{from: t.SentAt, to: t.SentAt})
		for n := range t.Executions {
			e := &t.Executions[n]
			busy = append(busy, fold{from: e.QueuedAt, to: e.QueuedAt}, fold{from: e.ReceivedAt, to: e.ReceivedAt})
			end := e.EndedAt
			if end == 0 && e.StartedAt != 0 && !t.Over() {
				end = x.first + x.length
			}
			busy = append(busy, fold{from: cmp.Or(e.StartedAt, end), to: cmp.Or(end, e.StartedAt)})
		}
	}
	slices.SortFunc(busy, func(a, b fold) int { return cmp.Compare(a.from, b.from) })
	var gaps []fold
	until := x.first
	for _, b := range busy {
		if gap := b.from - until; b.from != 0 && gap >= minGap && gap >= x.length/gapShare {
			gaps = append(gaps, fold{from: until, to: b.from})
		}
		until = max(until, b.to)
	}
	return gaps
}

// fold draws gaps short.
func (x *axis) fold(gaps []fold) {
	rest := x.length
	for _, g := range gaps {
		rest -= g.to - g.from
	}
	x.length = max(rest, 1)
	for _, g := range gaps {
		g.drawn = max(rest/foldPart, 1)
		x.folds = append(x.folds, g)
		x.length += g.drawn
	}
}

// tick is a label of an axis, in thousandths of it.
type tick struct {
	X    int
	Text string
}

// last reports whether its label has no room after it.
func (t tick) last() bool { return t.X > 1000-minApart }

// thousandths are a part of an axis in percent.
func thousandths(x int) string { return strconv.FormatFloat(float64(x)/10, 'f', 1, 64) + "%" }

// ticks are the times since the beginning at which the axis is marked.
func (x axis) ticks() []tick {
	step := int64(minStep)
	for scale := step; step*maxTicks < x.length; scale *= 10 {
		for _, n := range []int64{1, 2, 5} {
			if step = n * scale; step*maxTicks >= x.length {
				break
			}
		}
	}
	list := []tick{{0, "0"}}
	for at := step; x.at(x.first+at) <= 1000; at += step {
		for _, f := range x.folds { // go on after it
			if from, to := f.from-x.first, f.to-x.first; at > from && at < to {
				at = (to + step - 1) / step * step
			}
		}
		next, room := tick{x.at(x.first + at), duration(float64(at) / 1e6)}, minApart
		if next.last() {
			room *= 2 // its label is on the side of the one before
		}
		if next.X <= 1000 && next.X-list[len(list)-1].X >= room {
			list = append(list, next)
		}
	}
	return list
}

// foldSpans are what a lane shows of folds.
func (x axis) foldSpans() []span {
	var list []span
	for _, f := range x.folds {
		list = append(list, span{Class: "fold", X: x.at(f.from), Width: max(x.at(f.to)-x.at(f.from), 4)})
	}
	return list
}

// idleWords says how long nothing happened.
func idleWords(gaps []fold) string {
	all := int64(0)
	for _, g := range gaps {
		all += g.to - g.from
	}
	return plural(len(gaps), "gap", "gaps") + " in which nothing runs, begins or ends, " + duration(float64(all)/1e6) + " in all"
}
