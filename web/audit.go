package web

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

// auditAge is how long the result of verifying the audit log is shown: it reads all of it.
const auditAge = time.Minute

// auditPage shows the audit log.
type auditPage struct {
	*common
	tampered *cache[int64] // the first record that was tampered with, 0 if none was
}

func (p *auditPage) load(ctx context.Context, a address) (page, error) {
	before, _, err := query.ParseAudit(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "The audit log", Href: p.urls.Prefix + "/outbox/audit"})
	}
	found, next, err := p.commands.AuditLog(ctx, history.AuditFilter{Before: before, Limit: query.DefaultLimit})
	if err != nil {
		return page{}, err
	}
	if !p.audience.Payload {
		found = payload.Records(found)
	}
	v := templates.Audit{Records: found}
	tampered, err := p.tampered.get("", func() (int64, error) { return p.commands.VerifyAudit(ctx) })
	if err != nil {
		p.log.WarnContext(ctx, "verify audit log", "error", err)
	}
	v.Tampered, v.Verified = tampered, err == nil && tampered == 0
	pg := page{
		url: "/outbox/audit", title: "Audit log", section: templates.SectionOutbox,
	}
	path := p.urls.Prefix + pg.url
	if before != 0 {
		v.Newest = path
		pg.url += cursor(before)
	}
	if next != 0 {
		v.Older = path + cursor(next)
	}
	pg.view = v
	return pg, nil
}
