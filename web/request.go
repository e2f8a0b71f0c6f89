package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
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
	request, err := p.commands.Request(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		// Somebody may have the number of a command that is not the first of its request.
		if c, err := p.commands.Command(ctx, id); err == nil && c.RequestID != id {
			return page{}, redirect(templates.RequestPath(c.RequestID))
		}
		return page{}, p.unknownRequest()
	}
	if err != nil {
		return page{}, err
	}
	request.First = p.shownCommand(request.First)
	found, next, err := p.commands.Commands(ctx, history.CommandFilter{RequestID: id, Before: before, Limit: query.DefaultLimit})
	if err != nil {
		return page{}, err
	}
	if len(found) == 0 {
		return page{}, p.unknownRequest()
	}
	if before == 0 && next == 0 {
		slices.Reverse(found) // all of them, in their order
	}
	v := templates.Request{RequestSummary: request, List: p.shownCommands(found)}
	if v.TaskStates, err = p.taskStates(ctx, found); err != nil {
		return page{}, err
	}
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

// taskStates returns the states of the tasks that commands publish.
func (p *outboxPages) taskStates(ctx context.Context, list []history.Command) (map[string]state.State, error) {
	var ids []string
	for _, c := range list {
		if c.Kind == "task" && c.TaskID != "" {
			ids = append(ids, c.TaskID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := p.backend.Tasks(ctx, history.TaskRequest{Query: lang.New(lang.Equal(lang.ID, ids...)), Limit: len(ids), Now: p.now()})
	if err != nil {
		return nil, fmt.Errorf("read the tasks of a request: %w", err)
	}
	states := make(map[string]state.State, len(found.Tasks))
	for i := range found.Tasks {
		states[found.Tasks[i].ID] = found.Tasks[i].State
	}
	return states, nil
}

func cursor(before int64) string { return "?cursor=" + strconv.FormatInt(before, 10) }

func (p *outboxPages) unknownRequest() error {
	return unknown(templates.Problem{
		Title:   "Unknown request",
		Message: "There is no request with this ID. Finished requests are removed after a while.",
		Back:    p.urls.Prefix + "/outbox", BackText: "All commands",
	})
}
