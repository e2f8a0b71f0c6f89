package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
)

// forms are the pages that ask before something is done, and do it.
type forms struct {
	*common
	queues *queuePages
}

// routeChanges adds the routes that change something. There are none if the dashboard is read-only, and without a
// command service none that act on the cluster.
func (p *pages) routeChanges(r chi.Router, h *Handler) {
	if p.readOnly {
		return
	}
	r.Post("/views", p.views.save)
	r.Get("/views/*", wildcard("id", p.views.confirmDelete))
	r.Post("/views/*", wildcard("id", p.views.change))
	r.Post("/failures/{id}/resolve", h.resolve(p.failing, true))
	r.Post("/failures/{id}/reopen", h.resolve(p.failing, false))
	if p.service() == nil {
		return
	}
	f := p.forms
	r.Get("/act/worker", f.askWorker)
	r.Post("/act/worker", f.sendWorker)
	r.Get("/act/forget", f.askForget)
	r.Post("/act/forget", f.forget)
	r.Get("/act/purge", f.askPurge)
	r.Post("/act/purge", f.purge)
	r.Get("/act/release", f.askRelease)
	r.Post("/act/release", f.release)
	r.Get("/act/outbox", f.askOutbox)
	r.Post("/act/outbox", f.changeOutbox)
	r.Get("/act/dead-letters", f.askDeadLetters)
	r.Post("/act/dead-letters", f.changeDeadLetters)
	r.Get("/act/task", f.askTasks)
	r.Post("/act/task", f.sendTasks)
	r.Get("/act/exclude", f.askExclude)
	r.Post("/act/exclude", f.exclude)
	r.Get("/act/dismiss", f.askDismiss)
	r.Post("/act/dismiss", f.dismiss)
	r.Get("/act/publish", f.askPublish)
	r.Post("/act/publish", f.publish)
}

// by identifies who sent a form, from which page, and which form, so that sending it twice makes one request.
func (p *forms) by(r *http.Request) command.Caller {
	by := command.Caller{RemoteAddr: r.RemoteAddr, Endpoint: r.URL.Path}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		by.RemoteAddr = host
	}
	if p.identify != nil {
		by.Actor = p.identify(r)
	}
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
