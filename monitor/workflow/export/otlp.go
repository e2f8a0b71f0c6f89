package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// Types of the JSON form of OTLP (opentelemetry-proto, trace/v1): 64-bit integers are strings, ids hexadecimal.
type (
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes"`
		Events     []otlpEvent     `json:"events,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpAttribute struct {
		Key   string            `json:"key"`
		Value map[string]string `json:"value"`
	}
	otlpEvent struct {
		Time string `json:"timeUnixNano"`
		Name string `json:"name"`
	}
	otlpStatus struct {
		Code int `json:"code,omitempty"`
	}
	otlpScope struct {
		Scope map[string]string `json:"scope"`
		Spans []otlpSpan        `json:"spans"`
	}
	otlpResource struct {
		Resource map[string][]otlpAttribute `json:"resource"`
		Scopes   []otlpScope                `json:"scopeSpans"`
	}
)

// Values of the protocol.
const (
	spanKindConsumer = 5
	statusOK         = 1
	statusError      = 2
)

// OTLP writes the attempts of a workflow that have ended as OpenTelemetry spans: one ExportTraceServiceRequest in the JSON
// form of OTLP, with a resource per worker. The trace id is the UUID of the root; of another id, its digest.
func OTLP(to io.Writer, w *workflow.Workflow) error {
	var workers []string
	spans := map[string][]otlpSpan{}
	for i := range w.Tasks {
		t := &w.Tasks[i]
		for n := range t.Executions {
			e := &t.Executions[n]
			s, ended := span(w, t, n)
			if !ended {
				continue
			}
			if spans[e.Worker] == nil {
				workers = append(workers, e.Worker)
			}
			spans[e.Worker] = append(spans[e.Worker], s)
		}
	}
	list := make([]otlpResource, 0, len(workers))
	for _, worker := range workers {
		list = append(list, otlpResource{
			Resource: map[string][]otlpAttribute{"attributes": {attribute("service.name", "celery"), attribute("service.instance.id", worker)}},
			Scopes:   []otlpScope{{Scope: map[string]string{"name": "umbel"}, Spans: spans[worker]}},
		})
	}
	return json.NewEncoder(to).Encode(map[string][]otlpResource{"resourceSpans": list})
}

// span is an attempt that has ended, false if it has not or its times are unknown.
func span(w *workflow.Workflow, t *workflow.Task, n int) (otlpSpan, bool) {
	e := &t.Executions[n]
	start := e.StartedAt
	if start == 0 {
		start = e.ReceivedAt
	}
	if start == 0 || e.EndedAt == 0 {
		return otlpSpan{}, false
	}
	s := otlpSpan{
		TraceID: traceID(w.Root), SpanID: spanID(t.ID, n), Name: "run " + name(t), Kind: spanKindConsumer,
		Start: nanos(start), End: nanos(max(start, e.EndedAt)),
		Attributes: []otlpAttribute{
			attribute("messaging.system", "celery"), attribute("celery.task_id", t.ID), attribute("celery.state", string(e.State)),
			attribute("messaging.destination.name", t.Queue),
			{"celery.retries", map[string]string{"intValue": strconv.FormatInt(e.Attempt, 10)}},
		},
		Status: otlpStatus{statusOK},
	}
	if e.State != state.Success && e.State != state.Retry {
		s.Status.Code = statusError
	}
	switch {
	case n > 0:
		s.Parent = spanID(t.ID, n-1)
	case t.Parent >= 0:
		s.Parent = spanID(t.ParentID, max(len(w.Tasks[t.Parent].Executions)-1, 0))
	}
	if e.QueuedAt != 0 {
		s.Events = append(s.Events, otlpEvent{nanos(e.QueuedAt), "queued"})
	}
	if e.ReceivedAt != 0 {
		s.Events = append(s.Events, otlpEvent{nanos(e.ReceivedAt), "received"})
	}
	return s, true
}

func attribute(key, value string) otlpAttribute {
	return otlpAttribute{key, map[string]string{"stringValue": value}}
}

// traceID is 32 hexadecimal digits.
func traceID(root string) string {
	if digits := strings.ReplaceAll(root, "-", ""); len(root) == 36 && len(digits) == 32 && digits != strings.Repeat("0", 32) {
		if b, err := hex.DecodeString(digits); err == nil {
			return hex.EncodeToString(b)
		}
	}
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:16])
}

// spanID is 16 hexadecimal digits.
func spanID(task string, attempt int) string {
	sum := sha256.Sum256([]byte(task + "\x00" + strconv.Itoa(attempt)))
	return hex.EncodeToString(sum[:8])
}

func nanos(micros int64) string { return strconv.FormatInt(micros, 10) + "000" }
