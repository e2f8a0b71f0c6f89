package locks

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"strings"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/state"
)

// plainOrFenced reads a value of the idempotency scheme.
func plainOrFenced(value string) content {
	v, ok := idempotency.ParseLockValue(value)
	if !ok {
		return content{state: UnknownState}
	}
	return content{state: State(v.State), task: v.TaskID}
}

// call is what a task was called with, as far as events tell it completely.
type call struct {
	fingerprint string   // of its keyword arguments, empty if they are not known
	whole       string   // of all its arguments, empty if there are none but keyword arguments, or they are not known
	once        []string // its keyword arguments as celery-once spells them
	onceKnown   bool     // whether once is known; positional arguments have no names in events
}

// callOf returns the call of a task.
func callOf(t *state.Task) call {
	if t.Kwargs == nil {
		return call{}
	}
	kwargs, ok := celery.ParseRepr(*t.Kwargs)
	if !ok {
		return call{}
	}
	c := call{}
	c.fingerprint, c.whole = fingerprints(t.Args, kwargs)
	d := json.NewDecoder(bytes.NewReader(kwargs))
	d.UseNumber()
	var values map[string]any
	if noArguments(t.Args) && d.Decode(&values) == nil {
		c.once, c.onceKnown = onceParts(values)
	}
	return c
}

// fingerprints returns the digests of keyword arguments, as the scheme computes them, and of a whole call.
func fingerprints(args *string, kwargs json.RawMessage) (named, whole string) {
	v, err := idempotency.Parse(kwargs)
	if err != nil {
		return "", ""
	}
	named = digest(idempotency.Fingerprint("", v))
	if args == nil || noArguments(args) {
		return named, ""
	}
	text, ok := celery.ParseRepr(*args)
	if !ok {
		return named, ""
	}
	list, err := idempotency.Parse(text)
	if err != nil {
		return named, ""
	}
	return named, digest(idempotency.Call("", list, v))
}

// digest is the end of a fingerprint, empty if it could not be made.
func digest(fingerprint string, err error) string {
	if err != nil {
		return ""
	}
	return fingerprint[strings.LastIndexByte(fingerprint, ':')+1:]
}

func noArguments(args *string) bool {
	return args != nil && (*args == "()" || *args == "[]" || *args == "")
}

// pythonText returns Python's str of a value, false if it is not a plain one.
func pythonText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "None", true
	case bool:
		if v {
			return "True", true
		}
		return "False", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// matches reports whether a lock is that of a call of a task of its name.
func (id identity) matches(c call) bool {
	switch id.kind {
	case Idempotent:
		return id.fingerprint == c.fingerprint || id.fingerprint == c.whole
	case Once:
		return c.onceKnown && spells(id.arguments, c.once)
	default:
		return false
	}
}

// skipMark is in the result of a run that found the lock taken.
const skipMark = "'status': 'skipped'"

// skipped reports whether a result is that of a run that found the lock taken.
func skipped(result *string) bool { return result != nil && strings.Contains(*result, skipMark) }
