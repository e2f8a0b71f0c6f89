package query_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/query"
)

func TestParseCommands(t *testing.T) {
	t.Parallel()
	dead, sent := history.CommandDead, history.CommandSent
	for raw, want := range map[string]query.Commands{
		"":                              {},
		"state=&kind=&worker=&cursor=":  {},
		"state=sent,DEAD&state=dead":    {States: []history.CommandState{dead, sent}},
		"kind=task&task=a%2Fb&limit=50": {Kind: "task", Task: "a/b"},
		"worker=celery@w/1&actor=0":     {Worker: "celery@w/1", Actor: "0"},
		"request=7&cursor=9&limit=500":  {Request: 7, Before: 9, Limit: 500},
	} {
		v, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := query.ParseCommands(v)
		if err != nil {
			t.Errorf("ParseCommands(%q): %v", raw, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseCommands(%q) (-want +got):\n%s", raw, diff)
		}
		u, err := url.Parse(got.URL("/outbox"))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := query.ParseCommands(u.Query()); err != nil || cmp.Diff(got, again) != "" {
			t.Errorf("%s reads back as %+v, %v", u, again, err)
		}
	}
}

func TestParseCommandsNamesTheWrongParameter(t *testing.T) {
	t.Parallel()
	for raw, param := range map[string]string{
		"state=lost":                         "state",
		"state=a%20b":                        "state",
		"kind=event":                         "kind",
		"kind=task&kind=purge":               "kind",
		"request=0":                          "request",
		"request=-1":                         "request",
		"request=01":                         "request",
		"request=x":                          "request",
		"cursor=9223372036854775808":         "cursor",
		"limit=501":                          "limit",
		"worker=" + strings.Repeat("x", 2e3): "worker",
		"state=lost&b=2":                     "state",
	} {
		v, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = query.ParseCommands(v)
		wrong, ok := errors.AsType[*query.Error](err)
		if !ok || wrong.Param != param {
			t.Errorf("ParseCommands(%.40q) = %v, want an error of %s", raw, err, param)
		}
	}
}

func TestParseCursor(t *testing.T) {
	t.Parallel()
	before, limit, err := query.ParseCursor(url.Values{"cursor": {"12"}, "limit": {"3"}})
	if before != 12 || limit != 3 || err != nil {
		t.Errorf("ParseCursor = %d, %d, %v, want 12, 3", before, limit, err)
	}
	before, limit, err = query.ParseCursor(url.Values{"cursor": {""}})
	if before != 0 || limit != query.DefaultLimit || err != nil {
		t.Errorf("ParseCursor = %d, %d, %v, want the newest %d", before, limit, err, query.DefaultLimit)
	}
	for _, v := range []url.Values{{"cursor": {"x"}}, {"limit": {"0"}}} {
		if _, _, err := query.ParseCursor(v); err == nil {
			t.Errorf("ParseAudit(%v) = nil, want an error", v)
		}
	}
}

func FuzzParseCommands(f *testing.F) {
	for _, raw := range []string{"", "state=dead,sent&kind=task", "request=7&cursor=9&limit=3", "worker=a%2Fb&actor=%00", "state=%ff", "cursor=1e3"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q, err := query.ParseCommands(v)
		if err != nil {
			return
		}
		u, err := url.Parse(q.URL("/outbox"))
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if again, err := query.ParseCommands(u.Query()); err != nil || cmp.Diff(q, again) != "" {
			t.Errorf("%q reads back from %s as %+v, %v, want %+v", raw, u, again, err, q)
		}
	})
}
