package query

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// Match reports whether the task matches as of now.
func (q Query) Match(t *state.Task, now time.Time) bool { return matches(q.Expr(), t, now) }

func matches(e Expr, t *state.Task, now time.Time) bool {
	switch e := e.(type) {
	case And:
		return !slices.ContainsFunc(e, func(x Expr) bool { return !matches(x, t, now) })
	case Or:
		return slices.ContainsFunc(e, func(x Expr) bool { return matches(x, t, now) })
	case Not:
		return !matches(e.X, t, now)
	case Term:
		return slices.ContainsFunc(e.Values, func(v Value) bool { return e.Field.matches(v, t, now) })
	default:
		return false
	}
}

func (f Field) matches(v Value, t *state.Task, now time.Time) bool {
	switch f.Type() {
	case Word:
		return f.anyWord(t, v.matchesWord)
	case Set:
		if f == State {
			return strings.EqualFold(string(t.State), v.Text)
		}
		if f == Dup {
			return duplicates(t, v.Text)
		}
		if f == Outbox || f == Cluster || f.Causal() {
			return false // see Query.Resolve and Query.In
		}
		return Marked(t, v.Text)
	case Text:
		return f.anyText(t, v.matchesText) || f == Any && v.beginsID(t.ID)
	default:
		n, ok := f.Int(t)
		return ok && v.holds(n, now)
	}
}

// anyWord reports whether match holds for any of what the task has in a field of type Word.
func (f Field) anyWord(t *state.Task, match func(string) bool) bool {
	is := func(s *string) bool { return s != nil && match(*s) }
	switch f {
	case ID:
		return match(t.ID)
	case Name: // or what it was before it was replaced
		return is(t.Name) || slices.ContainsFunc(t.Executions, func(e state.Execution) bool { return is(e.Name) })
	case Worker:
		return is(t.Worker)
	case Queue:
		return is(t.Queue)
	case Client:
		return is(t.Client)
	case Exchange:
		return is(t.Exchange)
	case RoutingKey:
		return is(t.RoutingKey)
	case Root:
		return match(t.ID) || is(t.RootID)
	case Parent:
		return is(t.ParentID)
	case Failure:
		if t.State != state.Failure {
			return false
		}
		_, group := fingerprint.OfTask(t)
		return match(group.String())
	default:
		return false
	}
}

// anyText reports whether match holds for any of what the task has in a field of type Text, earlier
// executions included.
func (f Field) anyText(t *state.Task, match func(string) bool) bool {
	is := func(s *string) bool { return s != nil && match(*s) }
	switch f {
	case Any:
		return Name.anyWord(t, match) || is(t.Args) || is(t.Kwargs) ||
			Result.anyText(t, match) || Exception.anyText(t, match) || Traceback.anyText(t, match)
	case Args:
		return is(t.Args)
	case Kwargs:
		return is(t.Kwargs)
	case Result:
		return is(t.Result) || slices.ContainsFunc(t.Executions, func(e state.Execution) bool { return is(e.Result) })
	case Exception:
		return is(t.Exception) || slices.ContainsFunc(t.Executions, func(e state.Execution) bool { return is(e.Exception) })
	case Traceback:
		return is(t.Traceback) || slices.ContainsFunc(t.Executions, func(e state.Execution) bool { return is(e.Traceback) })
	default:
		return false
	}
}

func (v Value) matchesWord(s string) bool {
	switch v.Match {
	case Exact:
		return s == v.Text
	case Pattern:
		return glob(s, v.Text)
	case Contains:
		return containsFold(s, v.Text)
	default:
		return false
	}
}

func (v Value) matchesText(s string) bool {
	if v.Match != Pattern {
		return containsFold(s, v.Text)
	}
	return glob(strings.ToLower(s), "*"+strings.ToLower(v.Text)+"*")
}

// beginsID reports whether an id begins with the text.
func (v Value) beginsID(id string) bool {
	id, text := strings.ToLower(id), strings.ToLower(v.Text)
	if v.Match == Pattern {
		return glob(id, text+"*")
	}
	return strings.HasPrefix(id, text)
}

// holds reports whether n lies in the range.
func (v Value) holds(n int64, now time.Time) bool {
	if v.Min.Set {
		if low := v.Min.At(now); n < low || n == low && v.Min.Exclusive {
			return false
		}
	}
	if v.Max.Set {
		if high := v.Max.At(now); n > high || n == high && v.Max.Exclusive {
			return false
		}
	}
	return true
}

// glob reports whether the whole of s matches a pattern, in which * stands for any characters.
func glob(s, pattern string) bool {
	head, rest, more := strings.Cut(pattern, "*")
	if !more {
		return s == pattern
	}
	s, ok := strings.CutPrefix(s, head)
	if !ok {
		return false
	}
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, rest)
		}
		_, after, found := strings.Cut(s, part)
		if !found {
			return false
		}
		s, rest = after, next
	}
}

// containsFold reports whether s contains sub without regard to case.
func containsFold(s, sub string) bool {
	if strings.ContainsFunc(sub, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.Contains(strings.ToLower(s), strings.ToLower(sub))
	}
	for i := range len(s) - len(sub) + 1 {
		n := 0
		for n < len(sub) && lower(s[i+n]) == lower(sub[n]) {
			n++
		}
		if n == len(sub) {
			return true
		}
	}
	return false
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
