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

	FailedShare *float64 `json:"failed_share" minimum:"0" maximum:"1" doc:"Share of the tasks that ended in the last ten minutes; null if none did."`
	Backlog     *int64   `json:"backlog" minimum:"0" doc:"Messages in queues that wait for a worker; null if it is not known."`
}

// StatusReason is one finding.
type StatusReason struct {
	Kind  string `json:"kind" enum:"listening,lag,workers,deaf,backlog,relay,waiting,failing"`
	Level string `json:"level" enum:"flowing,degraded,stuck,unknown"`
	Text  string `json:"text" doc:"A sentence."`
	Page  string `json:"page" doc:"Path of the page that shows what it counts, below the prefix."`
}

func (a *api) status(ctx context.Context, _ *struct{}) (*response[Status], error) {
	v := a.flow.Verdict(ctx)
	var backlog *int64
	if w := a.queueWatcher(); w != nil {
		backlog = w.Snapshot().Backlog()
	}
	return &response[Status]{Body: Status{
		Level: string(v.Level), Sentence: v.Sentence(), FailedShare: v.Recent.Share(), Backlog: backlog,
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
