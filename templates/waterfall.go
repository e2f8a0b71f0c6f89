package templates

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// maxWaterfall bounds the rows of a waterfall.
const maxWaterfall = 150

// Waterfall draws a workflow as a row per attempt on one time axis.
type Waterfall struct {
	WaterfallOptions
	w       *workflow.Workflow
	axis    axis
	gaps    []fold // in which nothing happens
	rows    []waterfallRow
	omitted int // tasks without a row
	path    []workflow.Hop
}

// WaterfallOptions say what a waterfall shows, and what it takes that from.
type WaterfallOptions struct {
	Open    []string // tasks whose folded children are shown one by one
	Groups  workflow.Groups
	Elapsed workflow.ElapsedFunc // bounds of waits, nil to trust all clocks
	Idle    bool                 // gaps in which nothing happens are drawn as long as they are
	// About is the id of a task whose family alone is drawn, empty of a whole workflow. Nothing is folded then, and nothing is
	// said of what decided when the workflow ended.
	About string
}

// waterfallRow is one attempt, a task that no worker has received, or tasks that are folded into one row.
type waterfallRow struct {
	ID       string // of the row
	Task     *workflow.Task
	Attempt  int64 // 0 for the first
	Again    bool  // a row of the same task comes before it
	Critical bool  // it decided when the workflow ended
	Fold     *workflow.Row
	Worker   string
	State    state.State
	Queued   *workflow.Length
	Reserved *float64
	Ran      *float64
	Spans    []span
}

// NewWaterfall lays a workflow out.
func NewWaterfall(w *workflow.Workflow, o WaterfallOptions) Waterfall {
	x := workflowAxis(w)
	gaps := x.gaps(w)
	if !o.Idle {
		x.fold(gaps)
	}
	if s := w.Summary(); s.Over < s.Tasks { // leave room for what is still running
		x.length += x.length / 2
	}
	v := Waterfall{WaterfallOptions: o, axis: x, gaps: gaps, w: w}
	if o.About == "" {
		v.path = w.Critical(o.Groups, o.Elapsed)
	}
	critical := make(map[int]bool, len(v.path))
	for _, h := range v.path {
		critical[h.Task] = true
	}
	rows := w.Rows(o.Open)
	if o.About != "" {
		rows = w.Single()
	}
	for _, r := range rows {
		t := &w.Tasks[r.Task]
		switch {
		case len(v.rows) >= maxWaterfall:
			v.omitted += r.Tasks
		case r.Folded != nil:
			v.rows = append(v.rows, foldedRow(x, w, r, critical))
		case len(t.Executions) == 0:
			row := waterfallRow{ID: "w-" + t.ID, Task: t, State: t.State, Critical: critical[r.Task]}
			row.Spans = x.add(nil, "queued", t.SentAt, 0)
			v.rows = append(v.rows, row)
		}
		if r.Folded != nil || len(v.rows) >= maxWaterfall {
			continue
		}
		for n := range t.Executions {
			row := v.attemptRow(x, r.Task, n)
			row.Critical = critical[r.Task]
			v.rows = append(v.rows, row)
		}
	}
	return v
}

// foldedRow is a row for siblings of one shape: from when the first was queued until the last ended.
func foldedRow(x axis, w *workflow.Workflow, r workflow.Row, critical map[int]bool) waterfallRow {
	row := waterfallRow{ID: "f-" + w.Tasks[r.Task].ID, Task: &w.Tasks[r.Task], Fold: &r, State: state.Success}
	var first, started, last int64
	running := false
	for _, i := range r.Folded {
		t := &w.Tasks[i]
		row.Critical = row.Critical || critical[i]
		if at := t.FirstAt(); at != 0 && (first == 0 || at < first) {
			first = at
		}
		for _, e := range t.Executions {
			if at := cmp.Or(e.StartedAt, e.ReceivedAt); at != 0 && (started == 0 || at < started) {
				started = at
			}
		}
		last = max(last, t.EndedAt())
		running = running || !t.Over()
	}
	if running {
		last, row.State = 0, state.Started
	} else if r.Failed > 0 {
		row.State = state.Failure
	}
	if started > first {
		row.Spans = x.add(row.Spans, "queued", first, started)
	}
	if started != 0 && (last != 0 || running) {
		row.Spans = x.add(row.Spans, "running", started, last)
	}
	return row
}

// opened is the address of the waterfall with the children of a row's parent one by one.
func (v Waterfall) opened(u URLs, r waterfallRow) templ.SafeURL {
	parent := v.w.Root
	if r.Task.Parent >= 0 {
		parent = v.w.Tasks[r.Task.Parent].ID
	}
	return v.address(u, append(slices.Clone(v.Open), parent), v.Idle)
}

// shut is the address of the waterfall with the children of a task folded again.
func (v Waterfall) shut(u URLs, parent string) templ.SafeURL {
	return v.address(u, slices.DeleteFunc(slices.Clone(v.Open), func(id string) bool { return id == parent }), v.Idle)
}

func (v Waterfall) address(u URLs, open []string, idle bool) templ.SafeURL {
	q := url.Values{}
	if len(open) > 0 {
		q["open"] = open
	}
	if idle {
		q.Set("idle", "shown")
	}
	if len(q) == 0 {
		return u.path(WorkflowPath(v.w.Root))
	}
	return u.path(WorkflowPath(v.w.Root) + "?" + q.Encode())
}

// openedTasks are the tasks whose children are shown one by one.
func (v Waterfall) openedTasks() []*workflow.Task {
	var list []*workflow.Task
	for i := range v.w.Tasks {
		if slices.Contains(v.Open, v.w.Tasks[i].ID) {
			list = append(list, &v.w.Tasks[i])
		}
	}
	return list
}

// foldWords say what is in a folded row.
func foldWords(r *workflow.Row, name string) string {
	text := number(len(r.Folded)) + " × " + cmp.Or(name, "unknown")
	if r.Tasks > len(r.Folded) {
		text += ", " + plural(r.Tasks, "task", "tasks") + " in all"
	}
	if r.Failed > 0 {
		text += ", " + number(r.Failed) + " failed"
	}
	return text
}

// inferred reports whether a listed step is said to be of a chord by what its header looks like.
func (v Waterfall) inferred() bool {
	return slices.ContainsFunc(v.hops(), func(h workflow.Hop) bool { return h.Held && h.Inferred })
}

// maxHops bounds the steps of the critical path that are listed: the last ones.
const maxHops = 25

// hops are the steps that are listed.
func (v Waterfall) hops() []workflow.Hop { return v.path[max(len(v.path)-maxHops, 0):] }

// held says how long a chord waited for one task, empty if it did not.
func (v Waterfall) held(h workflow.Hop) string {
	name := func(i int) string { return cmp.Or(v.w.Tasks[i].Name, "task") + " " + shortID(v.w.Tasks[i].ID) }
	chord := "The chord"
	if h.Inferred {
		chord = "What seems to be a chord"
	}
	switch {
	case !h.Held:
		return ""
	case h.Rival >= 0 && h.Hold.High == state.OpenHigh:
		return chord + " waited about " + duration(float64(h.Hold.Likely)/1e6) + " on " + name(h.Task) + " after " + name(h.Rival) + "; the clocks of their hosts are not known well enough to be sure."
	case h.Rival >= 0:
		return chord + " waited for either of these two: " + name(h.Task) + " or " + name(h.Rival) + "."
	default:
		return chord + " waited " + lengthWords(h.Hold) + " on " + name(h.Task) + " alone."
	}
}

// lengthWords is a length of time, with its bounds if it is not exact.
func lengthWords(l workflow.Length) string {
	low, high := *l.LowSeconds(), l.HighSeconds()
	switch {
	case l.Exact() && !l.Uncertain:
		return duration(low)
	case high != nil:
		return timeSpan(low, *high)
	case l.Uncertain:
		return "an unknown time"
	case l.Low > 0:
		return "about " + duration(float64(l.Likely)/1e6) + ", at least " + roundedDown(low)
	default:
		return "about " + duration(float64(l.Likely)/1e6)
	}
}

// lengthBounds says what is known of a length of time between two clocks.
func lengthBounds(l workflow.Length) string {
	low, high := *l.LowSeconds(), l.HighSeconds()
	switch {
	case high != nil:
		return "Between " + duration(low) + " and " + duration(*high) + " by what is known of the clocks of both hosts."
	case low > 0:
		return "At least " + roundedDown(low) + " by what is known of the clocks of both hosts."
	default:
		return "By the clocks of two hosts, as far as is known how far they are off."
	}
}

// Content draws the tab.
func (v Waterfall) Content(u URLs) templ.Component { return waterfall(u, v) }

func (v Waterfall) attemptRow(x axis, task, n int) waterfallRow {
	t := &v.w.Tasks[task]
	e := &t.Executions[n]
	r := waterfallRow{ID: "w-" + t.ID, Task: t, Attempt: e.Attempt, Again: n > 0, Worker: e.Worker, State: e.State}
	if n > 0 {
		r.ID += "-" + strconv.Itoa(n)
	}
	end := e.EndedAt
	if e.Replaced && n+1 < len(t.Executions) {
		end = t.Executions[n+1].ReceivedAt
	}
	begun := cmp.Or(e.ReceivedAt, e.StartedAt)
	if queued, ok := v.w.Waited(task, n, begun, v.Elapsed); ok {
		r.Queued = &queued
		if begun > e.QueuedAt {
			r.Spans = x.add(r.Spans, "queued", e.QueuedAt, begun)
		}
	}
	if e.ReceivedAt != 0 && e.StartedAt != 0 {
		r.Reserved = seconds(e.StartedAt - e.ReceivedAt)
	}
	if e.StartedAt == 0 {
		r.Spans = x.add(r.Spans, "reserved", e.ReceivedAt, end)
		return r
	}
	r.Spans = x.add(r.Spans, "reserved", e.ReceivedAt, e.StartedAt)
	r.Spans = x.add(r.Spans, "running", e.StartedAt, end)
	if end != 0 {
		r.Ran = seconds(end - e.StartedAt)
	}
	return r
}

// indent is the class that moves the name of a task to its depth.
func (r waterfallRow) indent() string { return "depth-" + strconv.Itoa(min(r.Task.Depth, 8)) }
