package query

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/rollup"
)

// Chart is the parameter chart: what a chart above a list shows, "7d,run,worker", "off" if it is hidden. Each part
// may be missing and stands for itself, in any order. The zero value shows how many tasks there were in the last
// hour.
type Chart struct {
	Off     bool
	Last    string       // one of Ranges, empty for the first
	Span                 // shown instead of Last, if there is one
	Measure string       // one of Measures, empty for the first
	Group   rollup.Group // one of Groups, empty for the first
}

// What charts show, the default first. Ranges are those that pages offer.
const (
	MeasureCount = "count"
	MeasureWait  = "wait"
	MeasureRun   = "run"
)

// Ranges returns what a chart may go back.
func Ranges() []string { return []string{"1h", "6h", "24h", "7d", "30d"} }

// Measures returns what a chart may show.
func Measures() []string { return []string{MeasureCount, MeasureWait, MeasureRun} }

// Groups returns what a chart may be grouped by.
func Groups() []rollup.Group {
	return []rollup.Group{rollup.ByState, rollup.ByName, rollup.ByWorker, rollup.ByQueue}
}

// ParseChart reads the parameter. The error is an *Error.
func ParseChart(s string) (Chart, error) {
	c, err := parseChart(s, Ranges(), Measures(), Groups())
	if err != nil {
		return Chart{}, err
	}
	return c, nil
}

// parseChart reads the parameter of a chart with these choices.
func parseChart(s string, ranges, measures []string, groups []rollup.Group) (Chart, *Error) {
	var c Chart
	if s == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		switch {
		case part == "off":
			c.Off = true
		case slices.Contains(ranges, part):
			c.Last = part
		case slices.Contains(measures, part):
			c.Measure = part
		case slices.Contains(groups, rollup.Group(part)):
			c.Group = rollup.Group(part)
		default:
			return Chart{}, wrongChart(part, ranges, measures, groups)
		}
	}
	return c.normal(), nil
}

func wrongChart(part string, ranges, measures []string, groups []rollup.Group) *Error {
	all := slices.Concat([]string{"off"}, measures, ranges)
	for _, g := range groups {
		all = append(all, string(g))
	}
	return &Error{Param: paramChart, Message: fmt.Sprintf("has a part %q; these are: %s", part, strings.Join(all, ", "))}
}

// normal leaves defaults out.
func (c Chart) normal() Chart {
	if c.Last == Ranges()[0] {
		c.Last = ""
	}
	if c.Measure == MeasureCount || c.Measure == MeasureReady {
		c.Measure = ""
	}
	if c.Group == rollup.ByState {
		c.Group = ""
	}
	return c
}

// String returns the one spelling of the parameter, without defaults and without the span, which has parameters of its own.
func (c Chart) String() string {
	c = c.normal()
	var parts []string
	if c.Off {
		parts = append(parts, "off")
	}
	for _, part := range []string{c.Last, c.Measure, string(c.Group)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ",")
}

// Range returns the time that the chart covers, as of now.
func (c Chart) Range(now time.Time) (from, to time.Time) {
	if c.To != 0 {
		return time.Unix(c.From, 0), time.Unix(c.To, 0)
	}
	ago, _ := length(cmp.Or(c.Last, Ranges()[0]))
	return now.Add(-ago), now
}

// ParseMoment reads a moment: RFC 3339, or a distance before now such as -90m, -24h, -7d; empty is now.
func ParseMoment(param, s string, now time.Time) (time.Time, error) {
	if s == "" || s == "now" {
		return now, nil
	}
	if ago, found := strings.CutPrefix(s, "-"); found {
		if d, ok := length(ago); ok {
			return now.Add(-d), nil
		}
	} else if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.Time{}, &Error{Param: param, Message: "must be a time such as 2026-11-21T10:00:00Z, or an offset from now such as -24h"}
}

// length reads a whole number of minutes, hours or days.
func length(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	unit, ok := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 20)
	return time.Duration(n) * unit, ok && err == nil && n > 0
}
