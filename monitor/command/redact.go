package command

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/redact"
)

// Redacted returns the payload of a command that is not sent anymore as it is kept: without what x redacts.
func Redacted(x *redact.Redactor, kind string, payload []byte) []byte {
	var p taskPayload
	if kind != kindTask || json.Unmarshal(payload, &p) != nil {
		if edited := x.JSON("", payload); !equalJSON(edited, payload) {
			return edited
		}
		return payload
	}
	args, kwargs, changed := x.Arguments(p.Name, p.Args, p.Kwargs)
	rest := struct {
		Headers headers         `json:"headers"`
		Embed   json.RawMessage `json:"embed"`
	}{p.Headers, p.Embed}
	before, err := json.Marshal(rest)
	if err != nil {
		return []byte("{}")
	}
	after := x.JSON("", before)
	if !changed && equalJSON(before, after) {
		return payload
	}
	if json.Unmarshal(after, &rest) != nil {
		return []byte("{}")
	}
	p.Args, p.Kwargs, p.Headers, p.Embed, p.Redacted = args, kwargs, rest.Headers, rest.Embed, true
	if edited, err := json.Marshal(p); err == nil {
		return edited
	}
	return []byte("{}")
}

// RedactedAudit returns the target and the detail of an audit record without what x redacts.
func RedactedAudit(x *redact.Redactor, target, detail string) (shownTarget, shownDetail string) {
	shownTarget = x.Text(target)
	if !strings.HasPrefix(detail, "{") || !json.Valid([]byte(detail)) {
		return shownTarget, x.Text(detail)
	}
	var record map[string]json.RawMessage
	if json.Unmarshal(x.JSON("-", []byte(detail)), &record) != nil {
		return shownTarget, x.Text(detail)
	}
	if part := record["detail"]; len(part) > 0 { // as audit writes it
		record["detail"] = redactedRecord(x, part)
	}
	edited, err := json.Marshal(record)
	if err != nil || equalJSON(edited, []byte(detail)) {
		return shownTarget, detail
	}
	return shownTarget, string(edited)
}

// redactedRecord redacts a taskRecord, and leaves other values as they are.
func redactedRecord(x *redact.Redactor, detail json.RawMessage) json.RawMessage {
	var task struct{ Name string }
	var record map[string]json.RawMessage
	if json.Unmarshal(detail, &task) != nil || task.Name == "" || json.Unmarshal(x.JSON(task.Name, detail), &record) != nil {
		return detail
	}
	var changes map[string]json.RawMessage
	_ = json.Unmarshal(record["changes"], &changes) // nil if it has none
	for _, field := range []string{"args", "kwargs"} {
		if len(record[field]) > 0 {
			record[field] = redactedPart(x, task.Name, field, record[field])
		}
		for place, change := range changes {
			if strings.HasPrefix(place, field) {
				changes[place] = redactedChange(x, task.Name, place, change)
			}
		}
	}
	if changes != nil {
		record["changes"], _ = json.Marshal(changes) // valid JSON
	}
	edited, err := json.Marshal(record)
	if err != nil {
		return nil
	}
	return edited
}

// redactedChange redacts a change of args[0] or kwargs.a.
func redactedChange(x *redact.Redactor, name, place string, change json.RawMessage) json.RawMessage {
	var n int
	if _, err := fmt.Sscanf(place, "args[%d]", &n); err != nil {
		if shown := redactedPart(x, name, "kwargs", []byte(`{}`)); !equalJSON(shown, []byte(`{}`)) {
			return shown // a rule hides them all
		}
		return change
	}
	list, err := json.Marshal(slices.Repeat([]json.RawMessage{change}, max(0, min(n, maxPosition))+1))
	if err != nil {
		return nil
	}
	var shown []json.RawMessage
	if part := redactedPart(x, name, "args", list); json.Unmarshal(part, &shown) != nil || len(shown) == 0 {
		return part // a rule hides them all
	}
	return shown[len(shown)-1]
}

// maxPosition is the greatest position of an argument that a rule can name, and more.
const maxPosition = 1000

// redactedPart returns args or kwargs of a task as they are shown.
func redactedPart(x *redact.Redactor, name, field string, part json.RawMessage) json.RawMessage {
	if field == "args" {
		part, _, _ = x.Arguments(name, part, nil)
	} else {
		_, part, _ = x.Arguments(name, nil, part)
	}
	return part
}

// equalJSON reports whether two values are equal.
func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
