package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
)

// forms are the pages that ask before something is done, and do it.
type forms struct {
	*common
	queues *queuePages
}

// routeChanges adds the routes that change something. There are none if the dashboard is read-only, and without a
// command service none that act on the cluster.
func (all audiences) routeChanges(r router, h *Handler) {
	p := all.any()
	if p.trace == nil {
		r.post("/settings/redact", auth.View, all.settings((*settingsPage).tryRedaction)) // which changes nothing
	}
	if p.readOnly {
		return
	}
	r.post("/views", auth.SaveView, all.view((*viewsPage).save))
	r.get("/views/*", auth.SaveView, wildcard("id", all.view((*viewsPage).confirmDelete)))
	r.post("/views/*", auth.SaveView, wildcard("id", all.view((*viewsPage).change)))
	if p.alerts != nil {
		r.get("/act/alert", auth.EditAlert, all.form((*forms).askAlert))
		r.post("/act/alert", auth.EditAlert, all.form((*forms).saveAlert))
		r.get("/act/alert-delete", auth.EditAlert, all.form((*forms).askDeleteAlert))
		r.post("/act/alert-delete", auth.EditAlert, all.form((*forms).deleteAlert))
		r.post("/alerts/{id}/acknowledge", auth.AcknowledgeAlert, all.form((*forms).acknowledgeAlert))
		r.post("/alerts/mute", auth.AcknowledgeAlert, all.form((*forms).muteAlert))
	}
	r.post("/failures/{id}/resolve", auth.ResolveFailure, h.resolve(true))
	r.post("/failures/{id}/reopen", auth.ResolveFailure, h.resolve(false))
	r.post("/failures/{id}/note", auth.ResolveFailure, h.noteFailure)
	if p.service() == nil {
		return
	}
	if p.alerts != nil {
		r.post("/act/alert-test", auth.EditAlert, all.form((*forms).testAlert))
	}
	r.get("/act/worker", auth.ControlWorker, all.form((*forms).askWorker))
	r.post("/act/worker", auth.ControlWorker, all.form((*forms).sendWorker))
	r.get("/act/forget", auth.ForgetWorker, all.form((*forms).askForget))
	r.post("/act/forget", auth.ForgetWorker, all.form((*forms).forget))
	r.get("/act/purge", auth.PurgeQueue, all.form((*forms).askPurge))
	r.post("/act/purge", auth.PurgeQueue, all.form((*forms).purge))
	r.get("/act/release", auth.ReleaseLock, all.form((*forms).askRelease))
	r.post("/act/release", auth.ReleaseLock, all.form((*forms).release))
	r.get("/act/outbox", auth.ChangeOutbox, all.form((*forms).askOutbox))
	r.post("/act/outbox", auth.ChangeOutbox, all.form((*forms).changeOutbox))
	r.get("/act/dead-letters", auth.ChangeOutbox, all.form((*forms).askDeadLetters))
	r.post("/act/dead-letters", auth.ChangeOutbox, all.form((*forms).changeDeadLetters))
	r.get("/act/task", auth.RevokeTask, all.form((*forms).askTasks))
	r.post("/act/task", auth.RevokeTask, all.form((*forms).sendTasks))
	r.get("/act/exclude", auth.EditRule, all.form((*forms).askExclude))
	r.post("/act/exclude", auth.EditRule, all.form((*forms).exclude))
	r.get("/act/dismiss", auth.DismissTask, all.form((*forms).askDismiss))
	r.post("/act/dismiss", auth.DismissTask, all.form((*forms).dismiss))
	r.get("/act/publish", auth.PublishTask, all.form((*forms).askPublish))
	r.post("/act/publish", auth.PublishTask, all.form((*forms).publish))
}

// by identifies who sent a form, from which page, and which form, so that sending it twice makes one request.
func (p *forms) by(r *http.Request) command.Caller {
	g := auth.FromContext(r.Context())
	by := command.Caller{Actor: g.User, Method: g.Method, Role: string(g.Role), RemoteAddr: auth.RemoteAddr(r), Endpoint: r.URL.Path}
	if token := r.PostFormValue(templates.TokenParam); token != "" {
		by.IdempotencyKey = "form " + token
	}
	return by
}

// newToken names one form.
func newToken() string { return rand.Text() }

// checking reports whether the fields of a form are filled in and to be checked only.
func checking(r *http.Request) bool { return r.FormValue(templates.CheckParam) != "" }

// readForm parses the parameters of the address or of a form. If that fails, it writes the response.
func (p *forms) readForm(w http.ResponseWriter, r *http.Request) bool {
	if r.ParseForm() == nil {
		return true
	}
	p.problem(w, r, http.StatusBadRequest, templates.Problem{Title: "Nothing was sent", Message: "The form could not be parsed."})
	return false
}

// showAct shows a form, with why its request was refused unless err is nil.
func (p *forms) showAct(w http.ResponseWriter, r *http.Request, v templates.Form, err error) {
	status := http.StatusOK
	if err != nil {
		var field, why string
		status, field, why = p.refusal(r.Context(), err)
		v = v.Refuse(field, why)
	}
	if v.Token == "" {
		v.Token = newToken()
	}
	p.show(w, r, page{url: "/", static: true, status: status, title: v.Title, section: v.Section, view: v})
}

// refusal returns the status, the field and a sentence for a request that is refused.
func (p *forms) refusal(ctx context.Context, err error) (status int, field, why string) {
	if wrong, ok := errors.AsType[*command.Error](err); ok {
		status, why = http.StatusBadRequest, sentence(wrong.Message)
		switch wrong.Kind {
		case command.NotFound:
			status = http.StatusNotFound
		case command.Conflict:
			status = http.StatusConflict
		case command.Invalid:
		}
		if wrong.Nearest != "" && !strings.Contains(why, wrong.Nearest) {
			why += " Did you mean “" + wrong.Nearest + "”?"
		}
		return status, wrong.Field, why
	}
	if refused, ok := errors.AsType[*auth.Error](err); ok {
		return refused.Status, "", refused.Message
	}
	if errors.Is(err, history.ErrKeyReused) {
		return http.StatusUnprocessableEntity, "", "This form was already submitted for a different request. Check it and submit it again."
	}
	id := rand.Text()[:12]
	p.log.ErrorContext(ctx, "enqueue request", "request_id", id, "error", err)
	return http.StatusServiceUnavailable, "", "Nothing was sent: the request could not be stored. See the log for request " + id + "."
}

// taken redirects to the page of a request.
func (p *forms) taken(w http.ResponseWriter, r *http.Request, receipt command.Receipt) {
	target := p.urls.Prefix + "/outbox"
	if len(receipt.Commands) > 0 {
		first := receipt.Commands[0]
		target = p.urls.Prefix + templates.RequestPath(cmp.Or(first.RequestID, first.ID))
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}
