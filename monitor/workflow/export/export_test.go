package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"testing"

	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/monitor/workflow/export"
	"github.com/umbelhq/umbel/state"
)

const root = "0b75f1a2-7b0e-4f0a-9a54-0d6f3f1f9a11"

// sent is a task that sends another, which is retried once.
func sent() workflow.Workflow {
	run := func(queued, started, ended int64, s state.State, attempt int64) workflow.Execution {
		return workflow.Execution{Attempt: attempt, Worker: "celery@a", State: s, QueuedAt: queued, ReceivedAt: queued + 1, StartedAt: started, EndedAt: ended}
	}
	return workflow.Assemble(root, []workflow.Task{
		{ID: root, Name: "shop.order", State: state.Success, Executions: []workflow.Execution{run(1, 10, 50, state.Success, 0)}},
		{ID: "child", ParentID: root, State: state.Failure, Executions: []workflow.Execution{run(20, 30, 40, state.Retry, 0), run(40, 60, 90, state.Failure, 1)}},
		{ID: "running", ParentID: root, State: state.Started, Executions: []workflow.Execution{run(20, 30, 0, state.Started, 0)}},
	})
}

// TestPerfetto says that the file keeps the rules of the Trace Event Format: known phases, slices of a thread that do not
// overlap, and each flow with a start, where its task was sent, and an end.
func TestPerfetto(t *testing.T) {
	t.Parallel()
	w := sent()
	var b bytes.Buffer
	if err := export.Perfetto(&b, &w); err != nil {
		t.Fatal(err)
	}
	var file struct {
		DisplayTimeUnit string
		TraceEvents     []struct {
			Name, Ph, ID string
			TS, Dur      int64
			Pid, Tid     int
		}
	}
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	if file.DisplayTimeUnit != "" {
		t.Errorf("displayTimeUnit %q, in which Perfetto would read times", file.DisplayTimeUnit)
	}
	slices, open, flows, until := 0, 0, map[string]string{}, map[[2]int]int64{}
	for _, e := range file.TraceEvents {
		switch e.Ph {
		case "X":
			slices++
			if e.Dur < 0 || e.Pid == 0 || e.Tid == 0 || e.TS < until[[2]int{e.Pid, e.Tid}] {
				t.Errorf("slice %+v begins within the one before, which ends at %d", e, until[[2]int{e.Pid, e.Tid}])
			}
			until[[2]int{e.Pid, e.Tid}] = e.TS + e.Dur
		case "B":
			open++
			if e.TS < until[[2]int{e.Pid, e.Tid}] {
				t.Errorf("slice %+v begins within the one before", e)
			}
			until[[2]int{e.Pid, e.Tid}] = math.MaxInt64
		case "s", "f":
			flows[e.ID] += fmt.Sprint(e.Ph, " ", e.TS, " ")
		case "M":
		default:
			t.Errorf("unknown phase %q", e.Ph)
		}
	}
	if slices != 7 || open != 1 || len(flows) != 2 || flows["1"] != "s 20 f 21 " || flows["2"] != "s 20 f 21 " {
		t.Errorf("%d slices, %d that go on, flows %v", slices, open, flows)
	}
}

// TestOTLP says that spans have ids of the lengths that the protocol asks for, parents among them, and no attempt that runs.
func TestOTLP(t *testing.T) {
	t.Parallel()
	w := sent()
	var b bytes.Buffer
	if err := export.OTLP(&b, &w); err != nil {
		t.Fatal(err)
	}
	var request struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, ParentSpanID, StartTimeUnixNano, EndTimeUnixNano string
					Status                                                            struct{ Code int }
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &request); err != nil {
		t.Fatal(err)
	}
	spans := request.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3", len(spans))
	}
	known := map[string]bool{"": true}
	for i, s := range spans {
		if s.TraceID != "0b75f1a27b0e4f0a9a540d6f3f1f9a11" || !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(s.SpanID) || !known[s.ParentSpanID] || (i > 0) != (s.ParentSpanID != "") {
			t.Errorf("span %+v", s)
		}
		known[s.SpanID] = true
	}
	if spans[0].Status.Code != 1 || spans[2].Status.Code != 2 || spans[2].EndTimeUnixNano != "90000" {
		t.Errorf("spans %+v", spans)
	}
}
