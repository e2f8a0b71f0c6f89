package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/idempotency/audit"
	"github.com/umbelhq/umbel/monitor/idempotency/settings"
	"github.com/umbelhq/umbel/templates"
)

const (
	settingsAge     = 10 * time.Second // of the audit of settings while somebody looks
	settingsKept    = time.Minute
	maxAuditedTasks = 500 // on the page
)

// idempotencyPage audits the settings of workers.
type idempotencyPage struct {
	*common
	reports *background[audit.Report]
}

func newIdempotencyPage(c *common, changed func()) *idempotencyPage {
	return &idempotencyPage{c, newBackground(&background[audit.Report]{
		what: "audit of settings", age: settingsAge, kept: settingsKept, readers: 1, changed: changed, log: c.log,
		same: func(audit.Report, audit.Report) bool { return false }, // an equal page is not sent
	})}
}

// visit waits a little for workers that have never been asked, so that pages without scripts show them.
func (p *idempotencyPage) visit(ctx context.Context, _ address) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	p.await(ctx)
	return ""
}

// await waits until all workers have been asked, or ctx ends.
func (p *idempotencyPage) await(ctx context.Context) {
	for ctx.Err() == nil {
		changed := p.commands.Inspector.Changed()
		if asked, all := p.asked(); asked == all {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// asked returns how many workers have been asked, and how many there are.
func (p *idempotencyPage) asked() (asked, all int) {
	list := p.commands.Inspector.CachedSettings()
	for _, w := range list {
		if !w.AskedAt.IsZero() {
			asked++
		}
	}
	return asked, len(list)
}

// report is at most settingsAge old, but newer than the replies of workers that had not been asked before.
func (p *idempotencyPage) report(ctx context.Context) audit.Report {
	asked, all := p.asked()
	read := func(ctx context.Context) (audit.Report, error) {
		return audit.Read(ctx, audit.Options{
			Tasks: p.backend, Rollups: p.backend.History(), Settings: p.commands.Inspector.CachedSettings, Now: p.now(),
		}), nil
	}
	r, ok, err := p.reports.get(ctx, fmt.Sprintf("%d of %d", asked, all), read)
	if !ok || err != nil { // nothing is read in the background, or it takes long
		r, _ = read(ctx)
	}
	return r
}

// audited waits for workers, for the API.
func (p *idempotencyPage) audited(ctx context.Context) audit.Report {
	waiting, cancel := context.WithTimeout(ctx, refreshTimeout)
	p.await(waiting)
	cancel()
	return p.report(ctx)
}

func (p *idempotencyPage) load(ctx context.Context, a address) (page, error) {
	v := templates.Idempotency{Find: strings.TrimSpace(a.query.Get(paramFind)), All: a.query.Get("all") == "1"}
	v.Report, v.Online = p.report(ctx), len(p.online())
	find := strings.ToLower(v.Find)
	for _, t := range v.Report.Tasks {
		if !strings.Contains(strings.ToLower(t.Name), find) || !v.All && !differs(t) {
			continue
		}
		if v.Total++; len(v.Tasks) < maxAuditedTasks {
			v.Tasks = append(v.Tasks, t)
		}
	}
	return page{
		url: templates.IdempotencyURL(v.Find, v.All), title: "Idempotency", section: templates.SectionWorkers, view: v,
	}, nil
}

// differs reports whether workers or the class of the task set something else than the settings.
func differs(t settings.TaskRow) bool {
	for _, c := range t.Cells {
		if c.Overrides || len(c.Values) > 1 {
			return true
		}
	}
	return false
}

func (p *idempotencyPage) online() []string { return (&workerPages{common: p.common}).online() }
