package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
)

const (
	actRequeue = "requeue"
	actDiscard = "discard"
	// maxChosen bounds how many commands one form is about.
	maxChosen = 10_000
	pageOfIDs = 500 // commands read at once
)

// askOutbox says which commands would be sent again, or discarded.
func (p *forms) askOutbox(w http.ResponseWriter, r *http.Request) {
	v, _, err := p.outboxForm(r.Context(), r.URL.Query())
	p.showAct(w, r, v, err)
}

// changeOutbox requeues dead letters, or discards them and cancels pending commands.
func (p *forms) changeOutbox(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	v, chosen, err := p.outboxForm(r.Context(), r.PostForm)
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	ids := make([]int64, len(chosen))
	for i, c := range chosen {
		ids[i] = c.ID
	}
	if r.PostFormValue("action") == actRequeue {
		_, err = p.service().Requeue(r.Context(), p.by(r), ids)
	} else {
		_, err = p.service().Discard(r.Context(), p.by(r), ids)
	}
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	target := p.urls.Prefix + "/outbox"
	if request := chosen[0].RequestID; !slices.ContainsFunc(chosen, func(c history.Command) bool { return c.RequestID != request }) {
		target = p.urls.Prefix + templates.RequestPath(request)
	}
	http.Redirect(w, r, target, http.StatusSeeOther) //nolint:gosec // only the number of the request varies
}

// outboxForm is the form that does something about commands that have not been sent, and those that it is about. It
// is an error if there are none.
func (p *forms) outboxForm(ctx context.Context, v url.Values) (templates.Form, []history.Command, error) {
	form := templates.Form{
		Section: templates.SectionOutbox, Title: "Send again", Path: "/act/outbox",
		Crumbs:      []templates.Link{{Text: "Outbox", Href: p.urls.Prefix + "/outbox?state=dead"}},
		NothingToDo: true, Preview: &templates.Preview{Preview: command.Preview{Summary: "Nothing to do."}},
	}
	act := v.Get("action")
	switch act {
	case actRequeue:
	case actDiscard:
		form.Title, form.Danger = "Discard", true
	default:
		form.Title = "Outbox"
		return form, nil, &command.Error{Message: "The action must be requeue or discard."}
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	chosen, err := p.chosenCommands(ctx, v, act)
	if err != nil {
		return form, nil, err
	}
	if len(chosen) == 0 {
		return form, nil, &command.Error{Kind: command.Conflict, Message: nothingChosen(act)}
	}
	form.NothingToDo = false
	form.Hidden = []templates.Param{{Name: "action", Value: act}}
	for _, name := range []string{"all", "request", "id"} {
		for _, value := range v[name] {
			form.Hidden = append(form.Hidden, templates.Param{Name: name, Value: value})
		}
	}
	form.Preview.Summary = summary(act, chosen)
	for _, c := range chosen {
		form.Preview.Targets = append(form.Preview.Targets, c.Summary+" → "+c.Target)
	}
	return form, chosen, nil
}

func nothingChosen(act string) string {
	if act == actRequeue {
		return "None of these commands is a dead letter."
	}
	return "None of these commands is a dead letter or pending."
}

// summary says what would be done.
func summary(act string, chosen []history.Command) string {
	dead := 0
	for _, c := range chosen {
		if c.State == history.CommandDead {
			dead++
		}
	}
	letters := fmt.Sprintf("%d dead letters", dead)
	if dead == 1 {
		letters = "the dead letter"
	}
	if act == actRequeue {
		return "Send " + letters + " again, with a new expiry."
	}
	waiting := fmt.Sprintf("%d pending commands", len(chosen)-dead)
	if len(chosen)-dead == 1 {
		waiting = "the pending command"
	}
	switch dead {
	case 0:
		return "Cancel " + waiting + "."
	case len(chosen):
		return "Discard " + letters + "."
	}
	return "Discard " + letters + " and cancel " + waiting + "."
}

// chosenCommands returns the commands that parameters name and that something can be done about: dead letters, and
// what waits if they are to be discarded.
func (p *forms) chosenCommands(ctx context.Context, v url.Values, act string) ([]history.Command, error) {
	states := []history.CommandState{history.CommandDead}
	if v.Get("all") != "" {
		return p.allCommands(ctx, history.CommandFilter{States: states})
	}
	if act == actDiscard {
		states = append(states, history.CommandPending)
	}
	if s := v.Get("request"); s != "" {
		request, err := strconv.ParseInt(s, 10, 64)
		if err != nil || request < 1 {
			return nil, &command.Error{Message: "The request ID is not a number."}
		}
		return p.allCommands(ctx, history.CommandFilter{States: states, RequestID: request})
	}
	if len(v["id"]) > maxChosen {
		return nil, &command.Error{Message: fmt.Sprintf("More than %d commands selected.", maxChosen)}
	}
	var chosen []history.Command
	for _, s := range v["id"] {
		id, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, &command.Error{Message: "A command ID is not a number."}
		}
		c, err := p.commands.Command(ctx, id)
		if errors.Is(err, history.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(states, c.State) {
			chosen = append(chosen, c)
		}
	}
	return p.shownCommands(chosen), nil
}

// allCommands returns the commands that match, at most maxChosen.
func (p *forms) allCommands(ctx context.Context, f history.CommandFilter) ([]history.Command, error) {
	var all []history.Command
	f.Limit = pageOfIDs
	for len(all) < maxChosen {
		found, next, err := p.commands.Commands(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		if next == 0 {
			break
		}
		f.Before = next
	}
	slices.SortFunc(all, func(a, b history.Command) int { return cmp.Compare(a.ID, b.ID) })
	return p.shownCommands(all), nil
}
