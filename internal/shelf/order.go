package shelf

import (
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// compare orders two tasks as a list with sort does.
func compare(a, b *state.Task, s query.Sort) int { return compareTo(a, position(b, s), s) }

// compareTo compares a task with a place in the list.
func compareTo(t *state.Task, p state.Position, s query.Sort) int {
	if s.Ascending {
		return position(t, s).Compare(p)
	}
	return -position(t, s).Compare(p)
}

func position(t *state.Task, s query.Sort) state.Position {
	v, _ := value(t, s.Field)
	return state.Position{Stamp: t.Stamp, ID: t.ID, Value: v}
}

// value is what a list is sorted by, false where it is not known.
func value(t *state.Task, f query.Field) (int64, bool) {
	if f == 0 {
		return 0, true
	}
	return f.Int(t)
}
