package web

import (
	"context"
	"time"

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
	path := p.urls.Prefix + "/outbox/audit"
	q, err := query.ParseAudit(a.query, p.now())
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "The audit log", Href: path})
	}
	found, next, err := p.commands.AuditLog(ctx, q.Filter())
	if err != nil {
		return page{}, err
	}
	if !p.audience.Payload {
		found = payload.Records(found)
	}
	v := templates.Audit{
		Records: found, Filter: templates.AuditFilter{Kind: q.Kind, Outcome: q.Outcome, Actor: q.Actor, Since: q.Since, Until: q.Until},
	}
	tampered, err := p.tampered.get("", func() (int64, error) { return p.commands.VerifyAudit(ctx) })
	if err != nil {
		p.log.WarnContext(ctx, "verify audit log", "error", err)
	}
	v.Tampered, v.Verified = tampered, err == nil && tampered == 0
	pg := page{url: q.URL("/outbox/audit"), title: "Audit log", section: templates.SectionOutbox}
	if q.Before != 0 {
		v.Newest = q.First().URL(path)
	}
	all := q.First()
	all.Limit = 0
	v.Export = all.URL(p.urls.Prefix + apiPath + "/audit/export")
	if next != 0 {
		q.Before = next
		v.Older = q.URL(path)
	}
	pg.view = v
	return pg, nil
}
