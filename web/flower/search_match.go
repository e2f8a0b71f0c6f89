package flower

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// document is what a search looks at in a task, folded.
type document struct {
	name, state, worker, args, kwargs, result, all string

	task *state.Task
}

// newDocument returns that of a task. Without payload, arguments and results are no part of it.
func newDocument(t *state.Task, payload bool) *document {
	folded := func(s *string) string {
		if s == nil {
			return ""
		}
		return fold(*s)
	}
	d := &document{name: folded(t.Name), state: fold(string(t.State)), worker: folded(t.Worker), task: t}
	if payload {
		d.args, d.kwargs, d.result = folded(t.Args), folded(t.Kwargs), folded(lastText(t, result))
	} else {
		d.task = &state.Task{}
	}
	d.all = strings.Join([]string{fold(t.ID), d.name, d.state, d.worker, d.args, d.kwargs, d.result}, "\x00")
	return d
}

// matches reports whether a search finds the document.
func (d *document) matches(e expression) bool {
	switch e := e.(type) {
	case nil:
		return true
	case and:
		return !slices.ContainsFunc(e, func(x expression) bool { return !d.matches(x) })
	case or:
		return slices.ContainsFunc(e, d.matches)
	case term:
		return d.holds(e)
	}
	return false
}

func (d *document) holds(t term) bool {
	value := fold(t.value)
	switch t.field {
	case "state":
		return d.state == value
	case "name":
		return strings.Contains(d.name, value)
	case "worker":
		return strings.Contains(d.worker, value)
	case "args":
		return strings.Contains(d.args, value)
	case "result":
		return strings.Contains(d.result, value)
	case "kwargs":
		if key, item, ok := strings.Cut(value, "="); ok {
			pair := strings.TrimFunc(key, isSpace) + "=" + strings.TrimFunc(item, isSpace)
			return slices.Contains(keywords(d.task.Kwargs), pair)
		}
		return strings.Contains(d.kwargs, value)
	}
	return strings.Contains(d.all, value)
}

// keywords returns the pairs key=value of keyword arguments, folded, none if they are not understood.
func keywords(repr *string) []string {
	if repr == nil {
		return nil
	}
	object, ok := celery.ParseRepr(*repr)
	if !ok {
		return nil
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(object, &values) != nil {
		return nil
	}
	var pairs []string
	for key, value := range values {
		pairs = append(pairs, fold(key)+"="+fold(pythonText(value)))
	}
	return pairs
}

// pythonText is what Python's str returns, but empty for None.
func pythonText(value json.RawMessage) string {
	var s *string
	if json.Unmarshal(value, &s) == nil {
		if s == nil {
			return ""
		}
		return *s
	}
	inTuple := celery.Repr(slices.Concat(json.RawMessage("["), value, json.RawMessage("]"))) // (value,)
	return strings.TrimSuffix(strings.TrimPrefix(inTuple, "("), ",)")
}
