package web

import (
	"context"
	"net/http"
	"net/url"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/templates"
)

// The things that people can say of an unfinished task.
const (
	dismiss   = "dismiss"
	reinstate = "reinstate"
)

// askDismiss says what dismissing a task means, or taking that back.
func (p *forms) askDismiss(w http.ResponseWriter, r *http.Request) {
	v, err := p.dismissForm(r.Context(), r.URL.Query())
	p.showAct(w, r, v, err)
}

// dismiss dismisses a task, or takes that back.
func (p *forms) dismiss(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	v, err := p.dismissForm(r.Context(), r.PostForm)
	id := r.PostForm.Get("id")
	switch {
	case err != nil:
	case r.PostForm.Get("action") == reinstate:
		err = p.service().Reinstate(r.Context(), p.by(r), id)
	default:
		err = p.service().Dismiss(r.Context(), p.by(r), id)
	}
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	http.Redirect(w, r, p.urls.Prefix+templates.TaskPath(id), http.StatusSeeOther) //nolint:gosec // a path of ours, escaped
}

// dismissForm is the form of both.
func (p *forms) dismissForm(ctx context.Context, v url.Values) (templates.Form, error) {
	id, act := v.Get("id"), v.Get("action")
	form := templates.Form{
		Section: templates.SectionTasks, Title: "Dismiss this task", Path: "/act/dismiss", Button: "Dismiss",
		Crumbs:  []templates.Link{{Text: "Tasks", Href: p.urls.Prefix + "/tasks"}},
		Hidden:  []templates.Param{{Name: "action", Value: act}, {Name: "id", Value: id}},
		Preview: &templates.Preview{Preview: command.Preview{Summary: "Dismiss", Targets: []string{id}}},
		Description: "The task keeps its state but no longer counts as running or lost, and is removed after --keep-lost. Nothing is sent to " +
			"workers. Its next event, or reinstating it, undoes this.",
	}
	if act == reinstate {
		form.Title, form.Button, form.Preview.Summary = "Reinstate this task", "Reinstate", "Reinstate"
		form.Description = "The task counts again as its events say. Nothing is sent to workers."
	}
	form.NothingToDo = true
	if act != dismiss && act != reinstate {
		return form, &command.Error{Message: "a task can be dismissed or reinstated"}
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if err := p.service().Dismissible(ctx, id); err != nil {
		return form, err
	}
	t, err := p.backend.Task(ctx, id)
	if err != nil {
		return form, err
	}
	form.Crumbs = append(form.Crumbs, templates.Link{Text: shorten(id), Href: p.urls.Prefix + templates.TaskPath(id)})
	if act == dismiss && t.Lost == nil {
		form.Preview.Warnings = []command.Warning{{Message: "Nothing suggests that the task is lost: it may still run and finish."}}
	}
	form.NothingToDo = false
	return form, nil
}
