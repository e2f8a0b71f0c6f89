package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/templates"
)

// askDeadLetters says what requeuing or purging dead letters of an application would do.
func (p *forms) askDeadLetters(w http.ResponseWriter, r *http.Request) {
	v, err := p.deadLettersForm(r.Context(), r.URL.Query())
	p.showAct(w, r, v, err)
}

// changeDeadLetters requeues or purges dead letters of an application.
func (p *forms) changeDeadLetters(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	request, err := readDeadLetters(r.PostForm)
	if err == nil {
		var receipt command.Receipt
		receipt, err = p.service().ChangeDeadLetters(r.Context(), p.by(r), request, r.PostFormValue(templates.ConfirmParam))
		if err == nil {
			p.taken(w, r, receipt)
			return
		}
	}
	v, wrong := p.deadLettersForm(r.Context(), r.PostForm)
	if wrong != nil {
		err = wrong
	}
	p.showAct(w, r, v, err)
}

// readDeadLetters reads which dead letters are to be requeued, or purged.
func readDeadLetters(v url.Values) (command.DeadLetterRequest, error) {
	request := command.DeadLetterRequest{Outbox: v.Get("outbox"), All: v.Get("all") != "", Name: v.Get("name")}
	switch v.Get("action") {
	case "requeue":
		request.Action = command.RequeueDeadLetters
	case "purge":
		request.Action = command.PurgeDeadLetters
	default:
		return request, &command.Error{Field: "action", Message: "dead letters can be requeued or purged"}
	}
	if request.All {
		request.Cap = command.MaxCap
		return request, nil
	}
	for _, text := range v["id"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return request, &command.Error{Field: "id", Message: "the ID of a dead letter is not a number"}
		}
		request.IDs = append(request.IDs, id)
	}
	if len(request.IDs) == 0 {
		return request, &command.Error{Field: "id", Message: "no dead letter is selected"}
	}
	return request, nil
}

// deadLettersForm is the form that requeues or purges dead letters. It is an error if there are none.
func (p *forms) deadLettersForm(ctx context.Context, v url.Values) (templates.Form, error) {
	request, err := readDeadLetters(v)
	form := templates.Form{
		Section: templates.SectionOutbox, Title: "Requeue dead letters", Path: "/act/dead-letters",
		Description: "Moves them back into the application’s outbox, with no retries, from which its relay sends them.",
		Crumbs:      []templates.Link{{Text: "Dead letters", Href: p.urls.Prefix + templates.DeadLettersPath(request.Outbox)}},
		NothingToDo: true, Preview: &templates.Preview{Preview: command.Preview{Summary: "Nothing to do."}},
	}
	if request.Action == command.PurgeDeadLetters {
		form.Title, form.Danger = "Remove dead letters", true
		form.Description = "Removes them from the application’s database. This cannot be undone."
	}
	for _, name := range []string{"action", "outbox", "all", "name", "id"} {
		for _, value := range v[name] {
			form.Hidden = append(form.Hidden, templates.Param{Name: name, Value: value})
		}
	}
	if err != nil {
		return form, err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	preview, err := p.service().PreviewDeadLetters(ctx, request)
	if err != nil {
		return form, err
	}
	if preview.Selected == 0 {
		return form, &command.Error{Kind: command.Conflict, Message: "none of these is a dead letter any longer"}
	}
	form.NothingToDo, form.Preview = false, &templates.Preview{Preview: preview.Preview}
	return form, nil
}
