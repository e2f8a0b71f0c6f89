package templates

import (
	"cmp"
	"strconv"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// Waterfall draws a workflow as a row per attempt on one time axis.
type Waterfall struct {
	rows []waterfallRow
}

// waterfallRow is one attempt, or a task that no worker has received.
type waterfallRow struct {
	ID       string // of the row
	Task     *workflow.Task
	Attempt  int64 // 0 for the first
	Again    bool  // a row of the same task comes before it
	Worker   string
	State    state.State
	Queued   *float64 // seconds
	Reserved *float64
	Ran      *float64
	Spans    []span
}

// NewWaterfall lays a workflow out. Folded children of the tasks in open are shown one by one.
func NewWaterfall(w *workflow.Workflow, open []string) Waterfall {
	x := workflowAxis(w)
	v := Waterfall{}
	for i := range w.Tasks {
		t := &w.Tasks[i]
		if len(t.Executions) == 0 {
			r := waterfallRow{ID: "w-" + t.ID, Task: t, State: t.State}
			r.Spans = x.add(nil, "queued", t.SentAt, 0)
			v.rows = append(v.rows, r)
		}
		for n := range t.Executions {
			v.rows = append(v.rows, attemptRow(x, t, n))
		}
	}
	return v
}

// Content draws the tab.
func (v Waterfall) Content(u URLs) templ.Component { return waterfall(u, v) }

func attemptRow(x axis, t *workflow.Task, n int) waterfallRow {
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
	if e.QueuedAt != 0 && begun != 0 {
		r.Queued = seconds(begun - e.QueuedAt)
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

// workflowAxis is the time axis of a workflow.
func workflowAxis(w *workflow.Workflow) axis {
	s := w.Summary()
	last := s.StartedAt
	for i := range w.Tasks {
		for _, e := range w.Tasks[i].Executions {
			last = max(last, e.ReceivedAt, e.StartedAt, e.EndedAt)
		}
	}
	length := max(last-s.StartedAt, 1)
	if s.Over < s.Tasks { // leave room for what is still running
		length += length / 2
	}
	return axis{s.StartedAt, length}
}

// indent is the class that moves the name of a task to its depth.
func (r waterfallRow) indent() string { return "depth-" + strconv.Itoa(min(r.Task.Depth, 8)) }
