package web

import (
	"context"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

// loadRequest shows one request.
func (p *outboxPages) loadRequest(ctx context.Context, a address) (page, error) {
	id, err := strconv.ParseInt(a.name, 10, 64)
	before, _, wrong := query.ParseCursor(a.query)
	if err != nil || wrong != nil || id < 1 {
		return page{}, p.unknownRequest()
	}
	counts, err := p.commands.RequestStates(ctx, id)
	if err != nil {
		return page{}, err
	}
	found, next, err := p.commands.Commands(ctx, history.CommandFilter{RequestID: id, Before: before, Limit: query.DefaultLimit})
	if err != nil {
		return page{}, err
	}
	if len(found) == 0 {
		// Somebody may have the number of a command that is not the first of its request.
		if c, err := p.commands.Command(ctx, id); err == nil && c.RequestID != id {
			return page{}, redirect(templates.RequestPath(c.RequestID))
		}
		return page{}, p.unknownRequest()
	}
	if before == 0 && next == 0 {
		slices.Reverse(found) // all of them, in their order
	}
	v := templates.Request{ID: id, Counts: counts, Commands: p.shownCommands(found)}
	if len(found) == 1 && found[0].TaskID != "" {
		if t, err := p.backend.Task(ctx, found[0].TaskID); err == nil {
			if e, ok := command.EffectOn(found[0], &t); ok {
				v.Effect = &e
			}
		}
	}
	name := strconv.FormatInt(id, 10)
	pg := page{
		url: templates.RequestPath(id), title: "Request " + name,
		section: templates.SectionOutbox,
	}
	if before != 0 {
		v.Newest = p.urls.Prefix + pg.url
		pg.url += cursor(before)
	}
	if next != 0 {
		v.Older = p.urls.Prefix + templates.RequestPath(id) + cursor(next)
	}
	pg.view = v
	return pg, nil
}

func cursor(before int64) string { return "?cursor=" + strconv.FormatInt(before, 10) }

func (p *outboxPages) unknownRequest() error {
	return unknown(templates.Problem{
		Title:   "Unknown request",
		Message: "There is no request with this ID. Finished requests are removed after a while.",
		Back:    p.urls.Prefix + "/outbox", BackText: "All commands",
	})
}
