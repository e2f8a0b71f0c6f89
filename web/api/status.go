package api

import (
	"context"

	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/queues"
)

// Status says whether work flows.
type Status struct {
	Level    string         `json:"level" enum:"flowing,degraded,stuck,unknown" doc:"That of the gravest reason; unknown if one is."`
	Sentence string         `json:"sentence"`
	Reasons  []StatusReason `json:"reasons" nullable:"false" doc:"The gravest first; at least one."`
}

// StatusReason is one finding.
type StatusReason struct {
	Kind  string `json:"kind" enum:"listening,lag,workers,deaf,backlog,waiting,failing"`
	Level string `json:"level" enum:"flowing,degraded,stuck,unknown"`
	Text  string `json:"text" doc:"A sentence."`
	Page  string `json:"page" doc:"Path of the page that shows what it counts, below the prefix."`
}

func (a *api) status(ctx context.Context, _ *struct{}) (*response[Status], error) {
	v := a.flow.Verdict(ctx)
	return &response[Status]{Body: Status{
		Level: string(v.Level), Sentence: v.Sentence(),
		Reasons: mapSlice(v.Reasons, func(r flow.Reason) StatusReason {
			return StatusReason{Kind: string(r.Kind), Level: string(r.Level), Text: r.Text, Page: r.Path}
		}),
	}}, nil
}

// queueWatcher returns the watcher of queues, nil if they are not watched.
func (a *api) queueWatcher() *queues.Watcher {
	if a.commands == nil {
		return nil
	}
	return a.commands.Queues
}
