package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
)

// resolve resolves a group, or reopens it, and leads back to where the visitor was.
func (h *Handler) resolve(resolve bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := h.pages.of(r)
		id, ok := fingerprint.ParseID(chi.URLParam(r, "id"))
		if !ok {
			p.notFound(w, r)
			return
		}
		at := time.Time{}
		if resolve {
			at = p.now()
		}
		err := p.backend.History().ResolveFailureGroup(r.Context(), id, at)
		switch {
		case errors.Is(err, history.ErrNotFound):
			p.notFound(w, r)
		case err != nil:
			p.notLoaded(w, r, err)
		default:
			action := "reopen failure"
			if resolve {
				action = "resolve failure"
			}
			p.record(r, action, id.String())
			http.Redirect(w, r, withResolved(h.back(r.FormValue("return")), id, resolve), http.StatusSeeOther)
		}
	}
}

// noteFailure changes the note or the assignee of a group, of which a form may have one.
func (h *Handler) noteFailure(w http.ResponseWriter, r *http.Request) {
	p := h.pages.of(r)
	id, ok := fingerprint.ParseID(chi.URLParam(r, "id"))
	if !ok {
		p.notFound(w, r)
		return
	}
	if r.ParseForm() != nil {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{Title: "Nothing was saved", Message: "The form could not be parsed."})
		return
	}
	n := history.FailureNote{By: auth.FromContext(r.Context()).User, At: p.now()}
	if r.PostForm.Has("note") {
		n.Text = new(strings.TrimSpace(strings.ReplaceAll(r.PostForm.Get("note"), "\r\n", "\n")))
	}
	if r.PostForm.Has("assignee") {
		n.Assignee = new(strings.TrimSpace(r.PostForm.Get("assignee")))
	}
	if err := api.CheckFailureNote(n); err != nil {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{
			Title: "Nothing was saved", Message: err.Error(), Back: p.urls.Prefix + templates.FailurePath(id.String()), BackText: "The failure",
		})
		return
	}
	err := p.backend.History().NoteFailureGroup(r.Context(), id, n)
	switch {
	case errors.Is(err, history.ErrNotFound):
		p.notFound(w, r)
	case err != nil:
		p.notLoaded(w, r, err)
	default:
		for _, action := range api.FailureNoteActions(n) {
			p.record(r, action, id.String())
		}
		http.Redirect(w, r, h.back(r.FormValue("return")), http.StatusSeeOther)
	}
}

// withResolved adds to an address that a group was resolved, or removes that.
func withResolved(target string, id fingerprint.ID, resolved bool) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	v := u.Query()
	v.Del(paramResolved)
	if resolved {
		v.Set(paramResolved, id.String())
	}
	u.RawQuery = v.Encode()
	return u.RequestURI()
}
