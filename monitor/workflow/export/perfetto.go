// Package export writes workflows in the formats of tracing tools: Chrome's trace events, which Perfetto opens, and
// OpenTelemetry spans. What it writes holds no payload, since workflows hold none.
package export

import (
	"encoding/json"
	"io"
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
// beside others there, a slice per phase of an attempt, and a flow from each task to those that it sent.
func Perfetto(to io.Writer, w *workflow.Workflow) error {
	t := trace{pids: map[string]int{}, busy: map[int][]int64{}}
	places := make([]place, len(w.Tasks))
	for i := range w.Tasks {
		places[i] = t.task(&w.Tasks[i])
	}
	for i := range w.Tasks {
		if p := w.Tasks[i].Parent; p >= 0 && places[p].pid != 0 && places[i].pid != 0 {
			flow := traceEvent{Name: "sent", Category: "sent", ID: strconv.Itoa(i)}
			start, finish := flow, flow
			start.Phase, start.Time, start.Process, start.Thread = "s", places[p].at, places[p].pid, places[p].tid
			finish.Phase, finish.Binding, finish.Time, finish.Process, finish.Thread = "f", "e", max(places[i].at, places[p].at), places[i].pid, places[i].tid
			t.events = append(t.events, start, finish)
		}
	}
	return json.NewEncoder(to).Encode(map[string]any{
		"traceEvents": t.events, "displayTimeUnit": "ms", "otherData": map[string]string{"workflow": w.Root, "source": "umbel"},
	})
}

// trace is a file in the making.
type trace struct {
	events []traceEvent
	pids   map[string]int  // by worker
	busy   map[int][]int64 // until when each thread of a process is taken
}

// place is where the first slice of a task is, zero if it has none.
type place struct {
	pid, tid int
	at       int64
}

func (t *trace) task(task *workflow.Task) (first place) {
	for _, e := range task.Executions {
		from, to := begun(&e), lastOf(&e)
		if from == 0 {
			continue
		}
		p := t.place(e.Worker, from, to)
		if first.pid == 0 {
			first = p
		}
		args := map[string]any{"task_id": task.ID, "state": string(e.State), "attempt": e.Attempt, "queue": task.Queue}
		if e.ReceivedAt != 0 && e.StartedAt > e.ReceivedAt {
			t.slice(p, name(task)+" reserved", "reserved", e.ReceivedAt, e.StartedAt, args)
		}
		if e.StartedAt != 0 {
			t.slice(p, name(task), "running", e.StartedAt, max(to, e.StartedAt), args)
		} else if to > from {
			t.slice(p, name(task)+" reserved", "reserved", from, to, args)
		}
	}
	return first
}

func (t *trace) slice(p place, name, category string, from, to int64, args map[string]any) {
	length := to - from
	t.events = append(t.events, traceEvent{
		Name: name, Phase: "X", Category: category, Time: from, Duration: &length, Process: p.pid, Thread: p.tid, Args: args,
	})
}

// place returns a thread of a worker that is free from a moment on, and takes it: slices of one thread must nest.
func (t *trace) place(worker string, from, to int64) place {
	pid, known := t.pids[worker]
	if !known {
		pid = len(t.pids) + 1
		t.pids[worker] = pid
		t.events = append(t.events, traceEvent{Name: "process_name", Phase: "M", Process: pid, Args: map[string]any{"name": worker}})
	}
	for i, until := range t.busy[pid] {
		if until <= from {
			t.busy[pid][i] = max(from, to)
			return place{pid, i + 1, from}
		}
	}
	t.busy[pid] = append(t.busy[pid], max(from, to))
	return place{pid, len(t.busy[pid]), from}
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
