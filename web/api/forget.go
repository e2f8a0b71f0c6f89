package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// WorkersBody names workers.
type WorkersBody struct {
	Workers []string `json:"workers" minItems:"1" maxItems:"1000" doc:"Node names."`
}

// registerForget adds the operation that forgets workers.
func (a *api) registerForget(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	if a.service() == nil {
		return
	}
	op := operation("forget-workers", "/forget", "Forget workers that are offline", http.StatusBadRequest, http.StatusNotFound,
		http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.Method, op.DefaultStatus = http.MethodPost, http.StatusOK
	op.Description = "All that are named, or none: 409 if one is not offline or has unfinished tasks. Nothing is sent. " +
		"The next event of a worker brings it back."
	huma.Register(h, op, a.forget)
	h.OpenAPI().Paths[op.Path].Post.RequestBody = requestBody[WorkersBody](h)
}

// forget forgets workers.
func (a *api) forget(ctx context.Context, r *orderRequest) (*answer[Changed], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	o, err := readOrder[WorkersBody](a, r)
	if err != nil {
		return nil, err
	}
	n, err := a.service().Forget(ctx, o.By, o.Body.Workers)
	if err != nil {
		return nil, a.actProblem(ctx, err)
	}
	return &answer[Changed]{Changed{n}}, nil
}
