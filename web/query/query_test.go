package query_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/query"
)

func position() state.Position {
	return state.Position{
		Stamp: clock.Stamp{Clock: 1 << 40, Micros: -5, Origin: "celery@höst/1.42"},
		Value: -1 << 50,
		ID:    "3f2a \x00 id",
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	pos, long := position(), state.Position{ID: strings.Repeat("x", 100_000)}
	where := func(text string) query.Tasks {
		q, err := lang.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		return query.Tasks{Query: q, Text: text}
	}
	slowest := query.Tasks{Sort: lang.Sort{Field: lang.Run}}
	tests := map[string]struct {
		raw  string
		want query.Tasks
	}{
		"nothing":         {"", query.Tasks{}},
		"empty values":    {"state=&name=&worker=&q=&root=&sort=&cols=&limit=&cursor=", query.Tasks{}},
		"language":        {"q=run:%3E2s+OR+x", where("run:>2s OR x")},
		"space around":    {"q=+two++words%20", where("two  words")},
		"states":          {"state=retry,SUCCESS&state=Retry,", where("state:retry,success")},
		"custom state":    {"state=half-way_2", where("state:half-way_2")},
		"names":           {"name=b,c&name=a*&name=b,c", where(`name:"a*","b,c"`)},
		"workers":         {"worker=celery%40a%2Fb", where("worker:celery@a/b")},
		"root":            {"root=r1", where("root:r1")},
		"all together":    {"q=a+OR+b&state=RETRY&name=n", where("(a OR b) name:n state:retry")},
		"descending":      {"sort=-run", slowest},
		"descending, old": {"sort=-runtime", slowest},
		"ascending":       {"sort=retries", query.Tasks{Sort: lang.Sort{Field: lang.Retries, Ascending: true}}},
		"columns":         {"cols=run,uuid,,name,run", query.Tasks{Cols: []lang.Field{lang.Run, lang.ID, lang.Name}}},
		"limit":           {"limit=500", query.Tasks{Limit: 500}},
		"default limit":   {"limit=50", query.Tasks{}},
		"older":           {"cursor=" + query.Encode(pos, false), query.Tasks{From: &pos}},
		"newer":           {"cursor=" + query.Encode(pos, true), query.Tasks{From: &pos, Newer: true}},
		"long id":         {"cursor=" + query.Encode(long, false), query.Tasks{From: &long}},
		"zero position":   {"cursor=" + query.Encode(state.Position{}, false), query.Tasks{From: &state.Position{}}},
		"one among none":  {"q=&q=x", where("x")},
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
		"text too long":       {"q=" + strings.Repeat("x", query.MaxText+1), "q"},
		"text too complex":    {"q=" + strings.Repeat("x+", 129), "q"},
		"too much together":   {"q=" + strings.Repeat("x+", 40) + "&state=" + manyStates(100), "q"},
		"name not UTF-8":      {"name=%ff", "q"},
		"sort":                {"sort=args", "sort"},
		"sort twice":          {"sort=run&sort=-run", "sort"},
		"column":              {"cols=run,naem", "cols"},
		"mark as column":      {"cols=is", "cols"},
		"text twice":          {"q=a&q=b", "q"},
		"limit zero":          {"limit=0", "limit"},
		"limit too great":     {"limit=501", "limit"},
		"limit no number":     {"limit=ten", "limit"},
		"limit overflows":     {"limit=99999999999999999999", "limit"},
		"cursor no base64":    {"cursor=!!!", "cursor"},
		"cursor padded":       {"cursor=" + good + "%3D", "cursor"},
		"cursor cut to two":   {"cursor=" + good[:2], "cursor"},
		"cursor cut to ten":   {"cursor=" + good[:10], "cursor"},
		"cursor of version 1": {"cursor=AQ" + good[2:], "cursor"},
		"cursor of one byte":  {"cursor=Ag", "cursor"},
		"cursor huge origin":  {"cursor=AgAAAAD__________wE", "cursor"},
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

func TestParseSaysWhereTheQueryIsWrong(t *testing.T) {
	t.Parallel()
	got, err := query.Parse(values(t, "q=a+naem:b&limit=7"))
	wrong, ok := errors.AsType[*query.Error](err)
	if !ok || wrong.Query == nil {
		t.Fatalf("error = %v, want one about the query", err)
	}
	if w := wrong.Query; w.Offset != 2 || w.Length != 4 || w.Nearest != "name" {
		t.Errorf("wrong token = %+v, want 4 bytes at 2, near name", w)
	}
	if diff := cmp.Diff(query.Tasks{Text: "a naem:b", Limit: 7}, got); diff != "" {
		t.Errorf("query beside the error (-want +got):\n%s", diff)
	}
}

func TestParseKeepsWhatWasRight(t *testing.T) {
	t.Parallel()
	got, err := query.Parse(values(t, "state=RETRY,no+good&q=x&limit=many&page=2"))
	if err == nil {
		t.Error("Parse accepted a wrong state")
	}
	if got, want := got.Query.String(), "state:retry x"; got != want {
		t.Errorf("query beside the error = %q, want %q", got, want)
	}
}

func TestParseIgnoresUnknownParametersOnly(t *testing.T) {
	t.Parallel()
	got, err := query.Parse(values(t, "theme=dark&limit=7"))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	if diff := cmp.Diff(query.Tasks{Limit: 7}, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	if _, err := query.Parse(values(t, "theme=dark&limit=0")); err == nil {
		t.Error("Parse accepted limit=0")
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ raw, want string }{
		"all tasks":      {"limit=50&q=+", ""},
		"order and case": {"worker=w&state=retry&name=b&name=a&state=FAILURE", "q=name%3Aa%2Cb+state%3Afailure%2Cretry+worker%3Aw"},
		"escapes":        {"q=a%26b+%3d", "q=%3D+a%26b"},
		"table":          {"sort=-runtime&cols=uuid,%20name", "cols=id%2Cname&sort=-run"},
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
	q := parse(t, "q=x+state:retry,failure&sort=run&cursor="+cursor)
	const plain = "/tasks?q=state%3Afailure%2Cretry+x&sort=run"
	retry := lang.Equal(lang.State, "RETRY")
	tests := map[string]struct {
		query query.Tasks
		want  string
	}{
		"itself":         {q, "/tasks?cursor=" + cursor + "&q=state%3Afailure%2Cretry+x&sort=run"},
		"first page":     {q.First(), plain},
		"newer page":     {q.After(&pos, true), "/tasks?cursor=" + query.Encode(pos, true) + "&q=state%3Afailure%2Cretry+x&sort=run"},
		"no newer page":  {q.After(nil, true), plain},
		"state off":      {q.Toggle(retry), "/tasks?q=state%3Afailure+x&sort=run"},
		"twice toggled":  {q.Toggle(retry).Toggle(retry), plain},
		"state on":       {q.Toggle(lang.Equal(lang.State, "pending")), "/tasks?q=state%3Afailure%2Cpending%2Cretry+x&sort=run"},
		"another query":  {q.Where(lang.New(retry)), "/tasks?q=state%3Aretry&sort=run"},
		"another order":  {q.By(lang.Sort{Field: lang.Sent}), "/tasks?q=state%3Afailure%2Cretry+x&sort=-sent"},
		"everything":     {query.Tasks{}, "/tasks"},
		"made by hand":   {query.Tasks{Limit: 10}.Show(lang.Name, lang.Run), "/tasks?cols=name%2Crun&limit=10"},
		"still the same": {q, "/tasks?cursor=" + cursor + "&q=state%3Afailure%2Cretry+x&sort=run"},
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

func TestRequest(t *testing.T) {
	t.Parallel()
	pos, now := position(), time.Unix(1_800_000_000, 0)
	q := parse(t, "q=sent:-1h..&sort=-run&cursor="+query.Encode(pos, true))
	want := history.TaskRequest{
		Query: q.Query, Sort: lang.Sort{Field: lang.Run}, Limit: query.DefaultLimit, From: &pos, Newer: true, Now: now,
	}
	if diff := cmp.Diff(want, q.Request(now)); diff != "" {
		t.Errorf("Request (-want +got):\n%s", diff)
	}
}

func TestFiltered(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"": false, "limit=7": false, "sort=run": false, "state=A": true, "name=a": true, "worker=a": true, "q=a": true, "root=a": true,
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
		"cursor=AgAAAAD__________wE", "sort=-run&cols=name,id&q=state:failure+run:%3E2s", "q=%22&state=a", "offset=1&limit=-1", "a;b=%zz",
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
		if limit := q.Request(time.Time{}).Limit; limit < 1 || limit > query.MaxLimit {
			t.Fatalf("Parse(%q) limit = %d", raw, limit)
		}
		q.Text = q.Query.String()
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
