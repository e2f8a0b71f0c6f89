package query_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// words are values that texts of tasks have, or begin like something else in the language.
var words = []string{
	"a", "A", "ab", "a b", "b", "OR", "NOT", "AND", "-a", "~a", ">a", "<a", "/a/", `"`, `\`, `a"b\`, "(a)", "a,b", "a:b", "name:a",
	"*", "a*", "..", "é", "É", "\x00", "\u200b", "\u00a0", "1h",
}

func word() *rapid.Generator[string] { return rapid.SampledFrom(words) }

func bound() *rapid.Generator[query.Bound] {
	const day = int64(24 * time.Hour / time.Microsecond)
	return rapid.Custom(func(t *rapid.T) query.Bound {
		return query.Bound{
			Set: true,
			N: rapid.OneOf(
				rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{day - 1, day, day + 1, 1_790_000_000_500_000, 90_061_001_001}),
			).Draw(t, "n"),
			Exclusive: rapid.Bool().Draw(t, "exclusive"),
		}
	})
}

func value(f query.Field) *rapid.Generator[query.Value] {
	return rapid.Custom(func(t *rapid.T) query.Value {
		text := word().Draw(t, "text")
		switch f.Type() {
		case query.Word:
			return query.Value{Match: rapid.SampledFrom([]query.Match{query.Exact, query.Contains}).Draw(t, "match"), Text: text}
		case query.Text:
			return query.Value{Match: query.Contains, Text: text}
		case query.Set:
			if f == query.State {
				return query.Value{Match: query.Exact, Text: rapid.SampledFrom([]string{"FAILURE", "RETRY", "A-B_1"}).Draw(t, "state")}
			}
			if f == query.Dup {
				calls := []string{"0123456789abcdef0123456789abcdef", "ffffffffffffffffffffffffffffffff"}
				return query.Value{Match: query.Exact, Text: rapid.SampledFrom(append(query.DupValues(), calls...)).Draw(t, "dup")}
			}
			if f.Causal() {
				return query.Value{Match: query.Exact, Text: rapid.SampledFrom([]string{"a", "A", "a b", "OR"}).Draw(t, "task")}
			}
			if f == query.Cluster {
				return query.Value{Match: query.Exact, Text: rapid.SampledFrom([]string{"shop", "eu-1"}).Draw(t, "cluster")}
			}
			if f == query.Outbox {
				return query.Value{Match: query.Exact, Text: rapid.SampledFrom(query.OutboxValues()).Draw(t, "outbox")}
			}
			return query.Value{Match: query.Exact, Text: rapid.SampledFrom(query.IsValues()).Draw(t, "is")}
		default: // a range
		}
		v := query.Value{Match: query.Range}
		if rapid.Bool().Draw(t, "from") {
			v.Min = bound().Draw(t, "min")
			v.Min.Relative = f.Type() == query.Time && rapid.Bool().Draw(t, "relative")
		}
		if rapid.Bool().Draw(t, "to") {
			v.Max = bound().Draw(t, "max")
			if v.Min.Set { // not before it
				v.Max.Relative, v.Max.N = v.Min.Relative, max(v.Max.N, v.Min.N+2)
			}
		}
		return v
	})
}

// term yields terms, some of them with a pattern.
func term() *rapid.Generator[query.Term] {
	return rapid.Custom(func(t *rapid.T) query.Term {
		f := rapid.SampledFrom(append(query.Fields(), query.Any)).Draw(t, "field")
		if (f.Type() == query.Word || f.Type() == query.Text) && rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			parts := rapid.SampledFrom([]string{"*", "a*", "a*b", "a b*c,d"}).Draw(t, "pattern")
			if f.Type() == query.Word || parts != "a*" {
				return query.Term{Field: f, Values: []query.Value{{Match: query.Pattern, Text: parts}}}
			}
		}
		return query.Term{Field: f, Values: rapid.SliceOfN(value(f), 1, 3).Draw(t, "values")}
	})
}

func expr(depth int) *rapid.Generator[query.Expr] {
	return rapid.Custom(func(t *rapid.T) query.Expr {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if depth == 0 || kind > 2 {
			return term().Draw(t, "term")
		}
		if kind == 0 {
			return query.Not{X: expr(depth-1).Draw(t, "x")}
		}
		list := rapid.SliceOfN(expr(depth-1), 2, 3).Draw(t, "list")
		if kind == 1 {
			return query.And(list)
		}
		return query.Or(list)
	})
}

func task() *rapid.Generator[state.Task] {
	text := rapid.Ptr(word(), true)
	at := rapid.SampledFrom([]int64{0, 1, 2, 24 * 3600e6})
	return rapid.Custom(func(t *rapid.T) state.Task {
		v := state.Task{
			ID: word().Draw(t, "id"), Name: text.Draw(t, "name"), Args: text.Draw(t, "args"), Exception: text.Draw(t, "exception"),
			State:  rapid.SampledFrom(append(state.States(), "A-B_1")).Draw(t, "state"),
			SentAt: at.Draw(t, "sent"), Retries: rapid.Ptr(rapid.Int64Range(0, 2), true).Draw(t, "retries"),
		}
		v.FailedAt = at.Draw(t, "failed")
		return v
	})
}

func TestCanonicalFormReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := query.New(expr(3).Draw(t, "expr"))
		got, err := query.Parse(want.String())
		if err != nil {
			t.Fatalf("Parse(%q): %v", want, err)
		}
		if diff := cmp.Diff(want.Expr(), got.Expr()); diff != "" || got.String() != want.String() {
			t.Fatalf("Parse(%q) = %q (-want +got):\n%s", want, got, diff)
		}
	})
}

func TestSimplifyingChangesNoMatch(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(2)
	rapid.Check(t, func(t *rapid.T) {
		task := task().Draw(t, "task")
		a, b := expr(2).Draw(t, "a"), expr(2).Draw(t, "b")
		match := func(e query.Expr) bool { return query.New(e).Match(&task, now) }
		x, y := match(a), match(b)
		for _, tt := range []struct {
			expr query.Expr
			want bool
		}{
			{query.And{a, b}, x && y},
			{query.Or{a, b}, x || y},
			{query.Not{X: a}, !x},
			{query.Or{query.And{a, b}, query.Not{X: query.Or{b, a}}}, x && y || !x && !y},
		} {
			if got := match(tt.expr); got != tt.want {
				t.Fatalf("%q matches: %v, want %v: %v and %v", query.New(tt.expr), got, tt.want, x, y)
			}
		}
		if term, ok := a.(query.Term); ok {
			each := false
			for _, v := range term.Values {
				each = each || match(query.Term{Field: term.Field, Values: []query.Value{v}})
			}
			if x != each {
				t.Fatalf("%q matches: %v, any value of it: %v", query.New(a), x, each)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", `state:failure,retry name:billing.* run:>2s -(a OR "b c") exc:~"x\"y"`, "received:-1h.. started:2026-11-20T10:00..11:00Z",
		"wait:>5s retries:1..3 eta:..now NOT is:orphaned", `name:"a b"* id:3f2a* \ ,`, "((((((((((x", "-------------x", "run:1w2d3h4m5s6ms7us",
		"sent:2026-11-20+05:30 sent:now-1h30m..+1h", "a AND b OR NOT c", "x:y", "is:late", "run:>p95", "\xff", "sent:0000-01-01", "args.0:1", `""`,
	} {
		f.Add(s)
	}
	now := time.Unix(1_790_000_000, 0)
	f.Fuzz(func(t *testing.T, s string) {
		q, err := query.Parse(s)
		if err != nil {
			wrong, ok := errors.AsType[*query.Error](err)
			if !ok || wrong.Offset < 0 || wrong.Length < 0 || wrong.Offset+wrong.Length > len(s) || wrong.Message == "" {
				t.Fatalf("Parse(%q) error = %#v, want one with a place", s, err)
			}
			if wrong.Length == 0 && s != "" {
				t.Fatalf("Parse(%q) error marks nothing: %#v", s, err)
			}
			return
		}
		again, err := query.Parse(q.String())
		if err != nil {
			t.Fatalf("Parse(%q) of %q: %v", q, s, err)
		}
		if diff := cmp.Diff(q.Expr(), again.Expr()); diff != "" || q.String() != again.String() {
			t.Fatalf("Parse(%q) = %q (-want +got):\n%s", q, again, diff)
		}
		task := state.Task{ID: s, State: state.Started, Name: &s}
		if q.Match(&task, now) != again.Match(&task, now) {
			t.Fatalf("%q and %q do not match the same", s, q)
		}
	})
}
