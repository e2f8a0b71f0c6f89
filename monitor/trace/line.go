package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// Types of lines beside events.
const (
	typeConclusion = "umbel-conclusion"
	typeWorkers    = "umbel-workers"
	typeEnd        = "umbel-end"
)

// Received is what Umbel adds to an event.
type Received struct {
	At      int64 `json:"received"`          // µs since 1970 UTC
	Clock   int64 `json:"clock"`             // repaired
	Retimed bool  `json:"retimed,omitempty"` // the timestamp is the receipt: the sender's was unusable
	Cut     bool  `json:"cut,omitempty"`     // some of its text is missing
	Skewed  bool  `json:"skewed,omitempty"`  // the sender's clock was off
	Ahead   *int  `json:"ahead,omitempty"`   // by how much it was ahead, µs
}

// line is any line but the header. Events have more members, those of Celery.
type line struct {
	Type     string            `json:"type"`
	Umbel    *Received         `json:"umbel,omitempty"`
	At       int64             `json:"at,omitempty"`
	Task     string            `json:"task,omitempty"`
	Reason   state.Reason      `json:"reason,omitempty"`
	Evidence string            `json:"evidence,omitempty"`
	Clock    int64             `json:"clock,omitempty"`
	Workers  []json.RawMessage `json:"workers,omitempty"`
	Events   int               `json:"events,omitempty"`
}

// field is an optional member of a task's event.
type field struct {
	bit   state.Fields
	key   string
	value func(e *state.Event) any
}

func fields() []field {
	return []field{
		{state.FieldName, "name", func(e *state.Event) any { return e.Name }},
		{state.FieldArgs, "args", func(e *state.Event) any { return e.Args }},
		{state.FieldKwargs, "kwargs", func(e *state.Event) any { return e.Kwargs }},
		{state.FieldRootID, "root_id", func(e *state.Event) any { return e.RootID }},
		{state.FieldParentID, "parent_id", func(e *state.Event) any { return e.ParentID }},
		{state.FieldRetries, "retries", func(e *state.Event) any { return e.Retries }},
		{state.FieldETA, "eta", func(e *state.Event) any { return e.ETA }},
		{state.FieldExpires, "expires", func(e *state.Event) any { return e.Expires }},
		{state.FieldQueue, "queue", func(e *state.Event) any { return e.Queue }},
		{state.FieldExchange, "exchange", func(e *state.Event) any { return e.Exchange }},
		{state.FieldRoutingKey, "routing_key", func(e *state.Event) any { return e.RoutingKey }},
		{state.FieldResult, "result", func(e *state.Event) any { return e.Result }},
		{state.FieldRuntime, "runtime", func(e *state.Event) any { return finite(e.Runtime) }},
		{state.FieldException, "exception", func(e *state.Event) any { return e.Exception }},
		{state.FieldTraceback, "traceback", func(e *state.Event) any { return e.Traceback }},
		{state.FieldExpired, "expired", func(e *state.Event) any { return e.Expired }},
		{state.FieldTerminated, "terminated", func(e *state.Event) any { return e.Terminated }},
		{state.FieldSignum, "signum", func(e *state.Event) any { return e.Signum }},
	}
}

// finite returns a number as JSON has it, null for others.
func finite(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f
}

// writeEvent writes an event as Celery's clients do, in a fixed order of members.
func writeEvent(b *bytes.Buffer, known []field, s *state.SavedEvent) {
	e := &s.Event
	b.WriteString(`{"type":`)
	writeValue(b, "task-"+subject(e))
	member := func(key string, value any) {
		b.WriteString(`,"` + key + `":`)
		writeValue(b, value)
	}
	member("uuid", e.ID)
	member("hostname", e.Hostname)
	member("pid", e.PID)
	member("clock", e.Clock)
	b.WriteString(`,"timestamp":` + seconds(e.Micros))
	for _, f := range known {
		switch {
		case e.Present&f.bit == 0:
		case e.Null&f.bit != 0:
			member(f.key, nil)
		default:
			member(f.key, f.value(e))
		}
	}
	r := Received{At: e.ReceivedMicros, Clock: s.Repaired, Retimed: e.Retimed, Cut: s.Cut, Skewed: e.Skewed}
	if e.Has(state.FieldClockOffset) {
		r.Ahead = new(int(e.OffsetMicros))
	}
	member("umbel", r)
	b.WriteString("}\n")
}

func subject(e *state.Event) string {
	switch e.Kind {
	case state.TaskSent:
		return "sent"
	case state.TaskReceived:
		return "received"
	case state.TaskStarted:
		return "started"
	case state.TaskSucceeded:
		return "succeeded"
	case state.TaskFailed:
		return "failed"
	case state.TaskRejected:
		return "rejected"
	case state.TaskRevoked:
		return "revoked"
	case state.TaskRetried:
		return "retried"
	default:
		return strings.ToLower(e.Subject)
	}
}

// seconds returns µs as seconds.
func seconds(micros int64) string {
	if micros < 0 {
		return "-" + seconds(-micros)
	}
	return strconv.FormatInt(micros/1e6, 10) + "." + fmt.Sprintf("%06d", micros%1e6)
}

// writeValue writes what encoding/json cannot refuse.
func writeValue(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	b.Truncate(b.Len() - 1) // the line's end
}

var errLine = errors.New("cannot be read")

// decode reads a line, into end if it is the last one.
func decode(d *celery.Decoder, text []byte) (entry Entry, end *line, err error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return entry, nil, errLine
	}
	switch l.Type {
	case typeEnd:
		return entry, &l, nil
	case typeConclusion:
		entry.Conclusion = &Conclusion{Task: l.Task, Conclusion: state.Conclusion{Reason: l.Reason, Evidence: l.Evidence, At: l.At}}
		if l.Task == "" || l.Reason == "" || l.At <= 0 {
			return entry, nil, errLine
		}
	case typeWorkers:
		entry.Workers = &Workers{At: l.At, Clock: l.Clock}
		for _, w := range l.Workers {
			entry.Workers.Saved = append(entry.Workers.Saved, string(w))
		}
		if l.At <= 0 || l.Clock < 0 || l.Clock > clock.Max {
			return entry, nil, errLine
		}
	default:
		if entry.Event, err = decodeEvent(d, text, l.Umbel); err != nil {
			return entry, nil, err
		}
	}
	return entry, nil, nil
}

// decodeEvent reads the line of an event.
func decodeEvent(d *celery.Decoder, text []byte, r *Received) (*state.SavedEvent, error) {
	if r == nil || r.At <= 0 || r.Clock < 0 || r.Clock > clock.Max {
		return nil, errLine
	}
	var s *state.SavedEvent
	lost, _ := d.Decode(text, r.At, func(e *state.Event) {
		e.Present &^= state.FieldClockOffset
		s = &state.SavedEvent{Event: *e, Repaired: r.Clock, Cut: r.Cut}
	})
	if s == nil || lost > 0 || !s.Event.Kind.Task() {
		return nil, errLine
	}
	e := &s.Event
	e.Retimed, e.Skewed = e.Retimed || r.Retimed, r.Skewed
	if r.Ahead != nil {
		e.Present |= state.FieldClockOffset
		e.OffsetMicros = int64(*r.Ahead)
	}
	return s, nil
}
