package celery

import (
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// shape is the JSON type that a field must have.
type shape uint8

const (
	text   shape = iota // a string
	repr                // a string; any other value is shown as its JSON
	number              // a number
	whole               // an integer, or a float to truncate
	load                // an array of three numbers
	truth               // true or false
)

// field is a key that Umbel knows.
type field struct {
	bit  state.Fields
	kind shape
	set  func(e *state.Event, v string) // text and repr; "" clears
	num  func(e *state.Event, raw string) bool
	int  func(e *state.Event) *int64
	is   func(e *state.Event) *bool
}

// read sets the field from a value that is no plain string. It returns false if the type is wrong.
func (f *field) read(e *state.Event, raw string, first byte) bool {
	switch f.kind {
	case repr:
		f.set(e, raw)
		return true
	case number:
		return first != '"' && f.num(e, raw)
	case whole:
		n, ok := integer(raw)
		*f.int(e) = n
		return ok && first != '"'
	case load:
		return readLoad(e, raw)
	case truth:
		*f.is(e) = raw == "true"
		return raw == "true" || raw == "false"
	case text:
	}
	return false
}

// clear undoes an earlier value of a repeated key: the last one counts.
func (f *field) clear(e *state.Event) {
	switch {
	case f.set != nil:
		f.set(e, "")
	case f.num != nil:
		f.num(e, "0")
	case f.int != nil:
		*f.int(e) = 0
	case f.is != nil:
		*f.is(e) = false
	}
}

// readLoad reads [0.71, 0.65, 0.3].
func readLoad(e *state.Event, raw string) bool {
	parts := strings.Split(strings.Trim(raw, "[] \t\r\n"), ",")
	if len(parts) != len(e.Load) || raw[0] != '[' {
		return false
	}
	for i, p := range parts {
		f, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil {
			return false
		}
		e.Load[i] = f
	}
	return true
}

// fieldOf finds a key. Keys are case-sensitive, as Python's are.
func fieldOf(key string) (f field, known bool) {
	switch key {
	case "type":
		return field{kind: text, set: setType}, true
	case "hostname":
		return field{kind: text, set: func(e *state.Event, v string) { e.Hostname = v }}, true
	case "uuid":
		return field{kind: text, set: func(e *state.Event, v string) { e.ID = v }}, true
	case "timestamp":
		return field{bit: state.FieldTimestamp, kind: number, num: func(e *state.Event, raw string) bool {
			e.Micros = micros(raw)
			return true
		}}, true
	case "clock":
		return field{bit: state.FieldClock, kind: number, num: func(e *state.Event, raw string) bool {
			e.Clock = rawClock(raw)
			return true
		}}, true
	case "pid":
		return field{bit: state.FieldPID, kind: whole, int: func(e *state.Event) *int64 { return &e.PID }}, true
	case "utcoffset", "local_received":
		return field{kind: number, num: func(*state.Event, string) bool { return true }}, true
	}
	if f, known = taskField(key); !known {
		f, known = workerField(key)
	}
	return f, known
}

func setType(e *state.Event, v string) {
	group, subject, dash := strings.Cut(v, "-")
	e.Kind, e.Subject = state.Other, subject
	switch {
	case v == "" || (group == "task" || group == "worker") && (!dash || subject == ""):
		e.Kind = 0
	case group == "task":
		e.Kind = taskKind(subject)
	case group == "worker":
		e.Kind = workerKind(subject)
	}
}

func taskKind(subject string) state.Kind {
	switch subject {
	case "sent":
		return state.TaskSent
	case "received":
		return state.TaskReceived
	case "started":
		return state.TaskStarted
	case "succeeded":
		return state.TaskSucceeded
	case "failed":
		return state.TaskFailed
	case "rejected":
		return state.TaskRejected
	case "revoked":
		return state.TaskRevoked
	case "retried":
		return state.TaskRetried
	}
	return state.TaskCustom
}

func workerKind(subject string) state.Kind {
	switch subject {
	case "online":
		return state.WorkerOnline
	case "heartbeat":
		return state.WorkerHeartbeat
	case "offline":
		return state.WorkerOffline
	}
	return state.WorkerOther
}

// taskField finds a key of task events.
func taskField(key string) (f field, known bool) {
	f = field{kind: text}
	switch key {
	case "name":
		f.bit, f.set = state.FieldName, func(e *state.Event, v string) { e.Name = v }
	case "args":
		f.bit, f.kind, f.set = state.FieldArgs, repr, func(e *state.Event, v string) { e.Args = v }
	case "kwargs":
		f.bit, f.kind, f.set = state.FieldKwargs, repr, func(e *state.Event, v string) { e.Kwargs = v }
	case "root_id":
		f.bit, f.set = state.FieldRootID, func(e *state.Event, v string) { e.RootID = v }
	case "parent_id":
		f.bit, f.set = state.FieldParentID, func(e *state.Event, v string) { e.ParentID = v }
	case "eta":
		f.bit, f.set = state.FieldETA, func(e *state.Event, v string) { e.ETA = v }
	case "expires":
		f.bit, f.kind, f.set = state.FieldExpires, repr, func(e *state.Event, v string) { e.Expires = v }
	case "queue":
		f.bit, f.set = state.FieldQueue, func(e *state.Event, v string) { e.Queue = v }
	case "exchange":
		f.bit, f.set = state.FieldExchange, func(e *state.Event, v string) { e.Exchange = v }
	case "routing_key":
		f.bit, f.set = state.FieldRoutingKey, func(e *state.Event, v string) { e.RoutingKey = v }
	case "result":
		f.bit, f.kind, f.set = state.FieldResult, repr, func(e *state.Event, v string) { e.Result = v }
	case "exception":
		f.bit, f.kind, f.set = state.FieldException, repr, func(e *state.Event, v string) { e.Exception = v }
	case "traceback":
		f.bit, f.kind, f.set = state.FieldTraceback, repr, func(e *state.Event, v string) { e.Traceback = v }
	case "retries":
		f.bit, f.kind, f.int = state.FieldRetries, whole, func(e *state.Event) *int64 { return &e.Retries }
	case "runtime":
		f.bit, f.kind, f.num = state.FieldRuntime, number, func(e *state.Event, raw string) bool { return float(&e.Runtime, raw) }
	case "expired":
		f.bit, f.kind, f.is = state.FieldExpired, truth, func(e *state.Event) *bool { return &e.Expired }
	case "terminated":
		f.bit, f.kind, f.is = state.FieldTerminated, truth, func(e *state.Event) *bool { return &e.Terminated }
	case "signum":
		f.bit, f.kind, f.set = state.FieldSignum, repr, setSignum
	default:
		return f, false
	}
	return f, true
}

// setSignum reads a signal: 15, or, of a task whose process it has ended, "-15".
func setSignum(e *state.Event, v string) {
	n, err := strconv.ParseInt(v, 10, 64)
	if e.Signum = n; n < 0 {
		e.Signum = -n
	}
	if err != nil {
		e.Signum = 0
	}
}

// workerField finds a key of worker events.
func workerField(key string) (f field, known bool) {
	f = field{kind: number}
	switch key {
	case "freq":
		f.bit, f.num = state.FieldFreq, func(e *state.Event, raw string) bool {
			e.FreqIsInt = !strings.ContainsAny(raw, ".eEN")
			return float(&e.Freq, raw)
		}
	case "active":
		f.bit, f.kind, f.int = state.FieldActive, whole, func(e *state.Event) *int64 { return &e.Active }
	case "processed":
		f.bit, f.kind, f.int = state.FieldProcessed, whole, func(e *state.Event) *int64 { return &e.Processed }
	case "loadavg":
		f.bit, f.kind = state.FieldLoad, load
	case "sw_ident":
		f.bit, f.kind, f.set = state.FieldSoftware, text, func(e *state.Event, v string) { e.Software = v }
	case "sw_ver":
		f.bit, f.kind, f.set = state.FieldVersion, text, func(e *state.Event, v string) { e.Version = v }
	case "sw_sys":
		f.bit, f.kind, f.set = state.FieldSystem, text, func(e *state.Event, v string) { e.System = v }
	default:
		return f, false
	}
	return f, true
}

// float reads a JSON number, NaN and the infinities included.
func float(dst *float64, raw string) bool {
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return false
	}
	*dst = f
	return true
}
