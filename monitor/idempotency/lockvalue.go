package idempotency

import (
	"strings"
	"unicode/utf8"
)

// KeyPrefix begins the key of a lock; the fingerprint follows.
const KeyPrefix = "lock:"

// LockState says what became of the call that a lock is of.
type LockState string

// States of a lock. Without a key the call has not run, has failed, or was completed long ago.
const (
	Processing LockState = "processing"
	Completed  LockState = "completed"
)

// LockValue is what the key of a lock holds: a plain value, which is its state alone, or a fenced one, which also says
// whose it is:
//
//	processing
//	processing:0123456789abcdef0123456789abcdef
//	completed:0123456789abcdef0123456789abcdef:7b0c6a3e-3cf8-4f8c-8d8f-2e1d8c1b0a11
type LockValue struct {
	State  LockState
	Token  string // 32 hexadecimal digits, different for each time a lock was taken; empty in a plain value
	TaskID string // of the task that holds the lock or completed the call; empty if it was not given
}

// maxTaskID bounds the id of a task in a value, in bytes.
const maxTaskID = 512

// ParseLockValue parses the value of a lock. It is false for any other text.
func ParseLockValue(s string) (LockValue, bool) {
	state, rest, fenced := strings.Cut(s, ":")
	v := LockValue{State: LockState(state)}
	if v.State != Processing && v.State != Completed {
		return LockValue{}, false
	}
	if !fenced {
		return v, true
	}
	var named bool
	v.Token, v.TaskID, named = strings.Cut(rest, ":")
	if !isToken(v.Token) || named && !isTaskID(v.TaskID) {
		return LockValue{}, false
	}
	return v, true
}

// String returns the value as it is stored.
func (v LockValue) String() string {
	s := string(v.State)
	if v.Token != "" {
		s += ":" + v.Token
	}
	if v.TaskID != "" {
		s += ":" + v.TaskID
	}
	return s
}

func isToken(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if !strings.Contains(hexDigits, s[i:i+1]) {
			return false
		}
	}
	return true
}

// isTaskID reports whether s can be the id of a task in a value.
func isTaskID(s string) bool { return s != "" && len(s) <= maxTaskID && utf8.ValidString(s) }
