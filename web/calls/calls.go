// Package calls writes the arguments of tasks on one line, with secrets masked, for pages and the API alike.
package calls

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// MaxLength bounds the result for one call, and what is read of each of its reprs, in bytes.
const MaxLength = 2_000

// OfGroups returns the call of the newest task of each group.
func OfGroups(r *redact.Redactor, groups []view.DuplicateGroup) []string {
	tasks := make([]state.Task, len(groups))
	for i, g := range groups {
		if len(g.Tasks) > 0 {
			tasks[i] = g.Tasks[0]
		}
	}
	return Of(r, tasks)
}

// Of returns the call of each task: the positional arguments, then the named, as JSON where their reprs can be read and
// as Celery sent them where they cannot. It is empty for a task whose arguments are unknown.
func Of(r *redact.Redactor, tasks []state.Task) []string {
	list, calls := make([]string, len(tasks)), make([]call, len(tasks))
	for i, t := range tasks {
		calls[i] = call{valueOf(t.Args), valueOf(t.Kwargs)}
	}
	for i, c := range masked(r, calls) {
		list[i] = truncate.Text(c.text(), MaxLength)
	}
	return list
}

// maxSample bounds the arguments of a sample, in bytes.
const maxSample = 500

// OfSamples returns samples of a preview with secrets masked, and cut after that: what is cut may not show what it is.
func OfSamples(r *redact.Redactor, samples []command.DuplicateRuleSample) []command.DuplicateRuleSample {
	calls := make([]call, len(samples))
	for i, s := range samples {
		calls[i] = call{jsonOf(s.Args), jsonOf(s.Kwargs)}
	}
	shown := masked(r, calls)
	list := slices.Clone(samples)
	for i := range list {
		list[i].Args, list[i].Kwargs = truncate.Text(plain(shown[i].Args), maxSample), truncate.Text(plain(shown[i].Kwargs), maxSample)
	}
	return list
}

// jsonOf returns JSON as it is, and what is cut as a JSON string.
func jsonOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		return nil
	}
	return quoted
}

// masked returns calls without secrets, empty ones if that fails. It masks them at once, since each masking has a price of
// its own.
func masked(r *redact.Redactor, calls []call) []call {
	all, err := json.Marshal(calls)
	if err != nil {
		return make([]call, len(calls))
	}
	var shown []call
	if json.Unmarshal(r.Settings(all), &shown) != nil || len(shown) != len(calls) {
		return make([]call, len(calls))
	}
	return shown
}

// call is the arguments of a task as JSON. A repr that cannot be read is a JSON string.
type call struct {
	Args   json.RawMessage `json:"args,omitempty"`
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
}

func valueOf(repr *string) json.RawMessage {
	if repr == nil {
		return nil
	}
	if len(*repr) <= MaxLength {
		if parsed, ok := celery.ParseRepr(*repr); ok {
			return parsed
		}
	}
	text, err := json.Marshal(truncate.Text(*repr, MaxLength))
	if err != nil {
		return nil
	}
	return text
}

func (c call) text() string {
	args, kwargs := plain(c.Args), plain(c.Kwargs)
	switch {
	case kwargs == "" || kwargs == "{}":
		return args
	case args == "" || args == "[]" || args == "()":
		return kwargs
	default:
		return args + " " + kwargs
	}
}

// plain returns what a JSON string says, and other JSON as it is.
func plain(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}
