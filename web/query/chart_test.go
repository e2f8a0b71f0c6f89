package query_test

import (
	"errors"
	"testing"
	"time"

	"github.com/umbelhq/umbel/web/query"
)

func TestChart(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                               "",
		"1h,count,state":                 "",
		"name,7d":                        "7d,name",
		"run,worker,off":                 "off,run,worker",
		"1795262400-1795266000":          "1795262400-1795266000",
		"1795262400-1795266000,24h":      "24h",
		"24h,1795262400-1795266000,wait": "1795262400-1795266000,wait",
	} {
		c, err := query.ParseChart(in)
		if err != nil || c.String() != want {
			t.Errorf("ParseChart(%q) = %q, %v, want %q", in, c, err, want)
		}
		if again, err := query.ParseChart(c.String()); err != nil || again != c {
			t.Errorf("ParseChart(%q) = %v, %v, want %v", c, again, err, c)
		}
	}
	for _, in := range []string{"2h", "9-9", "9-8", "-", "1-99999999999999999999", ",", "on", "NAME"} {
		if c, err := query.ParseChart(in); err == nil {
			t.Errorf("ParseChart(%q) = %v, want an error", in, c)
		}
	}
}

func TestChartRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string][2]time.Time{
		"":                      {now.Add(-time.Hour), now},
		"7d":                    {now.Add(-7 * 24 * time.Hour), now},
		"1795262400-1795266000": {time.Unix(1795262400, 0), time.Unix(1795266000, 0)},
	} {
		c, err := query.ParseChart(in)
		from, to := c.Range(now)
		if err != nil || !from.Equal(want[0]) || !to.Equal(want[1]) {
			t.Errorf("range of %q = %v to %v, %v, want %v", in, from, to, err, want)
		}
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
