package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
)

// dismissInput names an unfinished task, and comes from somebody.
type dismissInput struct {
	TaskPath
	Sender
}

// registerDismiss adds what people can say of unfinished tasks, where people may act at all.
func (a *api) registerDismiss(h huma.API) {
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
		op := post(h, o.name+"-task", "/"+o.name+"/{id}", o.summary, notFound, conflict, unavailable)
		huma.Register(h, op, func(ctx context.Context, in *dismissInput) (*answer[Task], error) {
			if err := o.act(ctx, a.by(&in.Sender), in.ID); err != nil {
				return nil, a.failed(ctx, err)
			}
			return a.task(ctx, &in.TaskPath)
		})
	}
}
