package web

import (
	"github.com/umbelhq/umbel/monitor"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// recentFailures is how many failures the overview lists.
const recentFailures = 10

func (p *pages) overviewPage() page {
	health := p.cluster.Health()
	v := templates.Overview{
		Rates: rates(p.cluster.Rates()),
		Ingest: templates.Ingest{
			Broker:   broker(health.Broker),
			Messages: health.Messages,
			Events:   health.Events,
			Rejected: health.Rejected,
		},
	}
	pg := page{topic: "overview", address: "/", title: "Overview", section: templates.SectionOverview}
	p.cluster.View(func(c *state.Cluster) {
		pg.version = c.Version()
		v.Counts = c.Counts()
		v.Workers = c.Workers()
		v.Failures = c.Tasks(state.Query{States: []state.State{state.Failure}, Limit: recentFailures}).Tasks
	})
	pg.view = v
	return pg
}

func rates(r monitor.Rates) templates.Rates {
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
