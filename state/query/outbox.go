package query

import (
	"fmt"
	"slices"
	"strings"
)

// OutboxValues returns all values of Outbox in the order of a task's way.
func OutboxValues() []string {
	return []string{
		"pending", "in_flight", "stale", "deferred", "due", "other_schema", "dead", "sent", "unsent", "unreceived", "resent",
	}
}

// outboxValue reads a value of Outbox.
func outboxValue(text string) (Value, *Error) {
	if slices.Contains(OutboxValues(), text) {
		return Value{Match: Exact, Text: text}, nil
	}
	wrong := wrongf("outbox: takes %s", strings.Join(OutboxValues(), ", "))
	if wrong.Nearest = Nearest(text, OutboxValues()); wrong.Nearest != "" {
		wrong.Message = fmt.Sprintf("there is no outbox:%s; the nearest is outbox:%s", text, wrong.Nearest)
	}
	return Value{}, wrong
}

func outboxHelp(value string) string {
	switch value {
	case "pending":
		return "not taken by the relay yet"
	case "in_flight":
		return "taken by the relay"
	case "stale":
		return "taken long ago, to be taken again"
	case "deferred":
		return "failed, to be tried again later"
	case "due":
		return "failed, to be tried again now"
	case "other_schema":
		return "of a schema_version that the relay leaves"
	case "dead":
		return "given up by the relay"
	case "sent":
		return "sent by the relay"
	case "unsent":
		return "waiting for the relay for minutes"
	case "unreceived":
		return "sent, and not received by a worker"
	default:
		return "taken again, so perhaps sent twice"
	}
}
