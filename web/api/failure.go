package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/query"
)

// Failure is a group of failed tasks: those of one name whose exceptions are alike. Null is unknown.
type Failure struct {
	ID         string  `json:"id" doc:"Stable. The query failure:ID finds the tasks." example:"0dd7dc58725190cd"`
	Name       *string `json:"name" doc:"Name of the tasks."`
	Type       *string `json:"type" doc:"Type of the exceptions, without its module." example:"ConnectionError"`
	Message    *string `json:"message" doc:"What their messages have in common." example:"cannot reach <address>"`
	Place      *string `json:"place" doc:"Where they were raised, by file and function." example:"gateway.py in post"`
	Example    *string `json:"example" doc:"The newest exception."`
	TaskID     *string `json:"task_id" doc:"The task that failed last."`
	Status     string  `json:"status" enum:"open,resolved,came_back" doc:"came_back: something has failed after it was resolved."`
	Count      int     `json:"count" doc:"Failed tasks, at most 10,000."`
	Exact      bool    `json:"exact" doc:"Whether there are no more than count."`
	LastHour   int     `json:"last_hour" doc:"Tasks that failed in the last hour, at most 10,000."`
	FirstAt    Time    `json:"first_at" doc:"When the first of the tasks that are kept failed."`
	LastAt     Time    `json:"last_at"`
	ResolvedAt Time    `json:"resolved_at"`
	Trend      []int64 `json:"trend" nullable:"false" doc:"Tasks that failed in each of the last 24 hours of the clock, the present one last."`
}

func fromFailure(f history.FailureGroup) Failure {
	d := Failure{
		ID: f.ID.String(), Name: text(f.Name), Type: text(f.Fingerprint.Type), Message: text(f.Fingerprint.Message),
		Place: text(f.Fingerprint.Place), Example: text(f.Example), TaskID: text(f.TaskID), Status: "open",
		Count: f.Count.N, Exact: f.Count.Exact, LastHour: f.LastHour,
		FirstAt: timeOf(f.FirstAt), LastAt: timeOf(f.LastAt), ResolvedAt: timeOf(f.ResolvedAt),
		Trend: append([]int64{}, f.Trend...),
	}
	switch {
	case f.Recurred():
		d.Status = "came_back"
	case f.Resolved():
		d.Status = "resolved"
	}
	return d
}

// registerFailures adds the operations on groups of failures.
func (a *api) registerFailures(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	const bad, missing, away = http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable
	list := operation("list-failures", "/failures", "Groups of failed tasks, those that failed last first", bad, away)
	list.Parameters = failureParams()
	huma.Register(h, list, a.failures)
	huma.Register(h, operation("get-failure", "/failures/{id}", "One group of failed tasks", bad, missing, away), a.failure)
	if a.readOnly {
		return
	}
	post := func(op huma.Operation) huma.Operation {
		op.Method = http.MethodPost
		return op
	}
	huma.Register(h, post(operation("resolve-failure", "/failures/{id}/resolve",
		"Mark a group as resolved, until a task fails like that again", bad, missing, away)), a.resolve)
	huma.Register(h, post(operation("reopen-failure", "/failures/{id}/reopen",
		"Take back that a group is resolved", bad, missing, away)), a.reopen)
}

// failureRequest names a group.
type failureRequest struct {
	request
	ID string `path:"id" doc:"Id of a group." example:"0dd7dc58725190cd"`
}

// failures answers with groups, those that failed last first.
func (a *api) failures(ctx context.Context, r *request) (*answer[List[Failure]], error) {
	v, err := r.values()
	if err != nil {
		return nil, err
	}
	q, err := query.ParseFailures(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return nil, badParameter(wrong)
	}
	page, err := a.backend.Store().FailureGroups(ctx, q.Request(a.now(), 0))
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	l := List[Failure]{Items: each(page.Groups, fromFailure)}
	total := page.Open
	switch q.Show {
	case query.ShowResolved:
		total = page.Resolved
	case query.ShowAll:
		total += page.Resolved
	}
	l.Total = &total
	if page.Next != nil {
		l.Next = new(query.EncodeFailure(*page.Next))
	}
	return &answer[List[Failure]]{l}, nil
}

// failure answers with one group.
func (a *api) failure(ctx context.Context, r *failureRequest) (*answer[Failure], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	id, ok := fingerprint.ParseID(r.ID)
	if !ok {
		return nil, unknownFailure(r.ID)
	}
	f, err := a.backend.Store().FailureGroup(ctx, id, a.now())
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, unknownFailure(r.ID)
	case err != nil:
		return nil, a.unreadable(ctx, err)
	}
	return &answer[Failure]{fromFailure(f)}, nil
}

// resolve marks a group as resolved and answers with it.
func (a *api) resolve(ctx context.Context, r *failureRequest) (*answer[Failure], error) {
	return a.settle(ctx, r, a.now())
}

// reopen takes the mark off a group and answers with it.
func (a *api) reopen(ctx context.Context, r *failureRequest) (*answer[Failure], error) {
	return a.settle(ctx, r, time.Time{})
}

func (a *api) settle(ctx context.Context, r *failureRequest, at time.Time) (*answer[Failure], error) {
	id, ok := fingerprint.ParseID(r.ID)
	if !ok {
		return nil, unknownFailure(r.ID)
	}
	err := a.backend.Store().ResolveFailureGroup(ctx, id, at)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, unknownFailure(r.ID)
	case err != nil:
		return nil, a.unreadable(ctx, err)
	}
	return a.failure(ctx, r)
}

func unknownFailure(id string) *Problem {
	return problem(http.StatusNotFound, "No group of failures has the id "+shorten(id)+": none of its tasks is kept.")
}

// unreadable reports a history that cannot be used. The log says why.
func (a *api) unreadable(ctx context.Context, err error) *Problem {
	if errors.Is(err, fair.ErrBusy) {
		return problem(http.StatusServiceUnavailable, "Too many searches of this client wait already; try again in a moment.")
	}
	a.logger.WarnContext(ctx, "use history", "error", err)
	return problem(http.StatusServiceUnavailable, "The history cannot be used now; Umbel's log says why.")
}

// failureParams describes what query.ParseFailures reads.
func failureParams() []*huma.Param {
	param := func(name, doc string, s huma.Schema) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: &s}
	}
	return []*huma.Param{
		param("show", "Which groups: open ones include those that came back.", huma.Schema{
			Type: huma.TypeString, Default: query.ShowOpen, Enum: []any{query.ShowOpen, query.ShowResolved, query.ShowAll},
		}),
		param("limit", "Most groups to return.", huma.Schema{
			Type: huma.TypeInteger, Default: query.DefaultLimit,
			Minimum: new(1.0), Maximum: new(float64(query.MaxLimit)),
		}),
		param("cursor", "Where to continue: next of an earlier answer.", huma.Schema{Type: huma.TypeString}),
	}
}
