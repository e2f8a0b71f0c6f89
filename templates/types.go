package templates

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state/query"
)

// TypesPath is the address of the list of task types, below the prefix.
const TypesPath = "/types"

// Types is the content of the page that lists task types.
type Types struct {
	Table       tasktype.Table // Rows, not Types, are shown
	Rows        []tasktype.Row
	Find        string // words that the names have
	Counted     Counted
	Ranges      []Choice        // spans
	Sorts       map[string]Sort // by key
	Found, All  int             // types that match, and all
	First, Next string          // addresses of other pages of the list, empty if there are none
	Unreadable  bool            // the history cannot be read
}

// Counted is the span of time that a page counts.
type Counted struct {
	Last     string     // "24h"
	Then     bool       // as of an instant, before which the counting ends
	Chosen   *ChartSpan // counted instead, if it was chosen by its ends
	From, To int64      // what was counted, in whole steps, µs; needed for a span that was chosen
	Carry    string     // query of addresses that leads to the same span, "?last=7d", empty for the usual one
}

// Phrase says when: "in the last 24h".
func (c Counted) Phrase() string {
	if c.Chosen != nil {
		return "in this time"
	}
	if c.Then {
		return "in the " + c.Last + " before"
	}
	return "in the last " + c.Last
}

// condition finds the tasks with a time in the span.
func (c Counted) condition(of query.Field) string {
	if c.Chosen != nil {
		return query.New(query.Between(of, c.From, c.To)).String()
	}
	return of.String() + ":-" + c.Last + ".."
}

// Page draws the whole page.
func (v Types) Page(l Layout) templ.Component { return types(l, v) }

// TypePath is the address of a type's page, below the prefix.
func TypePath(name string) string { return TypesPath + "/" + url.PathEscape(name) }

func (u URLs) typeOf(name string) templ.SafeURL { return u.path(TypePath(name)) }

// typeRowID is the id of the row of a type.
func typeRowID(name string) string { return "tt-" + url.QueryEscape(name) }

// endedOfType links to the tasks of a type that ended in a span of time.
func (u URLs) endedOfType(name string, in Counted, pairs ...string) templ.SafeURL {
	return u.tasksWhere(append([]string{"name", name, "q", in.condition(query.Finished) + " state:failure,success"}, pairs...)...)
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
func typeTrendWords(step time.Duration, trend []tasktype.Step) string {
	succeeded, failed := typeTrend(trend)
	words := plural(len(trend), "step", "steps") + " of " + duration(step.Seconds()) + ": at most " + decimal(peak(sum(succeeded, failed))) +
		" tasks ended in one, at most " + decimal(peak(failed)) + " of them failed"
	unknown := 0
	for _, s := range trend {
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

// TaskType is the content of the page of one type.
type TaskType struct {
	Name    string
	Detail  tasktype.Detail
	Drift   *tasktype.Drift // nil if unknown
	Sample  tasktype.Sample
	Counted Counted
	Ranges  []Choice       // spans
	Slots   int64          // processes of the workers that ran it
	SlotsOf int            // and how many of these workers have told
	Marks   []deploys.Mark // of the span, oldest first
}

// Page draws the whole page.
func (v TaskType) Page(l Layout) templ.Component { return taskType(l, v) }

// The size of a cell of a heat map, in its own units.
const (
	cellWidth  = 6
	cellHeight = 4
)

func heatBox(v TaskType, m tasktype.HeatMap) string {
	return "0 0 " + strconv.Itoa(len(v.Detail.Runs)*cellWidth) + " " + strconv.Itoa(m.Rows*cellHeight)
}

// heatPath draws the cells of a level, the shortest run times at the bottom.
func heatPath(m tasktype.HeatMap, level int) string {
	var b strings.Builder
	for _, c := range m.Cells {
		if c.Level == level {
			b.WriteString("M" + strconv.Itoa(c.Step*cellWidth) + " " + strconv.Itoa((m.Rows-1-c.Row)*cellHeight) + "h6v4h-6z")
		}
	}
	return b.String()
}

// heatWords describe a heat map.
func heatWords(v TaskType, m tasktype.HeatMap) string {
	return "Run times by " + duration(v.Detail.Step.Seconds()) + ": from " + duration(*seconds(m.Low)) + " at the bottom to " + duration(*seconds(m.High)) +
		" at the top; up to " + plural(m.Most, "task", "tasks") + " in one cell, the strongest"
}

// place is where a mark is in the heat map.
func (v TaskType) place(m deploys.Mark) float64 {
	return float64(m.At.Sub(v.Detail.From)) / float64(v.Detail.Step) * cellWidth
}

// marksOf are the marks of a step.
func (v TaskType) marksOf(i int) []deploys.Mark {
	from := v.Detail.From.Add(time.Duration(i) * v.Detail.Step)
	return within(v.Marks, from.UnixMicro(), v.Detail.Step)
}

// stepTime is when a step began, µs.
func (v TaskType) stepTime(i int) int64 {
	return v.Detail.From.Add(time.Duration(i) * v.Detail.Step).UnixMicro()
}

// neededWords say how many processes of workers a type keeps busy.
func (v TaskType) neededWords() string {
	n, ok := v.Detail.Needed(&v.Detail.Type)
	if !ok {
		return ""
	}
	return decimal(n.Average) + " on average, " + decimal(n.Busiest) + " in the busiest " + duration(v.Detail.Step.Seconds())
}

// traitField is the field of a trait in words.
func traitField(t tasktype.Trait) string {
	if name, found := strings.CutPrefix(t.Field, "kwargs."); found {
		return name
	}
	return t.Field
}

// shareOf is a part of known tasks.
func shareOf(n, of int) string { return percent(float64(n), float64(max(of, 1))) }

// partQuery finds the tasks of a type in one place.
func partQuery(v TaskType, field, value string) string {
	f, _ := query.FieldNamed(field)
	return query.New(query.And{query.Equal(query.Name, v.Name), query.Equal(f, value)}).String() + " " + v.Counted.condition(query.Received)
}

// meter is a share as an attribute.
func meter(share float64) string { return strconv.FormatFloat(share, 'f', 3, 64) }

// finishedWords are how many tasks ended, and how often.
func (v TaskType) finishedWords() string {
	words := number(v.Detail.Type.Ended())
	if perSecond, ok := v.Detail.PerSecond(&v.Detail.Type); ok {
		words += ", " + rate(perSecond)
	}
	return words
}

// slotsWords say how many tasks the workers that ran the type can run.
func (v TaskType) slotsWords() string {
	all, workers := len(v.Detail.Workers), ""
	if v.SlotsOf < all {
		workers = number(v.SlotsOf) + " of "
	}
	return "They ran on " + plural(all, "worker", "workers") + "; " + workers + "these can run " + number(v.Slots) + " tasks of all types at once."
}
