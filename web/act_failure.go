package web

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
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
