package state

import (
	"encoding/hex"
	"slices"
	"strings"
)

// CallID identifies a call: the name of a task with its arguments, but for those that do not count. The zero CallID is
// of tasks whose arguments are not known as a whole.
type CallID [16]byte

// Known reports whether the call is known.
func (c CallID) Known() bool { return c != CallID{} }

// String returns 32 hexadecimal digits.
func (c CallID) String() string { return hex.EncodeToString(c[:]) }

// ParseCallID parses what String returns, and reports whether s is that.
func ParseCallID(s string) (CallID, bool) {
	var c CallID
	if len(s) != hex.EncodedLen(len(c)) {
		return CallID{}, false
	}
	if _, err := hex.Decode(c[:], []byte(s)); err != nil || c.String() != s || !c.Known() {
		return CallID{}, false
	}
	return c, true
}

// Duplicates is a set of ways in which a task repeats work.
type Duplicates uint8

// The ways in which a task repeats work. The first three show in its own events, Skipped in its result, the others
// beside tasks of the same call.
const (
	Redelivery  Duplicates = 1 << iota // an attempt was received again after it had begun
	Resend                             // an attempt was sent more than once
	Retrial                            // it was retried
	Overlapping                        // it ran while another task of the same call did
	Rerun                              // it ran after another task of the same call had succeeded
	Skipped                            // its result says that a lock has skipped it

	// AllDuplicates is all of them.
	AllDuplicates Duplicates = 1<<iota - 1
	// OwnDuplicates is those that a task shows by itself, whatever other tasks there are.
	OwnDuplicates = Redelivery | Resend | Retrial | Skipped
)

// Sent is one task-sent event of a task.
type Sent struct {
	At      int64  // µs since 1970 UTC by the sender's clock
	Client  string // node name of the sender
	Attempt int64  // 0 for the first
}

// repeatedSends returns the task-sent events of the attempts that were sent more than once, by time, nil if there
// are none. A task that was replaced is sent again under another name: that is no repetition.
func (c *Cluster) repeatedSends(records []*record) (sends []Sent) {
	for i, e := range records {
		if e.kind != TaskSent {
			continue
		}
		again := func(o *record) bool {
			return o != e && o.kind == TaskSent && o.n == e.n && c.routes.key(o.route).name == c.routes.key(e.route).name
		}
		if slices.ContainsFunc(records[:i], again) || slices.ContainsFunc(records[i+1:], again) {
			sends = append(sends, Sent{At: e.micros, Client: c.processes.key(e.process).Hostname, Attempt: int64(e.n)})
		}
	}
	slices.SortStableFunc(sends, func(a, b Sent) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return sends
}

// OwnDuplicates returns the ways in which a task repeats work that its own events and its result show.
func (t *Task) OwnDuplicates() (d Duplicates) {
	if t.Redelivered {
		d |= Redelivery
	}
	if len(t.Sends) > 0 {
		d |= Resend
	}
	if t.State == Retry || t.RetriedAt != 0 || t.Retries != nil && *t.Retries > 0 ||
		slices.ContainsFunc(t.Executions, func(e Execution) bool { return e.RetriedAt != 0 }) {
		d |= Retrial
	}
	if _, skipped := SkipReason(t.Result); skipped && t.State == Success {
		d |= Skipped
	}
	return d
}

// maxSkip is the length of a skip document up to which it is recognized, in bytes.
const maxSkip = 1024

// SkipReason returns the reason in the result of a task that was skipped because of a lock, as a repr of
// {"status": "skipped", "reason": "already_completed" or "concurrent_execution"}, and false for any other result: tasks
// report for reasons of their own that they skipped something.
func SkipReason(result *string) (reason string, ok bool) {
	if result == nil || len(*result) > maxSkip {
		return "", false
	}
	rest, open := strings.CutPrefix(*result, "{")
	rest, closed := strings.CutSuffix(rest, "}")
	if !open || !closed {
		return "", false
	}
	skipped := false
	for n := 0; rest != ""; n++ {
		if n > 0 {
			if rest, ok = strings.CutPrefix(rest, ", "); !ok {
				return "", false
			}
		}
		var key, value string
		if key, rest, ok = reprText(rest); !ok {
			return "", false
		}
		if rest, ok = strings.CutPrefix(rest, ": "); !ok {
			return "", false
		}
		if strings.HasPrefix(rest, "'") {
			if value, rest, ok = reprText(rest); !ok {
				return "", false
			}
		} else { // a number, None
			end := strings.IndexAny(rest, ",'([{")
			if end < 0 {
				end = len(rest)
			}
			value, rest = "", rest[end:]
		}
		switch key {
		case "status":
			skipped = value == "skipped"
		case "reason":
			reason = value
		}
	}
	if !skipped || reason != "already_completed" && reason != "concurrent_execution" {
		return "", false
	}
	return reason, true
}

// reprText reads a string without backslashes from the front of a repr.
func reprText(s string) (text, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "'")
	if !ok {
		return "", "", false
	}
	text, rest, ok = strings.Cut(s, "'")
	return text, rest, ok && !strings.Contains(text, `\`)
}
