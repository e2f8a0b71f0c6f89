package web

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// planAge is how long a plan of retention is shown before it is made again.
const planAge = 10 * time.Second

// planner keeps the last plan of retention, so that a watched page does not count all the time. It is safe for
// concurrent use.
type planner struct {
	mu     sync.Mutex
	madeAt time.Time
	plan   *templates.Plan
}

func (p *pages) settings(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, http.StatusOK, p.settingsPage(r.Context()))
}

func (p *pages) settingsPage(ctx context.Context) page {
	h, kept := p.cluster.Health(), p.cluster.History().Health()
	v := templates.Settings{
		Version: p.version, Broker: brokerView(h), Location: kept.Location, Size: kept.Size, Alert: p.trouble(),
		Unsaved: h.Store.Unsaved, Backlog: kept.Unindexed, Plan: p.plan(ctx),
		MaxTasks: p.limits.MaxTasks, MaxText: p.limits.MaxText,
	}
	pg := page{topic: "settings", address: "/settings", title: "Settings", section: templates.SectionSettings, view: v}
	p.cluster.View(func(c *state.Cluster) { pg.version = c.Version() })
	return pg
}

// plan is what retention would remove, nil if the history cannot be read.
func (p *pages) plan(ctx context.Context) *templates.Plan {
	p.planner.mu.Lock()
	defer p.planner.mu.Unlock()
	now := p.now()
	if age := now.Sub(p.planner.madeAt); p.planner.plan == nil || age < 0 || age > planAge {
		p.planner.plan, p.planner.madeAt = p.newPlan(ctx, now), now
	}
	return p.planner.plan
}

func (p *pages) newPlan(ctx context.Context, now time.Time) *templates.Plan {
	kept := p.cluster.History()
	today, err := kept.ReferenceTime(ctx)
	var found history.PrunePlan
	if err == nil {
		found, err = kept.PlanPrune(ctx, today)
	}
	if err != nil {
		p.log.WarnContext(ctx, "retention cannot be planned", "error", err)
		return nil
	}
	rules := kept.RetentionRules()
	v := &templates.Plan{
		Tasks: found.Tasks, Oldest: micros(found.Oldest), Used: found.UsedBytes, Bytes: found.Bytes, Active: templates.Count(found.Active), ActiveBytes: found.ActiveBytes,
		Oversized: rules.MaxSize > 0 && found.ActiveBytes > rules.MaxSize,
		Rules: []templates.Rule{
			{What: "Tasks that succeeded", Keep: templates.RetentionAge(rules.Succeeded), Flag: "--keep-succeeded", Removes: templates.Count(found.Succeeded)},
			{What: "Failed, revoked, rejected", Keep: templates.RetentionAge(rules.Failed), Flag: "--keep-failed", Removes: templates.Count(found.Failed)},
			{What: "Lost or dismissed, since then", Keep: templates.RetentionAge(rules.Lost), Flag: "--keep-lost", Removes: templates.Count(found.Lost)},
			{What: "Events that no execution shows", Keep: templates.RetentionAge(rules.Events), Flag: "--keep-events", Removes: templates.Count(found.Events), RemovesEvents: true},
			{What: "Offline workers, since they were heard", Keep: templates.RetentionAge(rules.Workers), Flag: "--keep-workers"},
			{
				What: "All history but active tasks", Keep: templates.SizeLimit(rules.MaxSize), Flag: "--max-db-size", Removes: templates.Count(found.Size),
				Estimate: !found.Size.Exact,
			},
		},
	}
	if now.Sub(today) > time.Hour {
		v.Today = today.UnixMicro()
	}
	return v
}

// trouble is what is wrong with the history.
func (p *pages) trouble() templates.HistoryAlert {
	all, kept := p.cluster.Health(), p.cluster.History().Health()
	h := all.Store
	t := templates.HistoryAlert{
		Error: cmp.Or(h.LastError, kept.LastError), Since: micros(h.Since), NextTryAt: micros(h.NextTryAt),
		Waiting: h.Waiting, Full: h.Full, Notices: all.Notices,
	}
	if t.Error == "" {
		return templates.HistoryAlert{Notices: all.Notices}
	}
	return t
}
