package templates

import (
	"strconv"
	"time"

	"github.com/a-h/templ"
)

// Chart is what happened over time, drawn by a script from the table that everybody can read.
type Chart struct {
	Title   string
	Ranges  []Choice
	Shows   []Choice
	Groups  []Choice
	Toggle  Link // shows or hides the chart
	Off     bool
	Brush   string // address with another range, where the script writes Unix times in place of 1-2
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

// ChartColumn is a line of a chart. Color is the name of a token.
type ChartColumn struct{ Name, Color string }

// ChartRow is one step. Nil is unknown.
type ChartRow struct {
	At         int64 // µs
	Cells      []*float64
	Unfinished bool // the step goes on: more may come
}

// chartRows is the id of the list of rows.
const chartRows = "chart-rows"

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
