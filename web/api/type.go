package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/web/query"
)

// TaskTypeDetail is one type, by where its tasks were and by what they share.
type TaskTypeDetail struct {
	TaskType

	From            Time           `json:"from" doc:"Start of what is counted."`
	To              Time           `json:"to" doc:"End of what is counted; as of an instant, where the shortest span of counters ends that is kept and had ended."`
	ObservedSeconds float64        `json:"observed_seconds" doc:"How long of that Umbel was running."`
	Needed          *Needed        `json:"needed" doc:"Processes of workers that keep up with the tasks: by Little's law, arrivals times the mean run time of those that succeeded."`
	ByWorker        []TaskTypePart `json:"by_worker" nullable:"false" doc:"Most failures first; up to 100 workers and (other)."`
	ByQueue         []TaskTypePart `json:"by_queue" nullable:"false"`
	SampledTasks    int            `json:"sampled_tasks" doc:"Newest tasks that were compared, up to 1,000, beside up to 500 newest failed ones."`
	FailedShare     Comparison     `json:"failed_share" doc:"What failed tasks share that succeeded ones do not."`
	SlowShare       Comparison     `json:"slow_share" doc:"What the slowest twentieth shares that the others that succeeded do not."`
}

// Needed is how many processes tasks keep busy.
type Needed struct {
	Average   float64 `json:"average"`
	Busiest   float64 `json:"busiest" doc:"In the step in which most tasks arrived."`
	BusiestAt Time    `json:"busiest_at" doc:"Start of that step; null if it has not ended."`
}

// TaskTypePart counts the tasks of a type that were in one place.
type TaskTypePart struct {
	Name      *string   `json:"name" doc:"Worker or queue; null if unknown."`
	Succeeded int64     `json:"succeeded"`
	Failed    int64     `json:"failed"`
	Retried   int64     `json:"retried"`
	Run       Durations `json:"run"`
}

// Comparison is what some tasks share that others do not.
type Comparison struct {
	Tasks  int     `json:"tasks"`
	Others int     `json:"others"`
	Traits []Trait `json:"traits" nullable:"false" doc:"Up to ten values that are more frequent by more than chance explains, the greatest difference first."`
}

// Trait is a value that tasks share.
type Trait struct {
	Field    string `json:"field" example:"kwargs.customer" doc:"worker, queue, retries, or an argument."`
	Value    string `json:"value" doc:"In JSON if it is of an argument."`
	Tasks    int    `json:"tasks" doc:"Tasks with the value."`
	Of       int    `json:"of" doc:"Tasks of which the field is known."`
	Others   int    `json:"others" doc:"Other tasks with the value."`
	OthersOf int    `json:"of_others" doc:"Other tasks of which the field is known."`
}

func fromParts(list []tasktype.Part) []TaskTypePart {
	return mapSlice(list, func(p tasktype.Part) TaskTypePart {
		return TaskTypePart{Name: text(p.Name), Succeeded: p.Succeeded, Failed: p.Failed, Retried: p.Retried, Run: fromDurations(p.Run)}
	})
}

func fromComparison(c tasktype.Comparison) Comparison {
	return Comparison{Tasks: c.Selected, Others: c.Others, Traits: mapSlice(c.Traits, func(t tasktype.Trait) Trait {
		return Trait{Field: t.Field, Value: t.Value, Tasks: t.Selected, Of: t.SelectedOf, Others: t.Others, OthersOf: t.OthersOf}
	})}
}

type getType struct {
	Query
	Name string `path:"name" doc:"Task name." example:"billing.charge"`
	Last string `query:"last" enum:"1h,6h,24h,7d,30d" default:"24h" doc:"Span of time to count, unless since and until give one; it begins with a minute, ten minutes, an hour or a day."`
	SpanInput
}

func (a *api) taskType(ctx context.Context, r *getType) (*response[TaskTypeDetail], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	q, err := query.ParseTypes(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	_, rows, err := a.typeRows(ctx, q, r.Name)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	i := slices.IndexFunc(rows, func(row tasktype.Row) bool { return row.Name == r.Name })
	if i < 0 {
		return nil, problem(http.StatusNotFound, "No task named "+shorten(r.Name)+" was counted in that time.")
	}
	d, err := tasktype.ReadDetail(ctx, a.backend.History(), a.then.TypeSpan(q.Range(a.now())), r.Name)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	sample, err := tasktype.ReadSample(ctx, a.backend, r.Name, q.Finished(), 0)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	body := TaskTypeDetail{
		TaskType: fromType(&d.Table, rows[i]), From: timeOf(d.From), To: timeOf(d.To), ObservedSeconds: d.Observed.Seconds(),
		ByWorker: fromParts(d.Workers), ByQueue: fromParts(d.Queues),
		SampledTasks: sample.Tasks, FailedShare: fromComparison(sample.Failures), SlowShare: fromComparison(sample.Slow),
	}
	if n, ok := d.Needed(&d.Type); ok {
		body.Needed = &Needed{Average: n.Average, Busiest: n.Busiest, BusiestAt: timeOf(n.BusiestFrom)}
	}
	return &response[TaskTypeDetail]{body}, nil
}
