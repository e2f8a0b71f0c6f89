package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/web/auth"
)

// Result is a task's record in the result backend. Null means unknown.
type Result struct {
	TaskID      string          `json:"task_id"`
	Source      string          `json:"source" doc:"URL of the backend with the password masked." example:"redis://redis:6379/1"`
	Status      *string         `json:"status" doc:"SUCCESS, FAILURE or any state that the task has set; null if undecodable." example:"SUCCESS"`
	Value       json.RawMessage `json:"value" doc:"Return value. Python objects other than plain data are described by __class__, args and state."`
	Undecodable *string         `json:"undecodable" doc:"Why value could not be decoded." example:"stored as yaml, not decoded"`
	Exception   *string         `json:"exception"`
	Traceback   *string         `json:"traceback"`
	DoneAt      Time            `json:"done_at"`
	NaiveTime   bool            `json:"naive_time" doc:"Whether done_at was stored without a UTC offset and is assumed to be UTC."`
	ParentID    *string         `json:"parent_id"`
	GroupID     *string         `json:"group_id"`
	Children    []string        `json:"children" nullable:"false"`
	Name        *string         `json:"name" doc:"Present if result_extended is enabled, like the next five fields."`
	Args        json.RawMessage `json:"args"`
	Kwargs      json.RawMessage `json:"kwargs"`
	Worker      *string         `json:"worker"`
	Queue       *string         `json:"queue"`
	Retries     *Int            `json:"retries"`
	Differences []string        `json:"differences" nullable:"false" doc:"Differences from the task's events, as sentences."`
}

func (a *api) registerResults(h huma.API) {
	op := operation(h, auth.ReadPayload, "get-result", "/results/{id}", "Get the stored result of a task", notFound, unavailable)
	huma.Register(h, op, a.result)
}

func (a *api) result(ctx context.Context, r *TaskPath) (*response[Result], error) {
	if a.commands == nil || a.commands.Results == nil {
		return nil, problem(http.StatusNotFound, "No result backend is configured.")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stored, err := a.commands.Results.Result(ctx, r.ID)
	if errors.Is(err, results.ErrMissing) {
		return nil, problem(http.StatusNotFound, "No result is stored for this task: it was never written or has expired.")
	}
	if err != nil {
		a.logger.WarnContext(ctx, "read result", "error", err)
		return nil, problem(http.StatusServiceUnavailable, "The result backend is unavailable.")
	}
	body := fromResult(stored)
	body.Source = a.commands.Results.String()
	if t, err := a.backend.Task(ctx, r.ID); err == nil {
		body.Differences = append(body.Differences, results.Compare(&t, stored)...)
	}
	return &response[Result]{Body: body}, nil
}

func fromResult(r results.Result) Result {
	return Result{
		TaskID: r.TaskID, Status: text(r.Status), Value: orNull(r.Value), Undecodable: text(r.Undecodable), Exception: text(r.Exception),
		Traceback: text(r.Traceback), DoneAt: timeOf(r.DoneAt), NaiveTime: r.NaiveTime, ParentID: text(r.ParentID),
		GroupID: text(r.GroupID), Children: append([]string{}, r.Children...), Name: text(r.Name), Args: orNull(r.Args),
		Kwargs: orNull(r.Kwargs), Worker: text(r.Worker), Queue: text(r.Queue), Retries: integer(r.Retries), Differences: []string{},
	}
}

// orNull returns raw if it is JSON, else null.
func orNull(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage("null")
	}
	return raw
}
