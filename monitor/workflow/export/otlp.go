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
	var s Spans
	for i := range w.Tasks {
		for n := range w.Tasks[i].Executions {
			s.Add(w, i, n)
		}
	}
	return s.Write(to)
}

// Spans collects spans by worker. Its zero value is empty.
type Spans struct {
	workers []string
	of      map[string][]otlpSpan
	n       int
}

// Add adds the span of an attempt, by its index and that of its task. It reports false if the attempt has not ended or its
// times are unknown.
func (s *Spans) Add(w *workflow.Workflow, task, attempt int) bool {
	t := &w.Tasks[task]
	span, ended := spanOf(w, t, attempt)
	if !ended {
		return false
	}
	worker := t.Executions[attempt].Worker
	if s.of == nil {
		s.of = make(map[string][]otlpSpan)
	}
	if s.of[worker] == nil {
		s.workers = append(s.workers, worker)
	}
	s.of[worker] = append(s.of[worker], span)
	s.n++
	return true
}

// Len is the number of spans.
func (s *Spans) Len() int { return s.n }

// Write writes them as one ExportTraceServiceRequest in JSON.
func (s *Spans) Write(to io.Writer) error {
	list := make([]otlpResource, 0, len(s.workers))
	for _, worker := range s.workers {
		list = append(list, otlpResource{
			Resource: map[string][]otlpAttribute{"attributes": {attribute("service.name", "celery"), attribute("service.instance.id", worker)}},
			Scopes:   []otlpScope{{Scope: map[string]string{"name": "umbel"}, Spans: s.of[worker]}},
		})
	}
	return json.NewEncoder(to).Encode(map[string][]otlpResource{"resourceSpans": list})
}

// spanOf is an attempt that has ended, false if it has not or its times are unknown.
func spanOf(w *workflow.Workflow, t *workflow.Task, n int) (otlpSpan, bool) {
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
		s.Parent = spanID(t.ParentID, sender(&w.Tasks[t.Parent], t))
	}
	if e.QueuedAt != 0 {
		s.Events = append(s.Events, otlpEvent{nanos(e.QueuedAt), "queued"})
	}
	if e.ReceivedAt != 0 {
		s.Events = append(s.Events, otlpEvent{nanos(e.ReceivedAt), "received"})
	}
	return s, true
}

// sender is the attempt at a task that most likely sent another: the last that had begun by then. Later ones do not change it.
func sender(parent, t *workflow.Task) (n int) {
	for i := range parent.Executions {
		if at := begun(&parent.Executions[i]); at != 0 && at <= t.FirstAt() {
			n = i
		}
	}
	return n
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
