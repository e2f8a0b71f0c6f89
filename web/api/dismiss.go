package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/command"
)

// dismissRequest names an unfinished task, and comes from somebody.
type dismissRequest struct {
	request
	ID   string `path:"id" doc:"Task id."`
	http *http.Request
}

// Resolve takes it from the request.
func (r *dismissRequest) Resolve(ctx huma.Context) []error {
	r.http, _ = humachi.Unwrap(ctx)
	return r.request.Resolve(ctx)
}

// registerDismiss adds what people can say of unfinished tasks, where people may act at all.
func (a *api) registerDismiss(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	if a.service() == nil {
		return
	}
	for _, o := range []struct {
		name, summary string
		act           func(ctx context.Context, by command.Caller, id string) error
	}{
		{"dismiss", "Say that an unfinished task will not end", a.service().Dismiss},
		{"reinstate", "Take back that a task was dismissed", a.service().Reinstate},
	} {
		op := operation(o.name+"-task", "/"+o.name+"/{id}", o.summary,
			http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable)
		op.Method = http.MethodPost
		huma.Register(h, op, func(ctx context.Context, r *dismissRequest) (*answer[Task], error) {
			if err := r.plain(); err != nil {
				return nil, err
			}
			by, err := a.by(r.http)
			if err != nil {
				return nil, err
			}
			if err := o.act(ctx, by, r.ID); err != nil {
				return nil, a.actProblem(ctx, err)
			}
			return a.task(ctx, &taskRequest{request: r.request, ID: r.ID})
		})
	}
}
