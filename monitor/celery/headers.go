package celery

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// reserved are headers that a Message has fields for, that would change how its body is read, or that would cover what a
// worker keeps of a request under the same name (celery/app/task.py, Context).
func reserved(name string) bool {
	switch name {
	case "lang", "task", "id", "root_id", "parent_id", "group", "shadow", "eta", "expires", "retries", "timelimit",
		"argsrepr", "kwargsrepr", "origin", "compression", "redelivered", "args", "kwargs", "callbacks", "errbacks",
		"chain", "chord", "delivery_info", "properties", "correlation_id", "reply_to", "hostname", "called_directly",
		"is_eager", "headers", "taskset", "utc", "time_limit", "soft_time_limit", "loglevel", "logfile", "children",
		"_children", "_protected", "get", "update", "clear", "as_execution_options":
		return true
	}
	return false
}

// checkHeaders checks the headers that a Message carries beside its fields.
func checkHeaders(headers map[string]any) error {
	for name, value := range headers {
		path := join("headers", name)
		switch {
		case name == "" || len(name) > maxName || !printable(name):
			return &MessageError{Path: path, Message: "must have a printable name of at most 255 bytes"}
		case reserved(name):
			return &MessageError{Path: path, Message: "must not be set this way"}
		case !validHeader(name, value):
			return &MessageError{Path: path, Message: "must have the type that Celery gives it"}
		}
		if err := checkValue(value, path, 0); err != nil {
			return err
		}
	}
	return nil
}

// known reports whether value fits a header that workers read.
func validHeader(name string, value any) bool {
	ok := true
	switch name {
	case "ignore_result":
		_, ok = value.(bool)
	case "replaced_task_nesting":
		_, ok = value.(int64)
	case "group_index":
		_, ok = value.(int64)
		ok = ok || value == nil
	case "stamps":
		_, ok = value.(map[string]any)
	case "stamped_headers":
		var names []any
		names, ok = value.([]any)
		ok = (ok || value == nil) && !slices.ContainsFunc(names, func(name any) bool { _, text := name.(string); return !text })
	}
	return ok
}

// checkValue checks the value of a header.
func checkValue(value any, path string, depth int) error {
	if depth > maxLevel {
		return &MessageError{Path: path, Message: fmt.Sprintf("must not nest deeper than %d levels", maxLevel)}
	}
	switch v := value.(type) {
	case nil, bool, int64:
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &MessageError{Path: path, Message: "must be a finite number"}
		}
	case string:
		if !printable(v) {
			return &MessageError{Path: path, Message: "must be printable text"}
		}
	case []any:
		for i, item := range v {
			if err := checkValue(item, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			if key == "" || len(key) > maxName || !printable(key) {
				return &MessageError{Path: join(path, key), Message: "must have a printable name of at most 255 bytes"}
			}
			if err := checkValue(item, join(path, key), depth+1); err != nil {
				return err
			}
		}
	default:
		return &MessageError{Path: path, Message: fmt.Sprintf("must not be a %T", value)}
	}
	return nil
}

// checkEmbed checks callbacks, errbacks, chain and chord.
func checkEmbed(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	n, err := parseNode(raw, "embed")
	if err != nil {
		return err
	}
	if n.kind != isObject {
		return &MessageError{Path: "embed", Message: "must be an object"}
	}
	for i, key := range n.keys {
		path, ok := join("embed", key), false
		switch key {
		case "callbacks", "errbacks", "chain":
			ok = n.items[i].kind == isNull || n.items[i].kind == isArray && !slices.ContainsFunc(n.items[i].items, noSignature)
		case "chord":
			ok = n.items[i].kind == isNull || !noSignature(n.items[i])
		}
		if !ok {
			return &MessageError{Path: path, Message: "must be null or made of signatures"}
		}
	}
	return nil
}

// noSignature reports whether n is anything but an object that names a task.
func noSignature(n node) bool {
	i := slices.Index(n.keys, "task")
	return n.kind != isObject || i < 0 || n.items[i].kind != isText
}
