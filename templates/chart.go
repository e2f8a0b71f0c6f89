package templates

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// barHeight is the height of a bar chart in its own units; a bar and its gap are barPitch wide.
const (
	barHeight = 48
	barPitch  = 4
)

// barBox is the viewBox of a chart of n bars.
func barBox(n int) string { return fmt.Sprintf("0 0 %d %d", max(n, 1)*barPitch-1, barHeight) }

// barPath draws one series as bars that stand on base, the sum of the series below. top is the
// value at the upper edge.
func barPath(series, base []float64, top float64) string {
	var b strings.Builder
	y := func(v float64) float64 { return barHeight - barHeight*min(v/top, 1) }
	for i, v := range series {
		if !(v > 0) {
			continue
		}
		low := 0.0
		if i < len(base) {
			low = base[i]
		}
		fmt.Fprintf(&b, "M%d %.1fh3V%.1fh-3z", i*barPitch, y(low), y(low+v))
	}
	return b.String()
}

// sum adds series of one length.
func sum(series ...[]float64) []float64 {
	var total []float64
	for _, s := range series {
		for i, v := range s {
			if i == len(total) {
				total = append(total, 0)
			}
			total[i] += v
		}
	}
	return total
}

func peak(series []float64) float64 {
	top := 0.0
	for _, v := range series {
		top = max(top, v)
	}
	return top
}

func total(series []float64) float64 {
	n := 0.0
	for _, v := range series {
		n += v
	}
	return n
}

// ceiling rounds up to 1, 2 or 5 times a power of ten, so that a chart's scale seldom moves.
func ceiling(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// share is one part of a bar that shows how a whole is divided, in thousandths of its length.
type share struct {
	State    state.State
	Count    int
	X, Width int
}

// shares divides a bar among the states. What is there at all gets at least five thousandths.
func shares(counts map[state.State]int) []share {
	const length, least = 1000, 5
	var parts []share
	whole := 0
	for _, s := range States(counts) {
		if n := counts[s]; n > 0 {
			parts = append(parts, share{State: s, Count: n})
			whole += n
		}
	}
	x, used := 0, 0
	for i := range parts {
		parts[i].Width = max(length*parts[i].Count/whole, least)
		used += parts[i].Width
	}
	if len(parts) > 0 {
		widest := slices.MaxFunc(parts, func(a, b share) int { return cmp.Compare(a.Width, b.Width) })
		i := slices.Index(parts, widest)
		parts[i].Width += length - used
	}
	for i := range parts {
		parts[i].X = x
		x += parts[i].Width
	}
	return parts
}

// States lists the built-in states in their order, then the others by name.
func States(counts map[state.State]int, more ...state.State) []state.State {
	list := state.States()
	custom := slices.AppendSeq(slices.Clone(more), maps.Keys(counts))
	slices.Sort(custom)
	for _, s := range slices.Compact(custom) {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// ranked is a name with its count.
type ranked struct {
	Name  string
	Count int
}

// busiest returns the n greatest counts, greatest first.
func busiest(counts map[string]int, n int) []ranked {
	var list []ranked
	for name, count := range counts {
		if count > 0 {
			list = append(list, ranked{name, count})
		}
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(n, len(list))]
}

// span is a part of a run on the time axis of its task, in thousandths of the axis.
type span struct {
	Class    string // queued, reserved or running
	X, Width int
	Open     bool // not ended yet: drawn to the end of the axis
}

// run is one execution, placed on the time axis of its task.
type run struct {
	state.Execution
	Spans    []span
	Reserved *float64 // seconds from received to started
	Ran      *float64 // seconds as measured by the worker, or from started to the end
	EndedAt  int64
	Named    bool // its name says more than the task's
}

// runs places the executions of t on one axis, from its first known moment to its last.
func runs(t state.Task) []run { return runsOn(t, axisOf(t)) }

// runsOn places the executions of t on an axis.
func runsOn(t state.Task, x axis) []run {
	list := make([]run, 0, len(t.Executions))
	queued := t.SentAt // the task shows when its newest attempt was sent
	named := slices.ContainsFunc(t.Executions, func(e state.Execution) bool { return e.Name != nil && t.Name != nil && *e.Name != *t.Name })
	for i, e := range t.Executions {
		r := run{Execution: e, EndedAt: endOf(e), Ran: e.RuntimeSeconds, Named: named && e.Name != nil}
		end := r.EndedAt
		if e.Replaced && i+1 < len(t.Executions) { // before its replacement was received
			end = t.Executions[i+1].ReceivedAt
		}
		if e.ReceivedAt != 0 && e.StartedAt != 0 {
			r.Reserved = seconds(e.StartedAt - e.ReceivedAt)
		}
		if r.Ran == nil && e.StartedAt != 0 && r.EndedAt != 0 {
			r.Ran = seconds(r.EndedAt - e.StartedAt)
		}
		if queued != 0 && e.ReceivedAt >= queued {
			r.Spans = x.add(r.Spans, "queued", queued, e.ReceivedAt)
			queued = 0
		}
		if e.StartedAt == 0 {
			r.Spans = x.add(r.Spans, "reserved", e.ReceivedAt, end)
		} else {
			r.Spans = x.add(r.Spans, "reserved", e.ReceivedAt, e.StartedAt)
			r.Spans = x.add(r.Spans, "running", e.StartedAt, end)
		}
		list = append(list, r)
	}
	return list
}

// ran is how long the newest execution of a task ran, in seconds, nil if that is not known.
func ran(t state.Task) *float64 {
	if list := runs(t); t.RuntimeSeconds == nil && len(list) > 0 {
		return list[len(list)-1].Ran
	}
	return t.RuntimeSeconds
}

// axis is the time axis of a task, µs.
type axis struct { //nolint:recvcheck // only fold changes it
	first, length int64 // drawn, with folds as long as they are drawn
	folds         []fold
}

// fold is a span of an axis that is drawn shorter than it is, µs.
type fold struct{ from, to, drawn int64 }

func axisOf(t state.Task) axis {
	first, last, open := int64(math.MaxInt64), int64(0), false
	for _, e := range t.Executions {
		for _, at := range []int64{t.SentAt, e.ReceivedAt, e.StartedAt, endOf(e)} {
			if at != 0 {
				first, last = min(first, at), max(last, at)
			}
		}
		open = open || endOf(e) == 0 && !e.Replaced
	}
	length := max(last-first, 1)
	if open { // leave room for what is still running
		length += length / 2
	}
	return axis{first: first, length: length}
}

// at is a moment in thousandths of the axis.
func (x axis) at(micros int64) int {
	place := micros - x.first
	for _, f := range x.folds {
		if within := min(micros, f.to) - f.from; within > 0 {
			place -= within - within*f.drawn/(f.to-f.from)
		}
	}
	return int(1000 * place / x.length)
}

// add appends the span between two moments, of which the second may not have come yet.
func (x axis) add(spans []span, class string, from, to int64) []span {
	switch {
	case from == 0:
		return spans
	case to == 0:
		return append(spans, span{class, x.at(from), max(1000-x.at(from), 12), true})
	default:
		return append(spans, span{class, x.at(from), max(x.at(to)-x.at(from), 3), false})
	}
}

func seconds(micros int64) *float64 {
	s := float64(micros) / 1e6
	return &s
}

// endOf is when an execution ended, 0 if it has not.
func endOf(e state.Execution) int64 {
	switch e.State {
	case state.Success:
		return e.SucceededAt
	case state.Failure:
		return e.FailedAt
	case state.Retry:
		return e.RetriedAt
	case state.Revoked:
		return e.RevokedAt
	case state.Rejected:
		return e.RejectedAt
	case state.Pending, state.Received, state.Started:
	}
	return 0
}
