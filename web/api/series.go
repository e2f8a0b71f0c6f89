package api

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// Series counts task events over time. Null means unknown.
type Series struct {
	From        Time         `json:"from"`
	To          Time         `json:"to"`
	StepSeconds int          `json:"step_seconds" doc:"Length of each step; the last one may still be in progress."`
	Lines       []SeriesLine `json:"lines" nullable:"false" doc:"One series when grouped by state, otherwise the seven most frequent and (other)."`
	Tasks       *int         `json:"tasks" doc:"Number of newest matching tasks the result is based on; null if it covers all tasks."`
	Complete    bool         `json:"complete" doc:"Whether these are all matching tasks."`
	Marks       []Mark       `json:"marks" nullable:"false" doc:"Deploys and restarts of workers in this time, oldest first; the newest 100."`
}

// SeriesLine is one line of a series.
type SeriesLine struct {
	Name   *string       `json:"name" doc:"Task name, worker or queue; null for all tasks or if unknown."`
	Points []SeriesPoint `json:"points" nullable:"false" doc:"One point per step."`
}

// SeriesPoint counts one step. Counts are null for times without data.
type SeriesPoint struct {
	At        Time        `json:"at" doc:"Start of the step."`
	Received  *int64      `json:"received"`
	Succeeded *int64      `json:"succeeded"`
	Failed    *int64      `json:"failed"`
	Retried   *int64      `json:"retried"`
	Wait      Percentiles `json:"wait" doc:"Time from sent, or from received if that is unknown, to started."`
	Run       Percentiles `json:"run" doc:"Run time of succeeded tasks, measured by the worker."`
}

// Percentiles of durations, within 1 %. Null means unknown.
type Percentiles struct {
	Count      int64    `json:"count"`
	P50Seconds *float64 `json:"p50_seconds"`
	P95Seconds *float64 `json:"p95_seconds"`
	P99Seconds *float64 `json:"p99_seconds"`
}

func fromSeries(s rollup.Result) Series {
	d := Series{
		From: timeOf(s.From), To: timeOf(s.To), StepSeconds: int(s.Step / time.Second), Complete: !s.More,
		Lines: mapSlice(s.Series, func(l rollup.Series) SeriesLine {
			line := SeriesLine{Name: text(l.Name), Points: make([]SeriesPoint, len(l.Points))}
			for i, p := range l.Points {
				line.Points[i] = fromPoint(s, p)
				line.Points[i].At = timeOf(s.From.Add(time.Duration(i) * s.Step))
			}
			return line
		}),
	}
	if s.SampledTasks > 0 {
		d.Tasks = &s.SampledTasks
	}
	return d
}

func fromPoint(s rollup.Result, p rollup.Point) SeriesPoint {
	count := func(of state.State, n int64) *int64 {
		if !p.Observed || !slices.Contains(s.States, of) {
			return nil
		}
		return &n
	}
	return SeriesPoint{
		Received: count(state.Received, p.Received), Succeeded: count(state.Success, p.Succeeded),
		Failed: count(state.Failure, p.Failed), Retried: count(state.Retry, p.Retried),
		Wait: fromHistogram(p.Wait), Run: fromHistogram(p.Run),
	}
}

func fromHistogram(h rollup.Histogram) Percentiles {
	p := Percentiles{Count: h.Count()}
	if p.Count > 0 {
		at := func(share float64) *float64 { return new(float64(h.Quantile(share)) / 1e6) }
		p.P50Seconds, p.P95Seconds, p.P99Seconds = at(.5), at(.95), at(.99)
	}
	return p
}

func (a *api) registerSeries(h huma.API) {
	op := operation(h, auth.View, "get-series", "/series", "Get task counts over time", unavailable)
	huma.Register(h, op, a.series)
}

type seriesInput struct {
	Q     string `query:"q" maxLength:"2048" doc:"Query in the language of docs/query.md. Queries for names, workers, queues and states are answered from counters of all tasks, others from the newest 10,000 matching tasks." example:"name:billing.*"`
	From  string `query:"from" doc:"Start: an RFC 3339 time or an offset from now. Defaults to one hour ago." example:"-24h"`
	To    string `query:"to" doc:"End: an RFC 3339 time or an offset from now. Defaults to now." example:"2026-11-21T10:00:00Z"`
	Group string `query:"group" enum:"state,name,worker,queue" doc:"Field to group by. Defaults to state, which returns one series." example:"name"`
}

func (a *api) series(ctx context.Context, r *seriesInput) (*response[Series], error) {
	q, err := r.request(a.now())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	q.Read = a.then.ReadAt()
	s, err := rollup.Read(ctx, a.backend, a.backend.History(), q)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	d := fromSeries(s)
	found, err := a.marks(ctx, s.From, s.To, maxSeriesMarks)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	d.Marks = mapSlice(found, fromMark)
	return &response[Series]{d}, nil
}

// request returns the query for the rollups.
func (r *seriesInput) request(now time.Time) (q rollup.Request, err error) {
	q = rollup.Request{Now: now, GroupBy: rollup.Group(r.Group)}
	if q.To, err = query.ParseMoment("to", r.To, now); err != nil {
		return q, err
	}
	q.From = q.To.Add(-time.Hour)
	if r.From != "" {
		if q.From, err = query.ParseMoment("from", r.From, now); err != nil {
			return q, err
		}
	}
	if !q.From.Before(q.To) || q.To.Sub(q.From) > maxSeries {
		return q, &query.Error{Param: "from", Message: "must be before to, by at most 400 days"}
	}
	parsed, err := query.Parse(url.Values{"q": {r.Q}})
	q.Query = parsed.Query
	return q, err
}

// maxSeriesMarks is how many marks come with series.
const maxSeriesMarks = 100

// maxSeries is how long counters are kept.
const maxSeries = 400 * 24 * time.Hour
