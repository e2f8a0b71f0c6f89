package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/web/auth"
)

// WorkersBody lists workers.
type WorkersBody struct {
	_ struct{} `additionalProperties:"false"`

	Workers []string `json:"workers" nullable:"false" minItems:"1" maxItems:"1000" doc:"Node names."`
}

type forgetInput struct {
	Origin
	Body WorkersBody
}

// registerForget adds the operation that forgets workers.
func (a *api) registerForget(h huma.API) {
	if a.service() == nil {
		return
	}
	op := postBody(h, auth.ForgetWorker, "forget-workers", "/forget", "Forget offline workers", notFound, conflict, unavailable)
	op.Description = "Forgets all named workers or none: fails with 409 if one is not offline or has unfinished tasks. " +
		"Nothing is sent. A forgotten worker reappears with its next event."
	huma.Register(h, op, a.forget)
}

func (a *api) forget(ctx context.Context, in *forgetInput) (*response[Changed], error) {
	n, err := a.service().Forget(ctx, a.caller(ctx, &in.Origin), in.Body.Workers)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[Changed]{Changed{n}}, nil
}
