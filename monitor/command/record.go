package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/redact"
)

const (
	maxRecorded = 16 << 10 // bytes of args, and of kwargs, that the audit log keeps
	maxChanged  = 100      // changes that it names
)

// taskRecord is the audit record of a published task, with secrets masked. It refers to no command, since commands are
// pruned and audit records are not.
type taskRecord struct {
	taskPayload

	Args    any               `json:"args"` // an array, or the beginning of a long one as text
	Kwargs  any               `json:"kwargs"`
	Source  string            `json:"source,omitempty"` // of the arguments of the retried task
	Changes map[string]change `json:"changes,omitempty"`
}

// change is a difference to the retried task. Absent is null.
type change struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// record returns the audit record of a plan.
func (p taskPlan) record(x *redact.Redactor) taskRecord {
	args, kwargs, _ := x.Arguments(p.payload.Name, p.payload.Args, p.payload.Kwargs)
	r := taskRecord{taskPayload: p.payload, Args: recorded(x, args), Kwargs: recorded(x, kwargs)}
	if len(r.Embed) > 0 {
		r.Embed = x.Settings(r.Embed)
	}
	if b, err := json.Marshal(r.Headers); err == nil && len(r.Headers) > 0 {
		r.Headers = nil
		_ = json.Unmarshal(x.Settings(b), &r.Headers) // valid JSON
	}
	if original := p.original; original != nil {
		r.Source, r.Changes = original.Source, changes(x, original, p.payload)
	}
	return r
}

// recorded returns JSON with secrets masked, or its beginning if it is long.
func recorded(x *redact.Redactor, raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	masked := x.Settings(raw)
	if len(masked) <= maxRecorded {
		return masked
	}
	cut := masked[:maxRecorded]
	for len(cut) > 0 && !utf8.Valid(cut) {
		cut = cut[:len(cut)-1]
	}
	return fmt.Sprintf("%s… (%d bytes)", cut, len(raw))
}

// changes returns the differences between a task and its retry by what differs: queue, args[1], kwargs.a. Arguments are
// compared if they are known.
func changes(x *redact.Redactor, original *Original, now taskPayload) map[string]change {
	found := make(map[string]change)
	add := func(name string, different bool, from, to any) {
		if different && len(found) < maxChanged {
			found[name] = change{From: from, To: to}
		}
	}
	o := original.Request
	add("name", o.Name != now.Name, o.Name, now.Name)
	add("queue", o.Queue != now.Queue, o.Queue, now.Queue)
	add("priority", !same(o.Priority, now.Priority), o.Priority, now.Priority)
	add("hard", !same(o.Hard, now.Hard), o.Hard, now.Hard)
	add("soft", !same(o.Soft, now.Soft), o.Soft, now.Soft)
	if original.Source == "" {
		return found
	}
	from, to := arguments(o.Args, o.Kwargs), arguments(now.Args, now.Kwargs)
	shown := func(name string, args, kwargs json.RawMessage) map[string]json.RawMessage {
		args, kwargs, _ = x.Arguments(name, args, kwargs)
		return arguments(x.Settings(args), x.Settings(kwargs))
	}
	shownFrom, shownTo := shown(o.Name, o.Args, o.Kwargs), shown(now.Name, now.Args, now.Kwargs)
	for name := range to {
		if _, both := from[name]; !both {
			from[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		add(name, !same(from[name], to[name]), recorded(x, shownFrom[name]), recorded(x, shownTo[name]))
	}
	return found
}

// arguments returns the elements of args and kwargs by name: args[0], kwargs.a.
func arguments(args, kwargs json.RawMessage) map[string]json.RawMessage {
	found := make(map[string]json.RawMessage)
	var list []json.RawMessage
	_ = json.Unmarshal(args, &list) // checked to be an array
	for i, item := range list {
		found["args["+strconv.Itoa(i)+"]"] = item
	}
	var object map[string]json.RawMessage
	_ = json.Unmarshal(kwargs, &object) // checked to be an object
	for key, item := range object {
		found["kwargs."+key] = item
	}
	return found
}
