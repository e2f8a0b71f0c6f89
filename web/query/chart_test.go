package query_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/umbelhq/umbel/web/query"
)

func TestChart(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":               "",
		"1h,count,state": "",
		"name,7d":        "7d,name",
		"run,worker,off": "off,run,worker",
	} {
		c, err := query.ParseChart(in)
		if err != nil || c.String() != want {
			t.Errorf("ParseChart(%q) = %q, %v, want %q", in, c, err, want)
		}
		if again, err := query.ParseChart(c.String()); err != nil || again != c {
			t.Errorf("ParseChart(%q) = %v, %v, want %v", c, again, err, c)
		}
	}
	for _, in := range []string{"2h", "9-12", "-", ",", "on", "NAME"} {
		if c, err := query.ParseChart(in); err == nil {
			t.Errorf("ParseChart(%q) = %v, want an error", in, c)
		}
	}
}

func TestChartRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string][2]time.Time{
		"":   {now.Add(-time.Hour), now},
		"7d": {now.Add(-7 * 24 * time.Hour), now},
	} {
		c, err := query.ParseChart(in)
		from, to := c.Range(now)
		if err != nil || !from.Equal(want[0]) || !to.Equal(want[1]) {
			t.Errorf("range of %q = %v to %v, %v, want %v", in, from, to, err, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	const query1 = "since=2026-11-21T10%3A00%3A00Z&until=2026-11-21T10%3A20%3A00Z"
	for in, want := range map[string]string{
		"":                                  "/tasks",
		query1:                              "/tasks?" + query1,
		"since=1795255200&until=1795256400": "/tasks?" + query1,
		"until=2026-11-21T11:20:00%2B01:00&chart=7d&since=2026-11-21T10:00Z":      "",
		"until=2026-11-21T11:20:00%2B01:00&chart=7d&since=2026-11-21T10:00:00.5Z": "/tasks?chart=7d&" + query1,
		"since=2026-11-21T10:00:00Z":                            "",
		"until=2026-11-21T10:00:00Z":                            "",
		"since=now&until=2026-11-21T10:00:00Z":                  "",
		"since=2026-11-21T10:20:00Z&until=2026-11-21T10:00:00Z": "",
		"since=2024-11-21T10:20:00Z&until=2026-11-21T10:00:00Z": "",
	} {
		v, err := url.ParseQuery(in)
		if err != nil {
			t.Fatal(err)
		}
		q, err := query.Parse(v)
		if _, wrong := errors.AsType[*query.Error](err); wrong != (want == "") {
			t.Errorf("Parse(%s) error = %v", in, err)
		}
		if got := q.URL("/tasks"); want != "" && got != want {
			t.Errorf("address of %s = %s, want %s", in, got, want)
		}
	}
	q, err := query.Parse(url.Values{"q": {"state:failure"}, "since": {"1795255200"}, "until": {"1795256400"}})
	if got := q.Narrowed().String(); err != nil || got != "state:failure updated:2026-11-21T10:00Z..2026-11-21T10:19:59.999999Z" {
		t.Errorf("narrowed query = %q, %v", got, err)
	}
}

func TestParseMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"": now, "now": now, "-90m": now.Add(-90 * time.Minute), "-7d": now.Add(-7 * 24 * time.Hour),
		"2026-11-21T10:00:00Z": now.Add(-2 * time.Hour),
	} {
		if got, err := query.ParseMoment("from", in, now); err != nil || !got.Equal(want) {
			t.Errorf("ParseMoment(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"-", "-0h", "-1", "-h", "1h", "--1h", "-1y", "yesterday", "-99999999999d"} {
		_, err := query.ParseMoment("from", in, now)
		if wrong, ok := errors.AsType[*query.Error](err); !ok || wrong.Param != "from" {
			t.Errorf("ParseMoment(%q) error = %v, want one about from", in, err)
		}
	}
}
