package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
)

// WorkersBody names workers.
type WorkersBody struct {
	_ struct{} `additionalProperties:"false"`

	Workers []string `json:"workers" minItems:"1" maxItems:"1000" doc:"Node names."`
}

type forgetInput struct {
	Sender
	Body WorkersBody
}

// registerForget adds the operation that forgets workers.
func (a *api) registerForget(h huma.API) {
	if a.service() == nil {
		return
	}
	op := postBody(h, "forget-workers", "/forget", "Forget workers that are offline", notFound, conflict, unavailable)
	op.Description = "All that are named, or none: 409 if one is not offline or has unfinished tasks. Nothing is sent. " +
		"The next event of a worker brings it back."
	huma.Register(h, op, a.forget)
}

// forget forgets workers.
func (a *api) forget(ctx context.Context, in *forgetInput) (*answer[Changed], error) {
	n, err := a.service().Forget(ctx, a.by(&in.Sender), in.Body.Workers)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &answer[Changed]{Changed{n}}, nil
}
