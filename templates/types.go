package templates

import (
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/tasktype"
)

// TypesPath is the address of the list of task types, below the prefix.
const TypesPath = "/types"

// Types is the content of the page that lists task types.
type Types struct {
	Table       tasktype.Table // Rows, not Types, are shown
	Rows        []tasktype.Row
	Find        string          // words that the names have
	Last        string          // span of time that is counted, "24h"
	Ranges      []Choice        // spans
	Sorts       map[string]Sort // by key
	Found, All  int             // types that match, and all
	First, Next string          // addresses of other pages of the list, empty if there are none
	Unreadable  bool            // the history cannot be read
}

// Page draws the whole page.
func (v Types) Page(l Layout) templ.Component { return types(l, v) }

// TypePath is the address of a type's page, below the prefix.
func TypePath(name string) string { return TypesPath + "/" + url.PathEscape(name) }

func (u URLs) typeOf(name string) templ.SafeURL { return u.path(TypePath(name)) }

// typeRowID is the id of the row of a type.
func typeRowID(name string) string { return "tt-" + url.QueryEscape(name) }

// tasksOfType links to the tasks of a type that were received in the last span of time.
func (u URLs) tasksOfType(name, last string, pairs ...string) templ.SafeURL {
	return u.tasksWhere(append([]string{"name", name, "q", "received:-" + last + ".."}, pairs...)...)
}

// together reports whether a row counts tasks of several names.
func together(r tasktype.Row) bool { return r.Name == rollup.Other || r.Name == "" }

// anyTogether reports whether some tasks were counted under no name of their own.
func (v Types) anyTogether() bool {
	for i := range v.Rows {
		if v.Rows[i].Name == rollup.Other {
			return true
		}
	}
	return false
}

// rate is how many tasks there are in a second, a minute or an hour.
func rate(perSecond float64) string {
	for _, unit := range []struct {
		seconds float64
		name    string
	}{{1, "s"}, {60, "min"}, {3600, "h"}} {
		if n := perSecond * unit.seconds; n >= 0.995 || unit.name == "h" {
			return decimal(n) + thin + "/" + thin + unit.name
		}
	}
	return ""
}

// quantile is a percentile in seconds, nil if it is unknown.
func quantile(h rollup.Histogram, share float64) *float64 {
	if len(h) == 0 {
		return nil
	}
	return seconds(h.Quantile(share))
}

// typeTrend are the ended tasks of each step: those that succeeded, then those that failed.
func typeTrend(steps []tasktype.Step) (succeeded, failed []float64) {
	for _, s := range steps {
		succeeded = append(succeeded, float64(s.Succeeded))
		failed = append(failed, float64(s.Failed))
	}
	return succeeded, failed
}

// typeTrendWords describe the trend.
func typeTrendWords(t tasktype.Table, r tasktype.Row) string {
	succeeded, failed := typeTrend(r.Trend)
	words := plural(len(r.Trend), "step", "steps") + " of " + duration(t.Step.Seconds()) + ": at most " + decimal(peak(sum(succeeded, failed))) +
		" tasks ended in one, at most " + decimal(peak(failed)) + " of them failed"
	unknown := 0
	for _, s := range r.Trend {
		if !s.Observed {
			unknown++
		}
	}
	if unknown > 0 {
		words += "; unknown in " + number(unknown)
	}
	return words
}

// driftWords are a change with its sign: +42 %.
func driftWords(d *tasktype.Drift) string {
	p := math.Round(100 * d.Change)
	switch {
	case p > 0:
		return "+" + number(int64(p)) + thin + "%"
	case p < 0:
		return "−" + number(int64(-p)) + thin + "%"
	}
	return "±0" + thin + "%"
}

// driftTitle says what is compared.
func driftTitle(d *tasktype.Drift) string {
	return "Median " + duration(*seconds(d.Now)) + "; in the week before " + duration(*seconds(d.Median)) + " ± " + duration(*seconds(d.MAD)) +
		" (median and MAD of the medians of " + number(d.Hours) + " hours)"
}

// places are names of workers or queues, in one line.
func placesWords(p tasktype.Places) string {
	words := strings.Join(p.Names, ", ")
	if p.More {
		words += " and more"
	}
	return words
}

// placesCount is the number of names.
func placesCount(p tasktype.Places) string {
	n := strconv.Itoa(len(p.Names))
	if p.More {
		n += "+"
	}
	return n
}

// order is how the list is sorted by a column, whose keys are every second of more and key; empty if by another.
func (v Types) order(key string, more []string) string {
	order := v.Sorts[key].Order
	for i := 1; i < len(more); i += 2 {
		order += v.Sorts[more[i]].Order
	}
	return order
}
