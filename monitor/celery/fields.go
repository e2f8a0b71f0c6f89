package celery

import (
	"math"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// member is the value of a key. Its methods return it in the type of a field: zero if it is null, and zero with
// mistyped set if it is of another type.
type member struct {
	raw      string
	decoded  string // of a string
	decimal  decimal
	isString bool
	isNull   bool
	mistyped bool
}

// member reads the value of a key into m, which is zero. It returns false if that is malformed.
func (s *scanner) member(m *member) bool {
	first := s.next()
	start := s.at
	var err error
	switch {
	case first == '"':
		m.isString = true
		m.decoded, err = s.str()
	case first == 'n' && strings.HasPrefix(s.text[start:], "null"):
		m.isNull = true
		s.at += len("null")
	case isDigit(first) || first == '-':
		if m.decimal = s.decimal(); !m.decimal.known {
			_, err = s.raw()
		}
	default:
		_, err = s.raw()
	}
	m.raw = s.text[start:s.at]
	return err == nil
}

// text returns a string.
func (m *member) text() string {
	m.mistyped = !m.isString && !m.isNull
	return m.decoded
}

// repr returns a string, or the JSON of any other value.
func (m *member) repr() string {
	if m.isString || m.isNull {
		return m.decoded
	}
	return m.raw
}

// number returns the text of any value but a string.
func (m *member) number() string {
	if m.mistyped = m.isString; m.mistyped || m.isNull {
		return ""
	}
	return m.raw
}

// float returns a number, which may be NaN or infinite.
func (m *member) float() float64 {
	if f, ok := m.decimal.float(); ok {
		return f
	}
	text := m.number()
	if text == "" {
		return 0
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		m.mistyped = true
		return 0
	}
	return f
}

// integer returns an integer, or a float truncated as Python's int() would.
func (m *member) integer() int64 {
	if n, ok := m.decimal.integer(); ok {
		return n
	}
	text := m.number()
	if text == "" {
		return 0
	}
	n, ok := integer(text)
	m.mistyped = !ok
	return n
}

// micros returns a time of seconds in µs, 0 if it is out of all range.
func (m *member) micros() int64 {
	if n, ok := m.decimal.micros(); ok {
		return n
	}
	return micros(m.number())
}

// clock returns a Lamport clock; anything but a valid one is 0.
func (m *member) clock() int64 {
	if n, ok := m.decimal.integer(); ok && clock.Valid(n) {
		return n
	}
	return validClock(m.number())
}

// truth returns a boolean.
func (m *member) truth() bool {
	m.mistyped = m.raw != "true" && m.raw != "false" && !m.isNull
	return m.raw == "true"
}

// load returns the three numbers of [0.71, 0.65, 0.3].
func (m *member) load() (load [3]float64) {
	if m.isNull {
		return load
	}
	parts := strings.Split(strings.Trim(m.raw, "[] \t\r\n"), ",")
	if m.mistyped = len(parts) != len(load) || m.raw[0] != '['; m.mistyped {
		return load
	}
	for i, part := range parts {
		f, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			m.mistyped = true
			return [3]float64{}
		}
		load[i] = f
	}
	return load
}

// signal returns a signal's number: 15, or, of a task whose process it has ended, "-15".
func (m *member) signal() int64 {
	n, err := strconv.ParseInt(m.repr(), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, -n)
}

// setField sets the field of a key and returns its bit, which some have none of. Keys are case-sensitive, as Python's
// are.
func (m *member) setField(e *state.Event, key string) (bit state.Fields, known bool) {
	switch key {
	case "type":
		setType(e, m.text())
	case "hostname":
		e.Hostname = m.text()
	case "uuid":
		e.ID = m.text()
	case "utcoffset", "local_received":
		m.number()
	case "timestamp":
		bit, e.Micros = state.FieldTimestamp, m.micros()
	case "clock":
		bit, e.Clock = state.FieldClock, m.clock()
	case "pid":
		bit, e.PID = state.FieldPID, m.integer()
	default:
		if bit = m.setTaskField(e, key); bit == 0 {
			bit = m.setWorkerField(e, key)
		}
		return bit, bit != 0
	}
	return bit, true
}

// setTaskField sets a field of task events. Its bit is 0 if it has no such key.
func (m *member) setTaskField(e *state.Event, key string) (bit state.Fields) {
	switch key {
	case "name":
		bit, e.Name = state.FieldName, m.text()
	case "args":
		bit, e.Args = state.FieldArgs, m.repr()
	case "kwargs":
		bit, e.Kwargs = state.FieldKwargs, m.repr()
	case "root_id":
		bit, e.RootID = state.FieldRootID, m.text()
	case "parent_id":
		bit, e.ParentID = state.FieldParentID, m.text()
	case "eta":
		bit, e.ETA = state.FieldETA, m.text()
	case "expires":
		bit, e.Expires = state.FieldExpires, m.repr()
	case "queue":
		bit, e.Queue = state.FieldQueue, m.text()
	case "exchange":
		bit, e.Exchange = state.FieldExchange, m.text()
	case "routing_key":
		bit, e.RoutingKey = state.FieldRoutingKey, m.text()
	case "result":
		bit, e.Result = state.FieldResult, m.repr()
	case "exception":
		bit, e.Exception = state.FieldException, m.repr()
	case "traceback":
		bit, e.Traceback = state.FieldTraceback, m.repr()
	case "retries":
		bit, e.Retries = state.FieldRetries, m.integer()
	case "runtime":
		bit, e.Runtime = state.FieldRuntime, m.float()
	case "expired":
		bit, e.Expired = state.FieldExpired, m.truth()
	case "terminated":
		bit, e.Terminated = state.FieldTerminated, m.truth()
	case "signum":
		bit, e.Signum = state.FieldSignum, m.signal()
	}
	return bit
}

// setWorkerField sets a field of worker events. Its bit is 0 if it has no such key.
func (m *member) setWorkerField(e *state.Event, key string) (bit state.Fields) {
	switch key {
	case "freq":
		bit, e.Freq = state.FieldFreq, m.float()
		e.FreqIsInt = !strings.ContainsAny(m.raw, ".eEN")
	case "active":
		bit, e.Active = state.FieldActive, m.integer()
	case "processed":
		bit, e.Processed = state.FieldProcessed, m.integer()
	case "loadavg":
		bit, e.Load = state.FieldLoad, m.load()
	case "sw_ident":
		bit, e.Software = state.FieldSoftware, m.text()
	case "sw_ver":
		bit, e.Version = state.FieldVersion, m.text()
	case "sw_sys":
		bit, e.System = state.FieldSystem, m.text()
	}
	return bit
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

// micros converts a float of seconds to µs, 0 if it is out of all range.
func micros(raw string) int64 {
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1e11 {
		return 0
	}
	return int64(math.Round(f * 1e6))
}

// integer parses a number as an integer, truncating a float.
func integer(raw string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// validClock parses a Lamport clock; anything but a valid one is 0.
func validClock(raw string) int64 {
	if n, ok := integer(raw); ok && clock.Valid(n) {
		return n
	}
	return 0
}
