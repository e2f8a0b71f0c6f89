package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/web/auth"
)

type dismissInput struct {
	TaskPath
	Origin
}

// registerDismiss adds the operations that dismiss and reinstate unfinished tasks.
func (a *api) registerDismiss(h huma.API) {
	if a.service() == nil {
		return
	}
	for _, o := range []struct {
		name, summary string
		act           func(ctx context.Context, by command.Caller, id string) error
	}{
		{"dismiss", "Dismiss an unfinished task", a.service().Dismiss},
		{"reinstate", "Reinstate a dismissed task", a.service().Reinstate},
	} {
		op := post(h, auth.DismissTask, o.name+"-task", "/"+o.name+"/{id}", o.summary, notFound, conflict, unavailable)
		huma.Register(h, op, func(ctx context.Context, in *dismissInput) (*response[Task], error) {
			if err := o.act(ctx, a.caller(ctx, &in.Origin), in.ID); err != nil {
				return nil, a.failed(ctx, err)
			}
			return a.task(ctx, &in.TaskPath)
		})
	}
}
