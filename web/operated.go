package web

import (
	"context"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/web/live"
)

// operating adds the pages of queues, commands and the audit log, where there is more to see than events.
func (p *pages) operating(r chi.Router) {
	if p.operations == nil {
		return
	}
	r.Get("/queues", p.queues)
	r.Get("/queues/*", wildcard("name", p.queue))
	r.Get("/outbox", p.outboxList)
	r.Get("/outbox/audit", p.audit)
	r.Get("/outbox/{order}", p.order)
}

// changingQueues adds the routes that change queues, and commands that are on their way.
func (p *pages) changingQueues(r chi.Router) {
	r.Get("/act/purge", p.askPurge)
	r.Post("/act/purge", p.purge)
	r.Get("/act/outbox", p.askOutbox)
	r.Post("/act/outbox", p.changeOutbox)
}

// operated is the page of a live topic of queues, commands or the audit log. The error is live.ErrNoTopic or
// errUnknown, or of the history.
func (p *pages) operated(ctx context.Context, topic string) (page, error) {
	if p.operations == nil {
		return page{}, live.ErrNoTopic
	}
	switch topic {
	case "queues":
		return p.queuesPage(false), nil
	case topicHidden:
		return p.queuesPage(true), nil
	}
	if name, ok := strings.CutPrefix(topic, "queue/"); ok {
		return p.queuePage(ctx, name)
	}
	if raw, ok := strings.CutPrefix(topic, "outbox"); ok {
		return p.outboxTopic(ctx, topic, raw)
	}
	if raw, ok := strings.CutPrefix(topic, "order/"); ok {
		return p.orderTopic(ctx, topic, raw)
	}
	if raw, ok := strings.CutPrefix(topic, "audit"); ok {
		return p.auditTopic(ctx, topic, raw)
	}
	return page{}, live.ErrNoTopic
}
