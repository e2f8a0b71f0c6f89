package query_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state/query"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"nothing":                      {"", ""},
		"space":                        {" \t\n", ""},
		"free text":                    {"timeout", "timeout"},
		"words must all be there":      {"two  words", "two words"},
		"phrase":                       {`"two words"`, `"two words"`},
		"needless quotes":              {`"timeout"`, "timeout"},
		"quoted keyword":               {`"OR"`, `"OR"`},
		"keywords are upper case":      {"this or that", "or that this"},
		"escapes":                      {`"say \"hi\" \\ \n"`, `"say \"hi\" \\ \\n"`},
		"text with commas":             {"1,2", `"1,2"`},
		"text with a colon":            {"10:30", `"10:30"`},
		"text that begins like a not":  {`"-x"`, `"-x"`},
		"wildcards in text":            {"*time*out*", "time*out"},
		"text at any place":            {"~timeout", "timeout"},
		"anything":                     {"**", "*"},
		"state in any case":            {"STATE:Failure", "state:failure"},
		"list":                         {"state:retry,failure,RETRY", "state:failure,retry"},
		"custom state":                 {"state:half-way_2", "state:half-way_2"},
		"alternatives of one field":    {"state:retry OR state:failure", "state:failure,retry"},
		"other names":                  {"host:a exception:x traceback:y runtime:0 uuid:z", "exc:x id:z run:0 trace:y worker:a"},
		"pattern":                      {"name:billing.**", "name:billing.*"},
		"pattern with space":           {`name:"a b"*`, `name:"a b"*`},
		"quoted star":                  {`name:"a*"`, `name:"a*"`},
		"part of a word":               {"name:~Pay", "name:~Pay"},
		"known":                        {"queue:* exc:*", "exc:* queue:*"},
		"not":                          {"NOT state:success -is:orphan", "-is:orphaned -state:success"},
		"not not":                      {"NOT -x", "x"},
		"and":                          {"a AND b", "a b"},
		"repetition":                   {"b a b", "a b"},
		"or binds less than and":       {"c b OR a", "a OR b c"},
		"parentheses":                  {"((a OR b) c)", "(a OR b) c"},
		"needless parentheses":         {"(a) ((b))", "a b"},
		"not of several":               {"-(b a)", "-(a b)"},
		"nested alternatives":          {"a OR (b OR (c OR a))", "a OR b OR c"},
		"above":                        {"run:>2s", "run:>2s"},
		"at least":                     {"run:2s..", "run:>=2s"},
		"below":                        {"wait:<150ms", "wait:<150ms"},
		"at most":                      {"wait:..1h30m", "wait:<=1h30m"},
		"between":                      {"run:90s..1.5h", "run:1m30s..1h30m"},
		"exactly":                      {"run:2s", "run:2s"},
		"long durations":               {"run:<1w12h wait:>-1.5ms", "run:<7d12h wait:>-1.5ms"},
		"microseconds":                 {"run:2.000001s,15us", "run:15us,2.000001s"},
		"numbers":                      {"retries:>0 clock:1..3,7", "clock:1..3,7 retries:>0"},
		"day":                          {"received:2026-11-20", "received:2026-11-20"},
		"days":                         {"received:2026-11-20..2026-11-21", "received:2026-11-20..2026-11-21"},
		"from a day on":                {"received:>=2026-11-20", "received:>=2026-11-20"},
		"after a day":                  {"received:>2026-11-20", "received:>=2026-11-21"},
		"before a day":                 {"received:<2026-11-20", "received:<2026-11-20"},
		"up to a day":                  {"received:<=2026-11-20", "received:<=2026-11-20"},
		"a minute":                     {"started:2026-11-20T10:00", "started:2026-11-20T10:00Z..2026-11-20T10:00:59.999999Z"},
		"times of one day":             {"started:2026-11-20T10:00..11:00", "started:2026-11-20T10:00Z..2026-11-20T11:00Z"},
		"zone":                         {"sent:>2026-11-20T10:00:00.5+02:00", "sent:>2026-11-20T08:00:00.5Z"},
		"zone for both times of a day": {"sent:2026-11-20T10+02:00..11:30", "sent:2026-11-20T08:00Z..2026-11-20T09:30Z"},
		"an instant":                   {"sent:2026-11-20T10:00:00..2026-11-20T10:00:00", "sent:2026-11-20T10:00Z..2026-11-20T10:00Z"},
		"since":                        {"received:-60m..", "received:>=-1h"},
		"relative":                     {"received:now-7d..-1d eta:..now expires:<+1h", "eta:<=now expires:<+1h received:-7d..-1d"},
		"time known":                   {"finished:*", "finished:*"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := query.Parse(tt.in)
			if err != nil {
				t.Fatalf("Parse(%q): %v", tt.in, err)
			}
			if got := q.String(); got != tt.want {
				t.Errorf("canonical form of %q = %q, want %q", tt.in, got, tt.want)
			}
			again, err := query.Parse(q.String())
			if err != nil || again.String() != q.String() {
				t.Errorf("Parse(%q) = %q, %v, want the same", q, again, err)
			}
		})
	}
}

func TestParseMarksTheWrongToken(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, marked, nearest string }{
		"field":                 {"a naem:b", "naem", "name"},
		"alias":                 {"runtme:2s", "runtme", "run"},
		"no such field":         {"http://x", "http", ""},
		"part of a text":        {"args.0:42", "args.0", "args"},
		"no value":              {"state: x", ":", ""},
		"no value in list":      {"state:a,,b", ",", ""},
		"state":                 {"state:a.b", "a.b", ""},
		"is":                    {"is:orphand", "orphand", "orphaned"},
		"time":                  {"sent:yesterday", "yesterday", ""},
		"single instant":        {"sent:-1h", "-1h", ""},
		"day that is none":      {"sent:>2026-02-30", ">2026-02-30", ""},
		"year beyond":           {"sent:>9999-12-31", ">9999-12-31", ""},
		"duration":              {"run:>5", ">5", ""},
		"duration overflows":    {"run:>99999999999999w", ">99999999999999w", ""},
		"too fine":              {"run:1.5us", "1.5us", ""},
		"number":                {"retries:1.5", "1.5", ""},
		"number overflows":      {"retries:99999999999999999999", "99999999999999999999", ""},
		"range backwards":       {"retries:5..2", "5..2", ""},
		"text compared":         {"name:>b", ">b", ""},
		"expression":            {"exc:/a+/", "/a+/", ""},
		"star in and out":       {`name:"a*"*`, `"a*"*`, ""},
		"part with a star":      {"name:~a*b", "~a*b", ""},
		"quote":                 {`a "b c`, `"b c`, ""},
		"parenthesis open":      {"a (b", "(", ""},
		"parenthesis closed":    {"a) b", ")", ""},
		"parenthesis in a word": {"KeyError('x')", "KeyError(", ""},
		"parenthesis of values": {"state:(a OR b)", "(", ""},
		"empty parentheses":     {"a ()", "(", ""},
		"or at the start":       {" OR a", "OR", ""},
		"closed at the start":   {") a", ")", ""},
		"or at the end":         {"a OR ", "OR", ""},
		"or twice":              {"a OR OR b", "OR", ""},
		"and at the end":        {"a AND", "AND", ""},
		"and or":                {"a AND OR b", "OR", ""},
		"and at the start":      {"AND a", "AND", ""},
		"not at the end":        {"a NOT", "NOT", ""},
		"minus alone":           {"a - b", "-", ""},
		"too deep":              {"((((((((a)))))))) (((((((((b)))))))))", "(", ""},
		"empty text":            {`a ""`, `""`, ""},
		"not text":              {"a \xff b", "\xff", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := query.Parse(tt.in)
			wrong, ok := errors.AsType[*query.Error](err)
			if !ok {
				t.Fatalf("Parse(%q) = %q, %v, want a *query.Error", tt.in, q, err)
			}
			if got := tt.in[wrong.Offset : wrong.Offset+wrong.Length]; got != tt.marked || wrong.Nearest != tt.nearest {
				t.Errorf("Parse(%q) marks %q, nearest %q, want %q, %q: %v", tt.in, got, wrong.Nearest, tt.marked, tt.nearest, err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in string
		ok bool
	}{
		"longest":         {strings.Repeat("é", query.MaxLength), true},
		"too long":        {strings.Repeat("é", query.MaxLength+1), false},
		"most words":      {strings.Repeat("a ", query.MaxTokens), true},
		"too many words":  {strings.Repeat("a ", query.MaxTokens+1), false},
		"most values":     {"name:a" + strings.Repeat(",a", query.MaxTokens-2), true},
		"too many values": {"name:a" + strings.Repeat(",a", query.MaxTokens-1), false},
		"deepest":         {strings.Repeat("(", query.MaxDepth) + "a" + strings.Repeat(")", query.MaxDepth), true},
		"too deep":        {strings.Repeat("(", query.MaxDepth+1) + "a" + strings.Repeat(")", query.MaxDepth+1), false},
		"too many nots":   {strings.Repeat("-", query.MaxDepth+1) + "a", false},
		"long spelled":    {`"` + strings.Repeat(`\ `, query.MaxLength/2-1) + `"`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := query.Parse(tt.in); (err == nil) != tt.ok {
				t.Errorf("error = %v, want none: %v", err, tt.ok)
			}
		})
	}
}
