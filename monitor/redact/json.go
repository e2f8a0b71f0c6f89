package redact

import (
	"encoding/json"
	"strings"
)

// JSON redacts a value of a task: a result, the arguments of a message. Rules for certain tasks apply if the name is unknown,
// which is empty, too. What is not JSON becomes null.
func (r *Redactor) JSON(task string, value json.RawMessage) json.RawMessage {
	if r == nil || len(value) == 0 {
		return value
	}
	named := r.rulesOf(task)
	if !r.suspects(string(value)) && len(named) == 0 {
		return value
	}
	return changed(value, func(v any) any { return r.walk(v, named) })
}

// Result is JSON for a result, which a rule may hide whole.
func (r *Redactor) Result(task string, value json.RawMessage) json.RawMessage {
	return r.wholly(task, value, fieldResult)
}

// Arguments redacts args, a list, and kwargs, an object, of a task. changed is whether anything was redacted.
func (r *Redactor) Arguments(task string, args, kwargs json.RawMessage) (shownArgs, shownKwargs json.RawMessage, changed bool) {
	if r == nil {
		return args, kwargs, false
	}
	shownArgs, shownKwargs = r.wholly(task, args, fieldArgs), r.wholly(task, kwargs, fieldKwargs)
	for _, i := range r.rulesOf(task) {
		if rule := &r.rules[i]; rule.position > 0 {
			shownArgs = rule.argument(shownArgs)
		}
	}
	return shownArgs, shownKwargs, !sameJSON(args, shownArgs) || !sameJSON(kwargs, shownKwargs)
}

// argument hides one positional argument in a list.
func (rule *activeRule) argument(args json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(args, &list) != nil || len(list) < rule.position {
		return args
	}
	list[rule.position-1] = json.RawMessage(`"` + mask + `"`)
	rule.redacted.Add(1)
	b, err := json.Marshal(list)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

func (r *Redactor) wholly(task string, value json.RawMessage, f fields) json.RawMessage {
	if r == nil || len(value) == 0 {
		return value
	}
	for _, i := range r.rulesOf(task) {
		if rule := &r.rules[i]; rule.whole&f != 0 {
			rule.redacted.Add(1)
			return json.RawMessage(`"` + mask + `"`)
		}
	}
	return r.JSON(task, value)
}

// sameJSON reports whether two values are equal, whatever spaces they have.
func sameJSON(a, b json.RawMessage) bool {
	if string(a) == string(b) {
		return true
	}
	keep := func(v any) any { return v }
	return string(changed(a, keep)) == string(changed(b, keep))
}

// suspects reports whether a text has to be read. JSON may hide the fragments of a key in escapes.
func (r *Redactor) suspects(s string) bool {
	return r.filter == nil || len(r.expressions) > 0 || strings.IndexByte(s, '\\') >= 0 || r.filter.found(s) || hasPassword(s)
}

// walk redacts what JSON decodes to.
func (r *Redactor) walk(v any, named []int) any {
	switch v := v.(type) {
	case string:
		return r.text(v, named)
	case []any:
		if len(v) == 2 { // perhaps an item of a dict
			if key, ok := v[0].(string); ok && len(key) <= maxKey && !revealsNothing(v[1]) {
				if rule := r.keyRule(key, named); rule != nil {
					rule.redacted.Add(1)
					return []any{key, mask}
				}
			}
		}
		for i := range v {
			v[i] = r.walk(v[i], named)
			if option, _ := v[max(i-1, 0)].(string); i > 0 && strings.HasPrefix(option, "-") && !revealsNothing(v[i]) {
				if text, ok := v[i].(string); ok && !strings.HasPrefix(text, "-") && len(option) <= maxKey {
					if rule := r.keyRule(option, named); rule != nil { // of the arguments of a command
						rule.redacted.Add(1)
						v[i] = mask
					}
				}
			}
		}
	case map[string]any:
		r.namedValue(v, named)
		for key, item := range v {
			if rule := r.keyRule(key, named); rule != nil && !revealsNothing(item) {
				rule.redacted.Add(1)
				v[key] = mask
				continue
			}
			v[key] = r.walk(item, named)
		}
	}
	return v
}

// namedValue redacts the value of an object that has the name of a secret: {"name": "password", "value": "x"}.
func (r *Redactor) namedValue(object map[string]any, named []int) {
	for label, name := range object {
		name, ok := name.(string)
		if !ok || !isLabel(label) || len(name) > maxKey {
			continue
		}
		rule := r.keyRule(name, named)
		for key, item := range object {
			if rule != nil && strings.EqualFold(key, "value") && !revealsNothing(item) {
				rule.redacted.Add(1)
				object[key] = mask
			}
		}
	}
}

// revealsNothing reports whether a value reveals nothing, or was redacted already.
func revealsNothing(v any) bool {
	switch v := v.(type) {
	case nil, bool:
		return true
	case string:
		return v == "" || v == mask
	}
	return false
}
