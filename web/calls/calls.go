// Package calls writes the arguments of tasks on one line, with secrets masked, for pages and the API alike.
package calls

import (
	"encoding/json"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// MaxLength bounds the result for one call, and what is read of each of its reprs, in bytes.
const MaxLength = 2_000

// OfGroups returns the call of each group, empty where the arguments are not known as a whole.
func OfGroups(groups []view.DuplicateGroup) []string {
	tasks := make([]state.Task, len(groups))
	for i, g := range groups {
		if g.Key.Call.Known() && len(g.Tasks) > 0 {
			tasks[i] = g.Tasks[0]
		}
	}
	return Of(tasks)
}

// Of returns the call of each task: the positional arguments, then the named, as JSON where their reprs can be read and
// as Celery sent them where they cannot. It is empty for a task whose arguments are unknown.
func Of(tasks []state.Task) []string {
	list, calls := make([]string, len(tasks)), make([]call, len(tasks))
	for i, t := range tasks {
		calls[i] = call{valueOf(t.Args), valueOf(t.Kwargs)}
	}
	all, err := json.Marshal(calls) // masked at once, since each masking has a price of its own
	if err != nil {
		return list
	}
	var masked []call
	if json.Unmarshal(remote.Mask(all), &masked) != nil || len(masked) != len(list) {
		return list
	}
	for i, c := range masked {
		list[i] = truncate.Text(c.text(), MaxLength)
	}
	return list
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
