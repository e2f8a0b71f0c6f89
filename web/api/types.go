package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// TaskTypes is a page of the list of task types.
type TaskTypes struct {
	From            Time       `json:"from" doc:"Start of what is counted."`
	To              Time       `json:"to" doc:"End of what is counted; as of an instant, where the shortest span of counters ends that is kept and had ended."`
	ObservedSeconds float64    `json:"observed_seconds" doc:"How long of that Umbel was running."`
	StepSeconds     int        `json:"step_seconds" doc:"Length of the steps of trends; the last one may still be in progress, or be divided by the instant."`
	Items           []TaskType `json:"items" nullable:"false"`
	Next            *string    `json:"next" doc:"Value of after for the next page; null on the last page."`
	Total           int        `json:"total" doc:"Number of types on all pages."`
}

// TaskType counts the tasks of one name. Null means unknown.
type TaskType struct {
	Name          *string   `json:"name" doc:"Task name; null for tasks with unknown name, (other) for names beyond the bounds, which are counted together." example:"billing.charge"`
	Received      int64     `json:"received"`
	Succeeded     int64     `json:"succeeded"`
	Failed        int64     `json:"failed"`
	Retried       int64     `json:"retried"`
	PerSecond     *float64  `json:"per_second" doc:"Tasks that succeeded or failed in a second, while Umbel was running."`
	FailureShare  *float64  `json:"failure_share" doc:"Failed tasks among those that succeeded or failed, 0 to 1."`
	Wait          Durations `json:"wait" doc:"Time from sent, or from received if that is unknown, to started."`
	Run           Durations `json:"run" doc:"Run time of succeeded tasks, measured by the worker."`
	Drift         *Drift    `json:"drift" doc:"Median run time against the week before; null if tasks succeeded in fewer than six of its hours."`
	LastFailureAt Time      `json:"last_failure_at" doc:"When a task failed last, or the start of the step in which it did."`
	Trend         []*int64  `json:"trend" nullable:"false" doc:"Tasks that ended in each step, oldest first; null while Umbel was not running."`
	Queues        []string  `json:"queues" nullable:"false" doc:"Queues that tasks came from; the first 100."`
	Workers       []string  `json:"workers" nullable:"false" doc:"Workers that ran tasks; the first 100."`
}

// Durations are percentiles with their greatest. Null means unknown.
type Durations struct {
	Percentiles

	MaxSeconds *float64 `json:"max_seconds"`
}

// Drift compares a median with that of the week before.
type Drift struct {
	MedianSeconds float64 `json:"median_seconds" doc:"Median now."`
	UsualSeconds  float64 `json:"usual_seconds" doc:"Median of the medians of the hours of the week before."`
	MADSeconds    float64 `json:"mad_seconds" doc:"Median absolute deviation of these medians."`
	Hours         int     `json:"hours" doc:"Hours of that week in which tasks succeeded."`
	Change        float64 `json:"change" doc:"0.5 is half as long again."`
	Unusual       bool    `json:"unusual" doc:"Whether the median changed by 10 % or more and by more than 3.5 standard deviations, estimated from the MAD."`
}

func fromType(t *tasktype.Table, r tasktype.Row) TaskType {
	d := TaskType{
		Name: text(r.Name), Received: r.Received, Succeeded: r.Succeeded, Failed: r.Failed, Retried: r.Retried,
		Wait: fromDurations(r.Wait), Run: fromDurations(r.Run), LastFailureAt: Time(r.LastFailedAt),
		Queues: append([]string{}, r.Queues.Names...), Workers: append([]string{}, r.Workers.Names...),
		Trend: mapSlice(r.Trend, func(s tasktype.Step) *int64 {
			if !s.Observed {
				return nil
			}
			return new(s.Succeeded + s.Failed)
		}),
	}
	if n, ok := t.PerSecond(&r.Type); ok {
		d.PerSecond = &n
	}
	if n, ok := r.FailureShare(); ok {
		d.FailureShare = &n
	}
	if r.Drift != nil {
		d.Drift = &Drift{
			MedianSeconds: float64(r.Drift.Now) / 1e6, UsualSeconds: float64(r.Drift.Median) / 1e6, MADSeconds: float64(r.Drift.MAD) / 1e6,
			Hours: r.Drift.Hours, Change: r.Drift.Change, Unusual: r.Drift.Unusual,
		}
	}
	return d
}

func fromDurations(h rollup.Histogram) Durations {
	d := Durations{Percentiles: fromHistogram(h)}
	if d.Count > 0 {
		d.MaxSeconds = new(float64(h.Quantile(1)) / 1e6)
	}
	return d
}

func (a *api) registerTypes(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-task-types", "/types", "List task types with counts and durations", unavailable), a.types)
	huma.Register(h, operation(h, auth.View, "get-task-type", "/types/{name}", "Get a task type, by worker, queue and what its tasks share", notFound, unavailable), a.taskType)
}

// SpanInput is a span of time that was chosen by its ends.
type SpanInput struct {
	Since string `query:"since" maxLength:"64" doc:"Start of a span of time: an RFC 3339 time. With until only." example:"2026-11-21T10:00:00Z"`
	Until string `query:"until" maxLength:"64" doc:"End of that span, at most 400 days later." example:"2026-11-21T10:20:00Z"`
}

type listTypes struct {
	Query
	Find string `query:"find" maxLength:"1024" doc:"Words that names contain, regardless of case."`
	Last string `query:"last" enum:"1h,6h,24h,7d,30d" default:"24h" doc:"Span of time to count, unless since and until give one; it begins with a minute, ten minutes, an hour or a day."`
	SpanInput
	Sort  string `query:"sort" maxLength:"64" default:"-run" doc:"One of name, count, failed, retries, slowest, drift, last_failure, queues, workers, and the percentiles wait, run (the 95th), wait_p50, wait_p99, run_p50 and run_p99; with a leading - for descending order." example:"-failed"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of types to return."`
	After string `query:"after" maxLength:"1024" doc:"Name that the page starts after: next of an earlier response."`
}

func (a *api) types(ctx context.Context, r *listTypes) (*response[TaskTypes], error) {
	q, err := query.ParseTypes(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	table, rows, err := a.typeRows(ctx, q)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	page, total, more := q.Page(rows)
	l := TaskTypes{
		From: timeOf(table.From), To: timeOf(table.To), ObservedSeconds: table.Observed.Seconds(), StepSeconds: int(table.Step / time.Second),
		Items: mapSlice(page, func(r tasktype.Row) TaskType { return fromType(&table, r) }), Total: total,
	}
	if more {
		l.Next = &page[len(page)-1].Name
	}
	return &response[TaskTypes]{l}, nil
}

// typeRows returns the types of a span of time, those of some names only if there are any.
func (a *api) typeRows(ctx context.Context, q query.Types, names ...string) (tasktype.Table, []tasktype.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	table, err := tasktype.Read(ctx, a.backend.History(), a.then.TypeSpan(q.Range(a.now())), names...)
	if err != nil {
		return table, nil, err
	}
	usual, err := tasktype.ReadUsual(ctx, a.backend.History(), table.From, names...)
	if err != nil {
		return table, nil, err
	}
	if q.Chosen() { // types may have failed later
		return table, table.Rows(usual, nil), nil
	}
	failures, err := a.backend.History().FailureGroups(ctx, history.FailureRequest{Limit: tasktype.NewestFailures, Now: a.now()})
	return table, table.Rows(usual, failures.Groups), err
}
