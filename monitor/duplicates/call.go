package duplicates

import (
	"crypto/sha256"
	"strings"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state"
)

// maxRepr is the length of a repr, in bytes, up to which it is parsed. Celery cuts its own at 1,024 characters.
const maxRepr = 8 << 10

// Arguments are the whole arguments of a call: an array and an object.
type Arguments struct{ Args, Kwargs idempotency.Value }

// ArgumentsOf returns the arguments that the events of a task show, false unless only one call could be shown that way:
// they are complete and consist of literals.
func ArgumentsOf(t *state.Task) (Arguments, bool) {
	if t.Args == nil || t.Kwargs == nil || len(*t.Args) > maxRepr || len(*t.Kwargs) > maxRepr {
		return Arguments{}, false
	}
	if !strings.HasPrefix(*t.Kwargs, "{") || !strings.HasPrefix(*t.Args, "(") && !strings.HasPrefix(*t.Args, "[") {
		return Arguments{}, false
	}
	args, ok := celery.ParseRepr(*t.Args)
	if !ok {
		return Arguments{}, false
	}
	kwargs, ok := celery.ParseRepr(*t.Kwargs)
	if !ok {
		return Arguments{}, false
	}
	return ParseArguments(args, kwargs)
}

// Redacted reports whether a part of the arguments that the events of a task show was redacted.
func Redacted(t *state.Task) bool {
	return t.Args != nil && redact.Redacted(*t.Args) || t.Kwargs != nil && redact.Redacted(*t.Kwargs)
}

// ParseArguments parses the arguments of a message, an array and an object in JSON. Empty ones are [] and {}.
func ParseArguments(args, kwargs []byte) (Arguments, bool) {
	var a Arguments
	var err error
	if len(args) > 0 {
		if a.Args, err = idempotency.Parse(args); err != nil {
			return Arguments{}, false
		}
	}
	if len(kwargs) > 0 {
		if a.Kwargs, err = idempotency.Parse(kwargs); err != nil {
			return Arguments{}, false
		}
	}
	return a, true
}

// Call identifies the call of a task with the arguments, but for those that f leaves out; nil leaves out none. It is zero
// if there is no name or the arguments are not an array and an object.
func (a Arguments) Call(name string, f *idempotency.Fingerprinter) state.CallID {
	if name == "" {
		return state.CallID{}
	}
	if f == nil {
		f = new(idempotency.Fingerprinter)
	}
	key, err := f.Call(name, a.Args, a.Kwargs)
	if err != nil {
		return state.CallID{}
	}
	return CallOf(key)
}

// CallOf identifies the call with a fingerprint of package idempotency.
func CallOf(fingerprint string) (c state.CallID) {
	digest := sha256.Sum256([]byte(fingerprint))
	copy(c[:], digest[:])
	return c
}
