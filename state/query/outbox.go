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

// Resolve returns the query with its terms on Outbox replaced by what they stand for: only who watches outboxes knows
// which tasks are where. Unresolved, they match nothing.
func (q Query) Resolve(ids func(value string) []string) Query {
	if !q.Mentions(Outbox) {
		return q
	}
	return New(resolve(q.Expr(), ids))
}

func resolve(e Expr, ids func(value string) []string) Expr {
	all := func(list []Expr) []Expr {
		list = slices.Clone(list)
		for i := range list {
			list[i] = resolve(list[i], ids)
		}
		return list
	}
	switch e := e.(type) {
	case And:
		return And(all(e))
	case Or:
		return Or(all(e))
	case Not:
		return Not{resolve(e.X, ids)}
	case Term:
		if e.Field != Outbox {
			return e
		}
		list := Or{}
		for _, v := range e.Values {
			found := ids(v.Text)
			if len(found) == 0 {
				found = []string{""} // matches no task
			}
			x := Expr(Equal(ID, found...))
			if v.Text == "unreceived" { // events tell
				known := []Value{{Match: Range}}
				x = And{x, Not{Term{Received, known}}, Not{Term{Started, known}}, Not{Term{Finished, known}}}
			}
			list = append(list, x)
		}
		if len(list) == 1 {
			return list[0]
		}
		return list
	default:
		return e
	}
}
