package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/live"
	"github.com/umbelhq/umbel/web/query"
)

// verifyAge is how long the result of verifying the audit log is shown: it reads all of it.
const verifyAge = time.Minute

// verdict keeps whether the audit log is as it was written. It is safe for concurrent use.
type verdict struct {
	mu       sync.Mutex
	at       time.Time
	tampered int64
	err      error
}

// verifyAudit returns the first record of the audit log that was tampered with, 0 if none was.
func (p *pages) verifyAudit(ctx context.Context) (int64, error) {
	v := &p.verified
	v.mu.Lock()
	defer v.mu.Unlock()
	now := p.now()
	if age := now.Sub(v.at); v.at.IsZero() || age < 0 || age > verifyAge || v.err != nil {
		v.tampered, v.err = p.cluster.History().VerifyAudit(ctx)
		v.at = now
	}
	return v.tampered, v.err
}

// auditPage shows a page of the audit log.
func (p *pages) auditPage(ctx context.Context, before int64, limit int) (page, error) {
	found, next, err := p.cluster.History().AuditLog(ctx, before, limit)
	if err != nil {
		return page{}, err
	}
	var v templates.Audit
	tampered, err := p.verifyAudit(ctx)
	if err != nil {
		p.log.WarnContext(ctx, "verify audit log", "error", err)
	}
	v.Tampered, v.Verified = tampered, err == nil && tampered == 0
	for _, r := range found {
		v.Records = append(v.Records, templates.AuditRecord{
			ID: r.ID, At: micros(r.At), Actor: r.Actor, Remote: r.RemoteAddr, Action: r.Action, Target: r.Target,
			Detail: r.Detail, Commands: r.Commands, Request: r.FirstCommand, Hash: r.Hash,
		})
	}
	pg := page{
		topic: "audit", address: "/outbox/audit", title: "Audit log", section: templates.SectionOutbox,
		version: p.clusterVersion(),
	}
	path := p.site.Prefix + pg.address
	if before != 0 {
		v.Newest = path
		pg.topic += cursor(before)
		pg.address += cursor(before)
	}
	if next != 0 {
		v.Older = path + cursor(next)
	}
	pg.view = v
	return pg, nil
}

// auditTopic is the page of the live topic of the audit log.
func (p *pages) auditTopic(ctx context.Context, topic, raw string) (page, error) {
	v, err := url.ParseQuery(strings.TrimPrefix(raw, "?"))
	if err != nil {
		return page{}, live.ErrNoTopic
	}
	before, limit, err := query.ParseAudit(v)
	if err != nil || limit != query.DefaultLimit {
		return page{}, live.ErrNoTopic
	}
	pg, err := p.auditPage(ctx, before, limit)
	if err == nil && pg.topic != topic {
		err = live.ErrNoTopic
	}
	return pg, err
}

func (p *pages) audit(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	before, _, err := query.ParseAudit(r.URL.Query())
	if err != nil {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{
			Title: "Wrong address", Message: "The parameter " + err.Error() + ".",
			Back: p.site.Prefix + "/outbox/audit", BackText: "The audit log",
		})
		return
	}
	pg, err := p.auditPage(ctx, before, query.DefaultLimit)
	p.showRead(w, r, http.StatusOK, pg, err)
}
