package templates

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/deploys"
)

// Chart is what happened over time, drawn by a script from the table that everybody can read.
type Chart struct {
	Title   string
	Ranges  []Choice
	Shows   []Choice
	Groups  []Choice
	Toggle  Link // shows or hides the chart
	Off     bool
	Brush   string         // address without a span of time, to which the script adds since and until
	Reset   *ChartSpan     // the span that is shown, nil if none was chosen
	Marks   []deploys.Mark // oldest first
	Columns []ChartColumn
	Rows    []ChartRow // newest first
	Step    time.Duration
	Seconds bool   // values are seconds, else counts
	Strip   bool   // drawn low, above a list
	Note    string // what the numbers are made from, empty if from all that was counted
}

// Choice is one of several ways to show something.
type Choice struct {
	Text, Href string
	Current    bool
}

// ChartSpan is a span of time, µs, and the address of the page without it.
type ChartSpan struct {
	From, To int64
	Href     string
}

// ChartColumn is what one column of the table is drawn as. Color is the name of a token.
type ChartColumn struct {
	Name, Color string
	Draw        ChartDraw
}

// ChartDraw says how a column is drawn.
type ChartDraw string

// The ways to draw.
const (
	Line    ChartDraw = ""
	Stacked ChartDraw = "stacked" // bars that stand on those of the columns before
	Apart   ChartDraw = "apart"   // bars below the others, on a scale of their own
)

// ChartRow is one step. Nil is unknown.
type ChartRow struct {
	At         int64 // µs
	Cells      []*float64
	Unfinished bool // the step goes on: more may come
}

// chartRows is the id of the list of rows.
const chartRows = "chart-rows"

// shownMarks is how many marks are listed below a chart; the table has all.
const shownMarks = 8

// marksIn are the marks of a row.
func (v Chart) marksIn(r ChartRow) []deploys.Mark { return within(v.Marks, r.At, v.Step) }

// within are the marks of a step.
func within(marks []deploys.Mark, from int64, step time.Duration) []deploys.Mark {
	var list []deploys.Mark
	for _, m := range marks {
		if at := m.At.UnixMicro(); at >= from && at < from+step.Microseconds() {
			list = append(list, m)
		}
	}
	return list
}

// markTitle is what a mark says when there is room.
func markTitle(m deploys.Mark) string {
	text := m.Label()
	if m.Version != "" && !strings.Contains(text, m.Version) {
		text += " (" + m.Version + ")"
	}
	if m.By != "" {
		text += ", by " + m.By
	}
	if n := len(m.Workers); n > 1 {
		text += ": " + strings.Join(m.Workers[:min(n, 5)], ", ")
		if n > 5 {
			text += ", …"
		}
	}
	return text
}

// unheard reports whether nothing is known of some step of a chart of counts.
func (v Chart) unheard() bool {
	return !v.Seconds && slices.ContainsFunc(v.Rows, func(r ChartRow) bool {
		return !slices.ContainsFunc(r.Cells, func(f *float64) bool { return f != nil })
	})
}

// nothing reports whether a chart that is shown has steps, and in none of them anything.
func (v Chart) nothing() bool {
	return !v.Off && len(v.Rows) > 0 && !slices.ContainsFunc(v.Rows, func(r ChartRow) bool {
		return slices.ContainsFunc(r.Cells, func(f *float64) bool { return f != nil && *f > 0 })
	})
}

func markSeconds(m deploys.Mark) string { return strconv.FormatInt(m.At.Unix(), 10) }

// markLine is a line from top to bottom.
func markLine(x float64, height int) string { return fmt.Sprintf("M%.1f 0v%d", x, height) }

// markTime is the time of a mark, with its day if that is not clear.
func markTime(m deploys.Mark, days bool) string {
	if days {
		return m.At.Format("2 Jan 15:04")
	}
	return m.At.Format("15:04")
}

func (v Chart) stepSeconds() string { return strconv.FormatInt(int64(v.Step/time.Second), 10) }

// oneDay reports whether both ends are on one day.
func (s ChartSpan) oneDay() bool {
	from, to := utc(s.From), utc(s.To)
	return from.YearDay() == to.YearDay() && from.Year() == to.Year()
}

func (r ChartRow) id() string { return "c-" + strconv.FormatInt(r.At/1_000_000, 10) }

func (r ChartRow) seconds() string { return strconv.FormatInt(r.At/1_000_000, 10) }

func (v Chart) cell(f float64) string {
	if v.Seconds {
		return duration(f)
	}
	return number(int64(f))
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// stepTime is the start of a step, as short as the length of the steps allows.
func (v Chart) stepTime(r ChartRow) string {
	if v.Step >= 24*time.Hour {
		return utc(r.At).Format("2 Jan 2006")
	}
	return utc(r.At).Format("2 Jan 15:04")
}

func (v Chart) every() string { return duration(v.Step.Seconds()) }

func href(c Choice) templ.SafeURL { return templ.SafeURL(c.Href) }
