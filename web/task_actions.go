package web

import (
	"context"
	"fmt"
	"net/url"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// maxCommands bounds how many commands the page of a task lists.
const maxCommands = 20

// maxResult bounds what is shown of a stored result, in bytes.
const maxResult = 16_384

// taskActions are what can be done to a task, empty if the dashboard is read-only.
func (p *taskPage) taskActions(t *state.Task) []templates.TaskAction {
	if !p.urls.CanSend {
		return nil
	}
	act := func(title, icon, action string, params url.Values, why string) templates.TaskAction {
		a := templates.TaskAction{Title: title, Icon: icon, Why: why}
		if why == "" {
			a.Href = p.urls.Prefix + action + "?" + params.Encode()
		}
		return a
	}
	one := func(action string) url.Values { return url.Values{"action": {action}, "id": {t.ID}} }
	unfit := func(action string) string {
		why := p.service().Ineligible(action, []state.Task{*t})[0]
		if why == "" {
			return ""
		}
		return sentence(why)
	}
	again, edit := "", ""
	if !t.State.Final() && t.Lost == nil && t.Dismissed == nil {
		again = "Not finished."
	}
	if t.Name == nil {
		again, edit = "Name unknown.", "Name unknown."
	}
	list := []templates.TaskAction{
		act("Revoke", "ban", "/act/task", one(revoke), unfit(revoke)),
		act("Terminate", "octagon-x", "/act/task", one(terminate), unfit(terminate)),
		act("Retry", "rotate-cw", "/act/task", one("retry"), again),
		act("Edit and retry", "list-checks", "/act/publish", url.Values{"retry_of": {t.ID}}, edit),
	}
	switch t.State { // as Flower offers them
	case state.Received, state.Retry:
		list[0].ID = "task-revoke"
	case state.Started:
		list[1].ID = "task-terminate"
	default:
	}
	switch {
	case t.Dismissed != nil:
		list = append(list, act("Reinstate", "circle-stop", "/act/dismiss", one(reinstate), ""))
	case !t.State.Final():
		list = append(list, act("Dismiss", "circle-stop", "/act/dismiss", one(dismiss), ""))
	}
	return list
}

// taskCommands are the newest commands about a task, with the effects on it by ID.
func (p *taskPage) taskCommands(ctx context.Context, t *state.Task) ([]history.Command, map[int64]command.Effect, error) {
	if p.commands == nil {
		return nil, nil, nil
	}
	list, _, err := p.commands.Commands(ctx, history.CommandFilter{TaskID: t.ID, Limit: maxCommands})
	if err != nil {
		return nil, nil, fmt.Errorf("read commands: %w", err)
	}
	effects := make(map[int64]command.Effect)
	for i := range list {
		if e, ok := command.EffectOn(list[i], t); ok {
			effects[list[i].ID] = e
		}
	}
	return p.shownCommands(list), effects, nil
}

// retries are the retries of a task that somebody asked Umbel for, newest first.
func (p *taskPage) retries(ctx context.Context, t *state.Task) ([]templates.Retry, error) {
	if p.commands == nil {
		return nil, nil
	}
	found, err := p.commands.Retries(ctx, t)
	list := make([]templates.Retry, len(found))
	for i, r := range found {
		list[i] = templates.Retry{RetriedTask: r, State: p.lookUp(ctx, r.ID).State}
	}
	return list, err
}

// stored is what the result backend holds of a task, nil if there is no backend. It is waited for only shortly.
func (p *taskPage) stored(ctx context.Context, t *state.Task) *templates.StoredResult {
	if p.results == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resultTimeout)
	defer cancel()
	ended := t.State == state.Success || t.State == state.Failure
	v := &templates.StoredResult{Source: p.results.backend.String(), Expected: ended}
	r, answered, err := p.results.of(ctx, t.ID)
	switch {
	case !answered:
		v.Loading = true
		return v
	case err != nil:
		v.Unreachable = true
		return v
	case r.missing:
		v.Missing = true
		return v
	}
	v.Status, v.Unreadable, v.Exception, v.Traceback = state.State(r.Status), r.Undecodable, r.Exception, r.Traceback
	v.DoneAt, v.NoZone = micros(r.DoneAt), r.NaiveTime
	v.JSON = p.urls.Prefix + "/api/v1/results/" + url.PathEscape(t.ID)
	text, whole := indent(r.Value, maxResult)
	if v.Value = text; !whole {
		v.Size = len(r.Value)
	}
	v.Disagrees = results.Compare(t, r.Result)
	return v
}
