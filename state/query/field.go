package query

import (
	"math"
	"slices"

	"github.com/umbelhq/umbel/state"
)

// field describes a Field.
type field struct {
	name    string
	kind    Type
	aliases []string
	help    string // what it is, in a few words
}

// fields describes all that may stand before a colon.
var fields = [...]field{ //nolint:gochecknoglobals // a constant table
	ID:         {"id", Word, []string{"uuid"}, "task id"},
	Name:       {"name", Word, nil, "task name"},
	Worker:     {"worker", Word, []string{"host", "hostname"}, "node of the newest execution"},
	Queue:      {"queue", Word, nil, "queue it was sent to"},
	Client:     {"client", Word, nil, "node that sent it"},
	Exchange:   {"exchange", Word, nil, "exchange it was sent to"},
	RoutingKey: {"routing_key", Word, []string{"routing"}, "routing key it was sent with"},
	Root:       {"root", Word, []string{"root_id", "workflow"}, "first task of its workflow, itself included"},
	Parent:     {"parent", Word, []string{"parent_id"}, "task that sent it"},
	Failure:    {"failure", Word, nil, "group of failures that it is in"},
	State:      {"state", Set, []string{"status"}, "state, in any case"},
	Is:         {"is", Set, nil, "what is special about it"},
	Dup:        {"dup", Set, []string{"duplicate"}, "how it repeats work"},
	Outbox:     {"outbox", Set, nil, "how far it has come in an application's outbox"},
	Cluster:    {"cluster", Set, nil, "cluster that it is in"},
	Before:     {"before", Set, nil, "what may have led to a task"},
	After:      {"after", Set, nil, "what a task may have led to"},
	Concurrent: {"concurrent", Set, nil, "what nothing orders before or after a task"},
	Cone:       {"cone", Set, nil, "a task, and all before and after it"},
	Args:       {"args", Text, nil, "text in its positional arguments"},
	Kwargs:     {"kwargs", Text, nil, "text in its keyword arguments"},
	Result:     {"result", Text, nil, "text in its result"},
	Exception:  {"exc", Text, []string{"exception", "error"}, "text in its exception"},
	Traceback:  {"trace", Text, []string{"traceback"}, "text in its traceback"},
	Sent:       {"sent", Time, []string{"sent_at"}, "when it was sent"},
	Received:   {"received", Time, []string{"received_at"}, "when a worker received it"},
	Started:    {"started", Time, []string{"started_at"}, "when it was started"},
	Finished:   {"finished", Time, []string{"finished_at"}, "when it came to its end"},
	Updated:    {"updated", Time, []string{"updated_at"}, "time of its newest event"},
	ETA:        {"eta", Time, nil, "not to be started before"},
	Expires:    {"expires", Time, nil, "not to be started after"},
	Wait:       {"wait", Duration, []string{"wait_seconds"}, "time until it was started"},
	Run:        {"run", Duration, []string{"runtime", "runtime_seconds"}, "time that it ran"},
	Retries:    {"retries", Number, nil, "times that it was retried"},
	Clock:      {"clock", Number, nil, "logical time of its newest event"},
}

// Fields returns all fields but Any, in their order.
func Fields() []Field {
	all := make([]Field, 0, len(fields))
	for f := ID; int(f) < len(fields); f++ {
		all = append(all, f)
	}
	return all
}

// FieldNamed returns the field of a name or of another name for it, false if there is none.
func FieldNamed(name string) (Field, bool) {
	for _, f := range Fields() {
		if fields[f].name == name || slices.Contains(fields[f].aliases, name) {
			return f, true
		}
	}
	return 0, false
}

// Causal reports whether the field has ids of tasks to which a task is causally related.
func (f Field) Causal() bool { return f >= Before && f <= Cone }

// String returns the name of the field, which is empty for Any.
func (f Field) String() string {
	if int(f) >= len(fields) {
		return ""
	}
	return fields[f].name
}

// Type returns the type of the field's values. Any is a Text.
func (f Field) Type() Type {
	if f < ID || int(f) >= len(fields) {
		return Text
	}
	return fields[f].kind
}

// Help says in a few words what the field is.
func (f Field) Help() string {
	if int(f) >= len(fields) {
		return ""
	}
	return fields[f].help
}

// Int returns what a task has in a field of type Time, Duration or Number, false if that is not known.
func (f Field) Int(t *state.Task) (int64, bool) {
	switch f {
	case Sent:
		return known(t.SentAt)
	case Received:
		return known(t.ReceivedAt)
	case Started:
		return known(t.StartedAt)
	case Finished:
		return finished(t)
	case Updated:
		return known(t.UpdatedAt)
	case ETA:
		return isoTime(t.ETA)
	case Expires:
		return isoTime(t.Expires)
	case Wait:
		return micros(t.WaitSeconds)
	case Run:
		return micros(t.RuntimeSeconds)
	case Retries:
		if t.Retries == nil {
			return 0, false
		}
		return *t.Retries, true
	case Clock:
		return known(t.Stamp.Clock)
	default:
		return 0, false
	}
}

func known(n int64) (int64, bool) { return n, n != 0 }

// finished is when the task came to the state that it ended in.
func finished(t *state.Task) (int64, bool) {
	switch t.State {
	case state.Success:
		return known(t.SucceededAt)
	case state.Failure:
		return known(t.FailedAt)
	case state.Revoked:
		return known(t.RevokedAt)
	case state.Rejected:
		return known(t.RejectedAt)
	default:
		return 0, false
	}
}

// micros returns seconds as µs, false if they are not known or beyond what an int64 holds.
func micros(seconds *float64) (int64, bool) {
	if seconds == nil {
		return 0, false
	}
	n := math.Round(*seconds * 1e6)
	if math.IsNaN(n) || math.Abs(n) >= math.MaxInt64 {
		return 0, false
	}
	return int64(n), true
}

// isoTime reads a time as Celery sends it.
func isoTime(s *string) (int64, bool) {
	if s == nil {
		return 0, false
	}
	return state.ParseTime(*s)
}

// IsValues returns all values of Is, by name.
func IsValues() []string {
	return []string{IsActive, IsDismissed, IsFinished, IsLost, IsOrphaned, IsRedelivered, IsRetried, IsTruncated}
}

// Marked reports whether one of the Is values holds for a task.
func Marked(t *state.Task, value string) bool {
	switch value {
	case IsActive:
		return !t.State.Final()
	case IsFinished:
		return t.State.Final()
	case IsRetried:
		return t.State == state.Retry || t.RetriedAt != 0 || t.Retries != nil && *t.Retries > 0 ||
			slices.ContainsFunc(t.Executions, func(e state.Execution) bool { return e.RetriedAt != 0 })
	case IsRedelivered:
		return t.Redelivered
	case IsLost:
		return t.Lost != nil
	case IsDismissed:
		return t.Dismissed != nil
	case IsOrphaned:
		return t.Orphaned
	case IsTruncated:
		return t.Truncated
	default:
		return false
	}
}

// DupValues returns the names among the values of Dup.
func DupValues() []string {
	return []string{DupAny, DupOverlapping, DupRedelivery, DupRerun, DupResend, DupRetry, DupSkipped}
}

// DupMarks returns in which ways tasks repeat work that a name among the values of Dup finds, 0 if it is none.
func DupMarks(value string) state.Duplicates {
	switch value {
	case DupAny:
		return state.AllDuplicates &^ state.Retrial
	case DupRedelivery:
		return state.Redelivery
	case DupResend:
		return state.Resend
	case DupRetry:
		return state.Retrial
	case DupOverlapping:
		return state.Overlapping
	case DupRerun:
		return state.Rerun
	case DupSkipped:
		return state.Skipped
	default:
		return 0
	}
}

// duplicates reports whether a value of Dup holds for a task.
func duplicates(t *state.Task, value string) bool {
	if marks := DupMarks(value); marks != 0 {
		return (t.OwnDuplicates()|t.Duplicates)&marks != 0
	}
	call, ok := state.ParseCallID(value)
	return ok && t.CallID == call
}
