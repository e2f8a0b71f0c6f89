package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

const (
	chartTimeout = 50 * time.Millisecond // for tasks that a page's chart is made from
	chartAge     = 2 * time.Second
)

// charts draws the charts above lists.
type charts struct {
	*common
	cache *cache[rollup.Result] // by chart and query
}

// readSeries returns a series that may be a little old.
func (p *charts) readSeries(ctx context.Context, q lang.Query, chart query.Chart) (rollup.Result, error) {
	return p.cache.get(chart.URL("")+" "+q.String(), func() (rollup.Result, error) {
		now := p.now()
		from, to := chart.Range(now)
		timeout := chartTimeout
		if p.trace != nil {
			timeout = 0
		}
		return rollup.Read(ctx, p.backend, p.backend.History(), rollup.Request{
			Query: q, From: from, To: to, Now: now, Read: p.then.ReadAt(), GroupBy: chart.Group, RankBy: rollup.Measure(chart.Measure),
			OmitHistograms: chart.Measure == "", Timeout: timeout,
		})
	})
}

// chart assembles the chart of a query. link makes the address of the page with another chart.
func (p *charts) chart(ctx context.Context, q lang.Query, c query.Chart, link func(query.Chart) string) templates.Chart {
	off := c
	off.Off = !c.Off
	v := templates.Chart{Title: chartTitle(c), Off: c.Off, Toggle: templates.Link{Text: "Hide", Href: link(off)}}
	if c.Off {
		v.Toggle.Text = "Show"
		return v
	}
	p.choices(&v, c, link)
	s, err := p.readSeries(ctx, q, c)
	if err != nil {
		p.log.Warn("chart not read", "error", err)
		v.Note = "unavailable"
		return v
	}
	v.Step, v.Seconds = s.Step, c.Measure != ""
	switch {
	case s.More:
		v.Note = fmt.Sprintf("from the newest %d matching tasks", s.SampledTasks)
	case s.SampledTasks > 0:
		v.Note = "from matching tasks"
	}
	v.Marks = p.marks(ctx, s.From, s.To)
	lines := chartLines(s, c)
	for _, l := range lines {
		v.Columns = append(v.Columns, l.column)
	}
	now := p.now()
	for i := int(s.To.Sub(s.From)/s.Step) - 1; i >= 0; i-- {
		at := s.From.Add(time.Duration(i) * s.Step)
		if at.After(now) {
			continue
		}
		row := templates.ChartRow{At: at.UnixMicro(), Unfinished: at.Add(s.Step).After(now)}
		for _, l := range lines {
			row.Cells = append(row.Cells, l.value(&l.points[i]))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

func chartTitle(c query.Chart) string {
	switch c.Measure {
	case query.MeasureWait:
		return "Waiting time"
	case query.MeasureRun:
		return "Run time"
	}
	return "Throughput"
}

// choices are the charts that are one step away.
func (p *charts) choices(v *templates.Chart, c query.Chart, link func(query.Chart) string) {
	for _, last := range query.Ranges() {
		other := c
		other.Last, other.Span = last, query.Span{}
		current := c.To == 0 && cmp.Or(c.Last, query.Ranges()[0]) == last
		v.Ranges = append(v.Ranges, templates.Choice{Text: last, Href: link(other), Current: current})
	}
	for _, m := range query.Measures() {
		other := c
		other.Measure = m
		v.Shows = append(v.Shows, templates.Choice{
			Text: m, Href: link(other), Current: cmp.Or(c.Measure, query.MeasureCount) == m,
		})
	}
	for _, g := range query.Groups() {
		other := c
		other.Group = g
		text := string(g)
		if g == rollup.ByState && c.Measure != "" {
			text = "all"
		}
		v.Groups = append(v.Groups, templates.Choice{Text: text, Href: link(other), Current: cmp.Or(c.Group, rollup.ByState) == g})
	}
	spanned(v, c, link)
}

// spanned has a chart lead to other spans of time, and from its own back to none.
func spanned(v *templates.Chart, c query.Chart, link func(query.Chart) string) {
	whole := c
	whole.Span = query.Span{}
	v.Brush = link(whole)
	if c.To != 0 {
		v.Reset = &templates.ChartSpan{From: c.From * 1e6, To: c.To * 1e6, Href: v.Brush}
	}
}

// chartLine is a line of a chart: how its values come from points.
type chartLine struct {
	column templates.ChartColumn
	points []rollup.Point
	value  func(p *rollup.Point) *float64
}

func chartLines(s rollup.Result, c query.Chart) []chartLine {
	if c.Group == "" {
		if c.Measure == "" {
			return countLines(s)
		}
		return []chartLine{
			{templates.ChartColumn{Name: "p50", Color: "--success"}, s.Series[0].Points, percentile(c.Measure, .5)},
			{templates.ChartColumn{Name: "p95", Color: "--retry"}, s.Series[0].Points, percentile(c.Measure, .95)},
			{templates.ChartColumn{Name: "p99", Color: "--failure"}, s.Series[0].Points, percentile(c.Measure, .99)},
		}
	}
	lines := make([]chartLine, 0, len(s.Series)+1)
	for i, l := range s.Series {
		column, value := templates.ChartColumn{Name: cmp.Or(l.Name, "unknown"), Color: groupColor(i, l.Name), Draw: templates.Stacked}, ended
		if c.Measure != "" {
			column.Name, column.Draw, value = column.Name+" p95", templates.Line, percentile(c.Measure, .95)
		}
		lines = append(lines, chartLine{column, l.Points, value})
	}
	if c.Measure == "" && slices.Contains(s.States, state.Failure) && len(s.States) > 1 {
		column := templates.ChartColumn{Name: "failed of these", Color: "--failure", Draw: templates.Apart}
		lines = append(lines, chartLine{column, failures(s.Series), counts(func(p *rollup.Point) int64 { return p.Failed })})
	}
	return lines
}

// groupColor is the token of a group by its rank. Groups have colours of their own: those of states would tell that a group has
// failed, say.
func groupColor(rank int, name string) string {
	const rest = 8 // is grey
	if name == rollup.Other {
		rank = rest - 1
	}
	return "--group-" + strconv.Itoa(min(rank+1, rest))
}

// failures adds up what failed.
func failures(series []rollup.Series) []rollup.Point {
	sum := make([]rollup.Point, len(series[0].Points))
	for _, l := range series {
		for i := range l.Points {
			sum[i].Observed = l.Points[i].Observed
			sum[i].Failed += l.Points[i].Failed
		}
	}
	return sum
}

// countLines are the states whose beginnings are counted. What ends a run adds up; failures, which are few, have a scale of
// their own, unless nothing else is counted.
func countLines(s rollup.Result) []chartLine {
	var lines []chartLine
	add := func(of state.State, name, color string, draw templates.ChartDraw, count func(p *rollup.Point) int64) {
		if slices.Contains(s.States, of) {
			lines = append(lines, chartLine{templates.ChartColumn{Name: name, Color: color, Draw: draw}, s.Series[0].Points, counts(count)})
		}
	}
	apart := templates.Apart
	if len(s.States) == 1 {
		apart = templates.Stacked
	}
	add(state.Received, "received", "--received", templates.Line, func(p *rollup.Point) int64 { return p.Received })
	add(state.Success, "succeeded", "--success", templates.Stacked, func(p *rollup.Point) int64 { return p.Succeeded })
	add(state.Retry, "retried", "--retry", templates.Stacked, func(p *rollup.Point) int64 { return p.Retried })
	add(state.Failure, "failed", "--failure", apart, func(p *rollup.Point) int64 { return p.Failed })
	return lines
}

func counts(count func(p *rollup.Point) int64) func(p *rollup.Point) *float64 {
	return func(p *rollup.Point) *float64 {
		if !p.Observed {
			return nil
		}
		return new(float64(count(p)))
	}
}

// ended is how many tasks succeeded or failed.
func ended(p *rollup.Point) *float64 {
	return counts(func(p *rollup.Point) int64 { return p.Succeeded + p.Failed })(p)
}

func percentile(measure string, share float64) func(p *rollup.Point) *float64 {
	return func(p *rollup.Point) *float64 {
		h := p.Run
		if measure == query.MeasureWait {
			h = p.Wait
		}
		if h.Count() == 0 {
			return nil
		}
		return new(float64(h.Quantile(share)) / 1e6)
	}
}
