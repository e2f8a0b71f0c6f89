package web

import (
	"context"
	"net/url"

	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

// recentFailures is how many failures the overview lists.
const recentFailures = 10

// overviewPage is the first page.
type overviewPage struct {
	*common
	charts   *charts
	failures *failurePages
}

// withChart returns path with the chart, if it is not the usual one.
func withChart(path string, c query.Chart) string {
	if c.String() == "" {
		return path
	}
	return path + "?" + url.Values{"chart": {c.String()}}.Encode()
}

func (p *overviewPage) load(ctx context.Context, a address) (page, error) {
	chart, _ := query.ParseChart(a.query.Get("chart")) // a wrong one shows the usual one
	v := templates.Overview{Rates: p.backend.Rates(), Health: p.backend.Health()}
	v.Chart = p.charts.chart(ctx, lang.Query{}, chart, func(c query.Chart) string { return withChart(p.urls.Prefix+"/", c) })
	v.Failing, v.FailuresReadable = p.failures.failing(ctx)
	if p.flow != nil && p.instant == nil {
		v.Flow = p.flow.Verdict(ctx)
	}
	if p.instant == nil {
		v.JustResolved = p.failures.justResolved(ctx, a)
	}
	var err error
	if v.Failures, err = p.newest(ctx, state.Query{States: []state.State{state.Failure}, Limit: recentFailures}); err != nil {
		return page{}, err
	}
	pg := page{url: withChart("/", chart), title: "Overview", section: templates.SectionOverview}
	p.backend.View(func(c state.View) {
		v.Counts = c.Counts()
		v.Workers = c.Workers()
	})
	if p.demo && p.instant == nil {
		v.Tour = p.tour(v)
	}
	pg.view = v
	return pg, nil
}
