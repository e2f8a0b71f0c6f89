package web

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// planAge is how long a plan of retention is shown before it is made again.
const planAge = 10 * time.Second

// settingsPage says how Umbel runs.
type settingsPage struct {
	*common
	limits state.Options
	peers  *peers.Peers            // nil if this Umbel asks workers nothing
	plan   *cache[*templates.Plan] // what retention would remove
}

func (p *settingsPage) load(ctx context.Context, _ address) (page, error) {
	h, kept := p.backend.Health(), p.backend.History().Health()
	v := templates.Settings{
		Version: p.version, Health: h, Location: kept.Location, Size: kept.Size, Error: p.historyError(h),
		Unsaved: h.Store.UnsavedTasks, Backlog: kept.Unindexed, Plan: p.prunePlan(ctx),
		MaxTasks: p.limits.MaxTasks, MaxText: p.limits.MaxText,
	}
	if p.peers != nil {
		s := p.peers.Status()
		v.Peers = &s
	}
	return page{url: "/settings", title: "Settings", section: templates.SectionSettings, view: v}, nil
}

// prunePlan is what retention would remove, nil if the history cannot be read.
func (p *settingsPage) prunePlan(ctx context.Context) *templates.Plan {
	plan, err := p.plan.get("", func() (*templates.Plan, error) { return p.newPlan(ctx, p.now()) })
	if err != nil {
		p.log.WarnContext(ctx, "retention cannot be planned", "error", err)
		return nil
	}
	return plan
}

func (p *settingsPage) newPlan(ctx context.Context, now time.Time) (*templates.Plan, error) {
	kept := p.backend.History()
	today, err := kept.ReferenceTime(ctx)
	var found history.PrunePlan
	if err == nil {
		found, err = kept.PlanPrune(ctx, today)
	}
	if err != nil {
		return nil, err
	}
	rules := kept.RetentionRules()
	v := &templates.Plan{
		Tasks: found.Tasks, Oldest: micros(found.Oldest), Used: found.UsedBytes, Bytes: found.Bytes, Active: found.Active, ActiveBytes: found.ActiveBytes,
		Oversized: rules.MaxSize > 0 && found.ActiveBytes > rules.MaxSize,
		Rules: []templates.Rule{
			{What: "Succeeded tasks", Keep: templates.RetentionAge(rules.Succeeded), Flag: "--keep-succeeded", Removes: found.Succeeded},
			{What: "Failed, revoked and rejected tasks", Keep: templates.RetentionAge(rules.Failed), Flag: "--keep-failed", Removes: found.Failed},
			{What: "Lost or dismissed tasks", Keep: templates.RetentionAge(rules.Lost), Flag: "--keep-lost", Removes: found.Lost},
			{What: "Events not shown by an execution", Keep: templates.RetentionAge(rules.Events), Flag: "--keep-events", Removes: found.Events, RemovesEvents: true},
			{What: "Offline workers", Keep: templates.RetentionAge(rules.Workers), Flag: "--keep-workers"},
			{
				What: "History except active tasks", Keep: templates.SizeLimit(rules.MaxSize), Flag: "--max-db-size", Removes: found.Size,
				Estimate: !found.Size.Exact,
			},
		},
	}
	if now.Sub(today) > time.Hour {
		v.Today = today.UnixMicro()
	}
	return v, nil
}
