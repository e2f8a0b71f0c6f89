package web

import (
	"context"

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

func (p *overviewPage) load(ctx context.Context, a address) (page, error) {
	chart, _ := query.ParseChart(a.query.Get("chart")) // a wrong one shows the usual one
	chart.Span, _ = query.ParseSpan(a.query)           // likewise
	v := templates.Overview{Rates: p.backend.Rates(), Health: p.backend.Health()}
	v.Chart = p.charts.chart(ctx, lang.Query{}, chart, func(c query.Chart) string { return c.URL(p.urls.Prefix + "/") })
	v.Failing, v.FailuresReadable = p.failures.failing(ctx)
	v.Before = p.precedents(ctx, v.Failing...)
	if p.flow != nil && p.instant == nil {
		v.Flow = p.flow.Verdict(ctx)
	}
	if p.commands != nil && p.instant == nil {
		v.Backlog = p.commands.Queues.Snapshot().Backlog()
	}
	if p.instant == nil {
		v.JustResolved = p.failures.justResolved(ctx, a)
	}
	var err error
	if v.Failures, err = p.newest(ctx, state.Query{States: []state.State{state.Failure}, Limit: recentFailures}); err != nil {
		return page{}, err
	}
	pg := page{url: chart.URL("/"), title: "Overview", section: templates.SectionOverview}
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
