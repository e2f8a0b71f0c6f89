package web

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
)

// router registers routes. It is the only way to chi's router, so that no route is without an action, and nobody gets to a
// handler who may not take it.
type router struct {
	mux   chi.Router
	table *[]auth.Route // all that were registered
	deny  func(w http.ResponseWriter, r *http.Request, why *auth.Error, refuse auth.Refuse)
}

// handle registers a route.
func (rt router) handle(route auth.Route) {
	if err := route.Check(); err != nil {
		panic(err) // before anything is served
	}
	*rt.table = append(*rt.table, route)
	rt.mux.Method(route.Method, route.Pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := auth.Decide(r.Context(), route.Action); why != nil {
			rt.deny(w, r, why, route.Refuse)
			return
		}
		route.Handler.ServeHTTP(w, r)
	}))
}

// get registers a page.
func (rt router) get(pattern string, action auth.Action, h http.HandlerFunc) {
	rt.handle(auth.Route{Method: http.MethodGet, Pattern: pattern, Action: action, Handler: h})
}

// post registers a form.
func (rt router) post(pattern string, action auth.Action, h http.HandlerFunc) {
	rt.handle(auth.Route{Method: http.MethodPost, Pattern: pattern, Action: action, Handler: h})
}

// with returns a router that wraps handlers with middlewares.
func (rt router) with(middlewares ...func(http.Handler) http.Handler) router {
	rt.mux = rt.mux.With(middlewares...)
	return rt
}

// asAPI refuses with a problem document.
func asAPI(w http.ResponseWriter, _ *http.Request, why *auth.Error) {
	api.Refuse(w, why.Status, why.Message)
}

// asText refuses with a line of text, for programs.
func asText(w http.ResponseWriter, _ *http.Request, why *auth.Error) {
	http.Error(w, why.Message, why.Status)
}

// signInURL is where a browser is led that asks for a page and is not signed in, empty if there is no such page.
func (h *Handler) signInURL(r *http.Request) string {
	c, ok := h.auth.(auth.Challenger)
	if !ok || c.SignInPath() == "" {
		return ""
	}
	target := h.prefix + c.SignInPath()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return target
	}
	next := h.prefix + r.URL.EscapedPath() // guard has stripped the prefix
	if r.URL.RawQuery != "" {
		next += "?" + r.URL.RawQuery
	}
	return target + "?" + url.Values{"next": {next}}.Encode()
}

// challenge tells other clients how to sign in, as 401 must.
func (h *Handler) challenge(w http.ResponseWriter) {
	scheme := ""
	if c, ok := h.auth.(auth.Challenger); ok {
		scheme = c.Challenge()
	}
	w.Header().Set("WWW-Authenticate", cmp.Or(scheme, `Bearer realm="Umbel"`))
}
