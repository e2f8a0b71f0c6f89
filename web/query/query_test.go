package query_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/query"
)

func position() state.Position {
	return state.Position{
		Stamp: clock.Stamp{Clock: 1 << 40, Micros: -5, Origin: "celery@höst/1.42"},
		ID:    "3f2a \x00 id",
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	pos, long := position(), state.Position{ID: strings.Repeat("x", 100_000)}
	tests := map[string]struct {
		raw  string
		want query.Tasks
	}{
		"nothing":        {"", query.Tasks{}},
		"empty values":   {"state=&name=&worker=&q=&root=&limit=&cursor=", query.Tasks{}},
		"states":         {"state=retry,SUCCESS&state=Retry,", query.Tasks{States: []state.State{state.Retry, state.Success}}},
		"custom state":   {"state=half-way_2", query.Tasks{States: []state.State{"HALF-WAY_2"}}},
		"names":          {"name=b,c&name=a&name=b,c", query.Tasks{Names: []string{"a", "b,c"}}},
		"workers":        {"worker=celery%40a%2Fb", query.Tasks{Workers: []string{"celery@a/b"}}},
		"text":           {"q=+two+words%20", query.Tasks{Text: "two words"}},
		"longest text":   {"q=" + strings.Repeat("%C3%A9", 256), query.Tasks{Text: strings.Repeat("é", 256)}},
		"root":           {"root=r1", query.Tasks{Root: "r1"}},
		"limit":          {"limit=500", query.Tasks{Limit: 500}},
		"default limit":  {"limit=50", query.Tasks{}},
		"older":          {"cursor=" + query.Encode(pos, false), query.Tasks{From: &pos}},
		"newer":          {"cursor=" + query.Encode(pos, true), query.Tasks{From: &pos, Newer: true}},
		"long id":        {"cursor=" + query.Encode(long, false), query.Tasks{From: &long}},
		"zero position":  {"cursor=" + query.Encode(state.Position{}, false), query.Tasks{From: &state.Position{}}},
		"one among none": {"q=&q=x", query.Tasks{Text: "x"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := query.Parse(values(t, tt.raw))
			if err != nil {
				t.Fatalf("Parse(%q): %v", tt.raw, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", tt.raw, diff)
			}
		})
	}
}

func TestParseNamesTheWrongParameter(t *testing.T) {
	t.Parallel()
	good := query.Encode(position(), false)
	tests := map[string]struct{ raw, param string }{
		"state with space":    {"state=A+B", "state"},
		"state not ascii":     {"state=SUCCE%C5%BFS", "state"},
		"state too long":      {"state=" + strings.Repeat("A", 65), "state"},
		"too many states":     {"state=" + manyStates(101), "state"},
		"name too long":       {"name=" + strings.Repeat("n", 1025), "name"},
		"worker too long":     {"worker=" + strings.Repeat("w", 1025), "worker"},
		"root too long":       {"root=" + strings.Repeat("r", 1025), "root"},
		"text too long":       {"q=" + strings.Repeat("x", 257), "q"},
		"text twice":          {"q=a&q=b", "q"},
		"limit zero":          {"limit=0", "limit"},
		"limit too great":     {"limit=501", "limit"},
		"limit no number":     {"limit=ten", "limit"},
		"limit overflows":     {"limit=99999999999999999999", "limit"},
		"cursor no base64":    {"cursor=!!!", "cursor"},
		"cursor padded":       {"cursor=" + good + "%3D", "cursor"},
		"cursor cut to two":   {"cursor=" + good[:2], "cursor"},
		"cursor cut to ten":   {"cursor=" + good[:10], "cursor"},
		"cursor of version 2": {"cursor=Ag" + good[2:], "cursor"},
		"cursor of one byte":  {"cursor=AQ", "cursor"},
		"cursor huge origin":  {"cursor=AQAAAP__________AQ", "cursor"},
		"unknown":             {"zzz=1&offset=", "offset"},
		"wrong case":          {"State=SUCCESS", "State"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := query.Parse(values(t, tt.raw))
			wrong, ok := errors.AsType[*query.Error](err)
			if !ok {
				t.Fatalf("Parse(%q) error = %v, want a *query.Error", tt.raw, err)
			}
			if wrong.Param != tt.param || wrong.Message == "" {
				t.Errorf("Parse(%q) error = %#v, want one of parameter %q", tt.raw, wrong, tt.param)
			}
			if !strings.HasPrefix(wrong.Error(), tt.param+" ") {
				t.Errorf("error text %q does not begin with the parameter", wrong.Error())
			}
		})
	}
}

func TestParseKeepsWhatWasRight(t *testing.T) {
	t.Parallel()
	got, err := query.Parse(values(t, "state=RETRY,no+good&q=x&limit=many&page=2"))
	if err == nil {
		t.Error("Parse accepted a wrong state")
	}
	want := query.Tasks{States: []state.State{state.Retry}, Text: "x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("query beside the error (-want +got):\n%s", diff)
	}
}

func TestParseLaxIgnoresUnknownParametersOnly(t *testing.T) {
	t.Parallel()
	got, err := query.ParseLax(values(t, "theme=dark&q=x"))
	if err != nil {
		t.Fatalf("ParseLax: %v", err)
	}
	if diff := cmp.Diff(query.Tasks{Text: "x"}, got); diff != "" {
		t.Errorf("ParseLax (-want +got):\n%s", diff)
	}
	if _, err := query.ParseLax(values(t, "theme=dark&limit=0")); err == nil {
		t.Error("ParseLax accepted limit=0")
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ raw, want string }{
		"all tasks":      {"limit=50&q=+", ""},
		"order and case": {"worker=w&state=retry&name=b&name=a&state=FAILURE", "name=a&name=b&state=FAILURE&state=RETRY&worker=w"},
		"escapes":        {"q=a%26b+%3d", "q=a%26b+%3D"},
		"place dropped":  {"limit=7&cursor=" + query.Encode(position(), true), "limit=7"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parse(t, tt.raw).Canonical(); got != tt.want {
				t.Errorf("canonical form of %q = %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	pos := position()
	cursor := query.Encode(pos, false)
	q := parse(t, "state=RETRY&state=FAILURE&q=x&cursor="+cursor)
	tests := map[string]struct {
		query query.Tasks
		want  string
	}{
		"itself":         {q, "/tasks?cursor=" + cursor + "&q=x&state=FAILURE&state=RETRY"},
		"first page":     {q.First(), "/tasks?q=x&state=FAILURE&state=RETRY"},
		"newer page":     {q.After(&pos, true), "/tasks?cursor=" + query.Encode(pos, true) + "&q=x&state=FAILURE&state=RETRY"},
		"no newer page":  {q.After(nil, true), "/tasks?q=x&state=FAILURE&state=RETRY"},
		"state off":      {q.Toggle(state.Failure), "/tasks?q=x&state=RETRY"},
		"state on":       {q.Toggle(state.Pending), "/tasks?q=x&state=FAILURE&state=PENDING&state=RETRY"},
		"twice toggled":  {q.Toggle("A").Toggle("A"), "/tasks?q=x&state=FAILURE&state=RETRY"},
		"everything":     {query.Tasks{}, "/tasks"},
		"made by hand":   {query.Tasks{Names: []string{"a b"}, Limit: 10}, "/tasks?limit=10&name=a+b"},
		"still the same": {q, "/tasks?cursor=" + cursor + "&q=x&state=FAILURE&state=RETRY"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.query.URL("/tasks"); got != tt.want {
				t.Errorf("URL = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	pos := position()
	got := parse(t, "state=RETRY&name=n&worker=w&q=x&root=r&cursor="+query.Encode(pos, true)).State()
	want := state.Query{
		States: []state.State{state.Retry}, Names: []string{"n"}, Workers: []string{"w"},
		Text: "x", Root: "r", Limit: 50, From: &pos, Newer: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("State (-want +got):\n%s", diff)
	}
}

func TestFiltered(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"": false, "limit=7": false, "state=A": true, "name=a": true, "worker=a": true, "q=a": true, "root=a": true,
	} {
		if got := parse(t, raw).Filtered(); got != want {
			t.Errorf("Filtered of %q = %v, want %v", raw, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, raw := range []string{
		"", "state=retry,success&state=Failure&limit=50", "name=a%2Cb&name=%00&worker=celery%40h%2F%25",
		"q=+caf%C3%A9+&root=r&limit=500", "q=%ff&root=%ff", "cursor=" + query.Encode(position(), true),
		"cursor=AQAAAP__________AQ", "offset=1&limit=-1", "a;b=%zz",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, _ := url.ParseQuery(raw) // what could be read of it
		q, err := query.Parse(v)
		if _, ok := errors.AsType[*query.Error](err); err != nil && !ok {
			t.Fatalf("Parse(%q) error = %v, want a *query.Error", raw, err)
		}
		// What Parse leaves of any input is a sound query.
		if limit := q.State().Limit; limit < 1 || limit > query.MaxLimit {
			t.Fatalf("Parse(%q) limit = %d", raw, limit)
		}
		again := parse(t, q.Canonical())
		if diff := cmp.Diff(q.First(), again); diff != "" {
			t.Fatalf("Parse(Canonical) of %q (-want +got):\n%s", raw, diff)
		}
		if got, want := again.Canonical(), q.Canonical(); got != want {
			t.Fatalf("canonical form of %q is not stable: %q, then %q", raw, want, got)
		}
		whole := parse(t, strings.TrimPrefix(strings.TrimPrefix(q.URL("/"), "/"), "?"))
		if diff := cmp.Diff(q, whole); diff != "" {
			t.Fatalf("Parse(URL) of %q (-want +got):\n%s", raw, diff)
		}
	})
}

func values(t *testing.T, raw string) url.Values {
	t.Helper()
	v, err := url.ParseQuery(raw)
	if err != nil {
		t.Fatalf("parse %q: %v", raw, err)
	}
	return v
}

func parse(t *testing.T, raw string) query.Tasks {
	t.Helper()
	q, err := query.Parse(values(t, raw))
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}
	return q
}

func manyStates(n int) string {
	states := make([]string, n)
	for i := range states {
		states[i] = strings.Repeat("A", i%60+1) + strings.Repeat("B", i/60)
	}
	return strings.Join(states, ",")
}
