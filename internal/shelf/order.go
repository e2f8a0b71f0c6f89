package shelf

import (
	"cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// compare orders two tasks as a list with sort does.
func compare(a, b *state.Task, s query.Sort) int { return compareTo(a, position(b, s), s) }

// compareTo compares a task with a place in the list.
func compareTo(t *state.Task, p state.Position, s query.Sort) int {
	own := position(t, s)
	order := cmp.Or(cmp.Compare(own.Value, p.Value), own.Stamp.Compare(p.Stamp), cmp.Compare(own.ID, p.ID))
	if s.Ascending {
		return order
	}
	return -order
}

func position(t *state.Task, s query.Sort) state.Position {
	v, _ := value(t, s.Field)
	return state.Position{Stamp: t.Stamp, ID: t.ID, Value: v}
}

// value is what a list is sorted by, false where it is not known. Durations are µs.
func value(t *state.Task, f query.Field) (int64, bool) {
	at := int64(0)
	switch f {
	case query.Sent:
		at = t.SentAt
	case query.Received:
		at = t.ReceivedAt
	case query.Started:
		at = t.StartedAt
	case query.Finished:
		at = max(t.SucceededAt, t.FailedAt, t.RevokedAt, t.RejectedAt)
	case query.Wait:
		return micros(t.WaitSeconds)
	case query.Run:
		return micros(t.RuntimeSeconds)
	case query.Retries:
		if t.Retries == nil {
			return 0, false
		}
		return *t.Retries, true
	default:
		return 0, f == 0
	}
	return at, at != 0
}

func micros(seconds *float64) (int64, bool) {
	if seconds == nil {
		return 0, false
	}
	return int64(*seconds * 1e6), true
}
