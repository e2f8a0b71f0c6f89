// Package export writes workflows in the formats of tracing tools: Chrome's trace events, which Perfetto opens, and
// OpenTelemetry spans. What it writes holds no payload, since workflows hold none.
package export

import (
	"encoding/json"
	"io"
	"math"
	"strconv"

	"github.com/umbelhq/umbel/monitor/workflow"
)

// traceEvent is one event of the Trace Event Format.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	Category string         `json:"cat,omitempty"`
	Time     int64          `json:"ts"` // µs
	Duration *int64         `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	ID       string         `json:"id,omitempty"`
	Binding  string         `json:"bp,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// Perfetto writes a workflow in the Trace Event Format (JSON object): a process per worker and a thread per attempt that runs
// beside others there, a slice per phase of an attempt, and a flow from each task to those that it sent. It leaves out
// displayTimeUnit: Perfetto has read times in that unit.
func Perfetto(to io.Writer, w *workflow.Workflow) error {
	t := trace{pids: map[string]int{}, busy: map[int][]int64{}}
	drawn := make([][]slice, len(w.Tasks))
	for i := range w.Tasks {
		drawn[i] = t.task(&w.Tasks[i])
	}
	for i := range w.Tasks {
		if p := w.Tasks[i].Parent; p >= 0 {
			t.flow(strconv.Itoa(i), drawn[p], drawn[i], w.Tasks[i].Executions)
		}
	}
	return json.NewEncoder(to).Encode(map[string]any{
		"traceEvents": t.events, "otherData": map[string]string{"workflow": w.Root, "source": "umbel"},
	})
}

// trace is a file in the making.
type trace struct {
	events []traceEvent
	pids   map[string]int  // by worker
	busy   map[int][]int64 // until when each thread of a process is taken
}

// slice is a phase of an attempt on a thread.
type slice struct {
	pid, tid int
	from, to int64 // to is endless of one that goes on
	running  bool
}

const endless = math.MaxInt64

// task draws the attempts of a task.
func (t *trace) task(task *workflow.Task) (drawn []slice) {
	for i, e := range task.Executions {
		from, to := begun(&e), lastOf(&e)
		if from == 0 {
			continue
		}
		if e.EndedAt == 0 && i == len(task.Executions)-1 {
			to = endless
		}
		on := t.place(e.Worker, from, to)
		args := map[string]any{"task_id": task.ID, "state": string(e.State), "attempt": e.Attempt, "queue": task.Queue}
		if started := max(e.StartedAt, from); e.StartedAt == 0 || started > from {
			reserved := on
			if e.StartedAt != 0 {
				reserved.to = started
			}
			drawn = append(drawn, t.slice(reserved, name(task)+" reserved", "reserved", args))
		}
		if e.StartedAt != 0 {
			on.from, on.running = max(e.StartedAt, from), true
			drawn = append(drawn, t.slice(on, name(task), "running", args))
		}
	}
	return drawn
}

// slice draws a slice. One that goes on has a beginning only.
func (t *trace) slice(s slice, name, category string, args map[string]any) slice {
	e := traceEvent{Name: name, Phase: "B", Category: category, Time: s.from, Process: s.pid, Thread: s.tid, Args: args}
	if s.to != endless {
		length := s.to - s.from
		e.Phase, e.Duration = "X", &length
	}
	t.events = append(t.events, e)
	return s
}

// flow draws an arrow from a task to one that it sent, from where that was sent, if that is known, else from where it began to
// run. An arrow that leads back by the clocks of the workers is none that viewers can draw.
func (t *trace) flow(id string, from, to []slice, sent []workflow.Execution) {
	if len(from) == 0 || len(to) == 0 {
		return
	}
	finish := to[0]
	start, at, queued := from[0], from[0].from, sent[0].QueuedAt
	for _, s := range from {
		if !s.running || s.from > finish.from {
			continue
		}
		start, at = s, s.from
		if s.from <= queued && queued <= s.to {
			at = min(queued, finish.from)
			break
		}
	}
	if at > finish.from {
		return
	}
	e := traceEvent{Name: "sent", Category: "sent", ID: id}
	begin, end := e, e
	begin.Phase, begin.Time, begin.Process, begin.Thread = "s", at, start.pid, start.tid
	end.Phase, end.Binding, end.Time, end.Process, end.Thread = "f", "e", finish.from, finish.pid, finish.tid
	t.events = append(t.events, begin, end)
}

// place returns a thread of a worker that is free from a moment on, and takes it: slices of one thread must nest.
func (t *trace) place(worker string, from, to int64) slice {
	pid, known := t.pids[worker]
	if !known {
		pid = len(t.pids) + 1
		t.pids[worker] = pid
		t.events = append(t.events, traceEvent{Name: "process_name", Phase: "M", Process: pid, Args: map[string]any{"name": worker}})
	}
	for i, until := range t.busy[pid] {
		if until <= from {
			t.busy[pid][i] = max(from, to)
			return slice{pid: pid, tid: i + 1, from: from, to: to}
		}
	}
	t.busy[pid] = append(t.busy[pid], max(from, to))
	tid := len(t.busy[pid])
	t.events = append(t.events, traceEvent{
		Name: "thread_name", Phase: "M", Process: pid, Thread: tid, Args: map[string]any{"name": "slot " + strconv.Itoa(tid)},
	})
	return slice{pid: pid, tid: tid, from: from, to: to}
}

func begun(e *workflow.Execution) int64 {
	if e.ReceivedAt != 0 {
		return e.ReceivedAt
	}
	return e.StartedAt
}

// lastOf is the last moment that is known of an attempt.
func lastOf(e *workflow.Execution) int64 { return max(e.ReceivedAt, e.StartedAt, e.EndedAt) }

func name(t *workflow.Task) string {
	if t.Name == "" {
		return "unknown"
	}
	return t.Name
}
