package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
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
		MaxTasks: p.limits.MaxTasks, MaxText: p.limits.MaxText, Redact: p.redaction(ctx),
		Receivers: p.alertReceivers(),
	}
	if p.peers != nil {
		s := p.peers.Status()
		v.Peers = &s
	}
	return page{url: "/settings", title: "Settings", section: templates.SectionSettings, view: v}, nil
}

// redaction returns the rules of redaction, and which keys of the newest tasks they match.
func (p *settingsPage) redaction(ctx context.Context) templates.Redaction {
	v := templates.Redaction{Forms: p.redactor.Forms()}
	v.Rules, v.ByForm = p.redactor.Status()
	newest, err := p.backend.Tasks(ctx, history.TaskRequest{Limit: redactedTasks, Now: p.now()})
	if err != nil {
		p.log.WarnContext(ctx, "newest tasks cannot be read", "error", err)
	}
	for i := range newest.Tasks {
		t := &newest.Tasks[i]
		for _, text := range []*string{t.Args, t.Kwargs, t.Result} {
			if text == nil {
				continue
			}
			for _, key := range p.redactor.Matching(*text) {
				if key = truncate.Text(key, maxShownKey); len(v.Recent) < maxShownKeys && !slices.Contains(v.Recent, key) {
					v.Recent = append(v.Recent, key)
				}
			}
		}
	}
	slices.Sort(v.Recent)
	return v
}

const (
	redactedTasks = 100    // whose keys are compared with the rules
	maxShownKeys  = 20     // of theirs that are shown
	maxShownKey   = 60     // bytes of one
	maxTried      = 20_000 // bytes of a text to try the rules on
)

// tryRedaction shows a text without its secrets. It is never stored or logged.
func (p *settingsPage) tryRedaction(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	pg, err := p.load(ctx, address{})
	if err != nil {
		p.notLoaded(w, r, err)
		return
	}
	v, ok := pg.view.(templates.Settings)
	if !ok {
		p.notFound(w, r)
		return
	}
	text := strings.ToValidUTF8(r.PostFormValue("text"), "\uFFFD")
	v.Redact.Tried, v.Redact.Text = true, truncate.Bytes(text, maxTried)
	v.Redact.Result = p.redactor.Text(v.Redact.Text)
	pg.view, pg.static = v, true
	p.show(w, r, pg)
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
