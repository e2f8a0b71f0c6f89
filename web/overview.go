package web

import (
	"cmp"
	"context"
	"net/url"
	"slices"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/view"
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
	health := p.backend.Health()
	v := templates.Overview{
		Rates: rates(p.backend.Rates()),
		Ingest: templates.Ingest{
			Broker:   brokerView(health),
			Messages: health.Messages,
			Events:   health.Events,
			Rejected: rejections(health.Rejected),
		},
	}
	v.Chart = p.charts.chart(ctx, lang.Query{}, chart, func(c query.Chart) string { return withChart(p.urls.Prefix+"/", c) })
	v.Failing, v.FailuresReadable = p.failures.failing(ctx)
	v.JustResolved = p.failures.justResolved(ctx, a)
	pg := page{url: withChart("/", chart), title: "Overview", section: templates.SectionOverview}
	p.backend.View(func(c state.View) {
		pg.version = c.Version()
		v.Counts = c.Counts()
		v.Workers = c.Workers()
		v.Failures = c.Tasks(state.Query{States: []state.State{state.Failure}, Limit: recentFailures}).Tasks
	})
	pg.view = v
	return pg, nil
}

func rates(r view.Rates) templates.Rates {
	return templates.Rates{
		Received:        r.Received,
		Succeeded:       r.Succeeded,
		Failed:          r.Failed,
		Retried:         r.Retried,
		ReceivedSeries:  r.Series.Received,
		SucceededSeries: r.Series.Succeeded,
		FailedSeries:    r.Series.Failed,
		RetriedSeries:   r.Series.Retried,
	}
}

// rejections puts causes into words, the most frequent first.
func rejections(counts map[string]uint64) []templates.Rejection {
	var list []templates.Rejection
	for cause, n := range counts {
		if n > 0 {
			words, lost := explain(cause)
			list = append(list, templates.Rejection{Cause: cause, Words: words, Lost: lost, Count: n})
		}
	}
	slices.SortFunc(list, func(a, b templates.Rejection) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cause, b.Cause))
	})
	return list
}

// explain says what a cause means, and whether it cost whole events. A cause without words speaks for
// itself.
func explain(cause string) (words string, lost bool) {
	switch cause {
	case celery.CauseContentType:
		return "Messages that are not JSON", true
	case celery.CauseMalformed:
		return "Invalid JSON, with the rest of the message", true
	case celery.CauseNotEvent:
		return "JSON that is not an event", true
	case celery.CauseHostname:
		return "Events without a sender", true
	case celery.CauseUUID:
		return "Task events without a valid ID", true
	case celery.CauseTimestamp:
		return "Timestamps replaced by the time of receipt", false
	case celery.CauseClock:
		return "Clocks ignored because they are not valid numbers", false
	case celery.CauseField:
		return "Fields ignored because of their type", false
	case view.CauseSymbols:
		return "Names beyond the limit, shown as (other)", false
	case view.CauseEvents:
		return "Events beyond the limit per task", false
	}
	return cause, true
}
