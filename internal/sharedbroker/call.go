package sharedbroker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/umbelhq/umbel/monitor/broker"
)

// call is one of a method of a broker.ControlConn, by name.
type call struct {
	Method     string
	Queue      string            `json:",omitempty"`
	Queues     []string          `json:",omitempty"`
	TaskID     string            `json:",omitempty"`
	RoutingKey string            `json:",omitempty"`
	Limit      int               `json:",omitempty"`
	Message    broker.Publishing `json:",omitzero"`
}

// answer is what such a method returns.
type answer struct {
	N        int64               `json:",omitempty"`
	Message  *broker.Publishing  `json:",omitempty"`
	Messages []broker.Publishing `json:",omitempty"`
	Stats    broker.QueueStats   `json:",omitzero"`
}

// call calls a method of a control connection.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	c := s.controls[r.PathValue("key")]
	s.mu.Unlock()
	if c == nil {
		refuse(w, broker.ErrClosed)
		return
	}
	var in call
	err := decode(r.Body, &in)
	exact(&in.Message)
	var out answer
	if err == nil {
		out, err = in.do(r, c)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	_ = json.NewEncoder(w).Encode(out) // fails only if the caller has gone
}

func (in *call) do(r *http.Request, c broker.ControlConn) (out answer, err error) {
	ctx := r.Context()
	switch in.Method {
	case "request":
		var n int
		n, err = c.Request(ctx, in.Message)
		out.N = int64(n)
	case "publish":
		err = c.Publish(ctx, in.Queue, in.Message)
	case "event":
		err = c.PublishEvent(ctx, in.RoutingKey, in.Message)
	case "stats":
		out.Stats, err = c.QueueStats(ctx, in.Queues)
	case "purge":
		out.N, err = c.Purge(ctx, in.Queue)
	case "peek":
		out.Messages, err = c.Peek(ctx, in.Queue, in.Limit)
	case "find":
		out.Message, err = c.Find(ctx, in.Queues, in.TaskID)
	default:
		err = fmt.Errorf("%q is no method", in.Method)
	}
	return out, err //nolint:wrapcheck // as the broker says it
}

// Kinds of errors, by the status that stands for them.
const (
	statusClosed      = http.StatusGone
	statusNoQueue     = http.StatusNotFound
	statusRefused     = http.StatusForbidden
	statusUnsupported = http.StatusNotImplemented
)

func kinds() map[int]error {
	return map[int]error{
		statusClosed: broker.ErrClosed, statusNoQueue: broker.ErrNoQueue, statusRefused: broker.ErrRefused, statusUnsupported: broker.ErrUnsupported,
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	for status, kind := range kinds() {
		if errors.Is(err, kind) {
			http.Error(w, err.Error(), status)
			return
		}
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// refusal is an error of the broker, in its words.
type refusal struct {
	text string
	kind error // nil for any other
}

func (e *refusal) Error() string { return e.text }

func (e *refusal) Unwrap() error { return e.kind }

// decode reads a JSON value, with numbers as they are.
func decode(from io.Reader, v any) error {
	d := json.NewDecoder(from)
	d.UseNumber()
	return d.Decode(v) //nolint:wrapcheck // it is only compared with nil
}

// exact gives the numbers among the headers the types that broker.Publishing names.
func exact(m *broker.Publishing) {
	if m != nil && m.Headers != nil {
		typed(m.Headers)
	}
}

func typed(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = typed(v[k])
		}
	}
	return v
}
