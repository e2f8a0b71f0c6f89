package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/flower"
)

// policy lets a page load what this server sends and nothing else: no inline script, no inline style.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard wraps all routes: it sets security headers, refuses unknown hosts and cross-origin requests, reads bodies within
// bounds, strips the prefix, and recovers from panics.
func (h *Handler) guard(o Options, all audiences, next http.Handler) (http.Handler, error) {
	foreign, err := newCrossOrigin(o.Origins)
	if err != nil {
		return nil, err
	}
	routed := h.strip(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("X-Robots-Tag", "noindex, nofollow")
		// Whatever refuses a request, net/http reads some of its body.
		h.bodies.begin(w, r)
		if !allowed(o.Hosts, r.Host) {
			h.refuse(w, r, http.StatusMisdirectedRequest, "This host name is not allowed; see --host.")
			return
		}
		if foreign.refuses(r) {
			h.refuse(w, r, http.StatusForbidden, "Cross-site requests are not allowed, except links.")
			return
		}
		defer func() {
			if cause := recover(); cause != nil {
				panicked(h.shownTo(r, all), w, r, cause)
			}
		}()
		grant, refused := h.authenticate(r)
		if len(grant.User) > maxClient {
			h.refuse(w, r, http.StatusBadRequest, fmt.Sprintf("The name of the user is longer than %d bytes.", maxClient))
			return
		}
		ctx := auth.NewContext(r.Context(), grant)
		if refused != nil {
			ctx = auth.Refused(ctx, refused)
		}
		r = r.WithContext(fair.NewContext(ctx, client(r, grant.User)))
		leave, wrong := h.bodies.take(w, r, h.bodyType(r))
		if leave != nil {
			defer leave()
		}
		switch {
		case wrong == nil:
			routed.ServeHTTP(w, r)
		case h.ofAPI(r):
			h.refuse(w, r, wrong.status, wrong.detail)
		default:
			h.shownTo(r, all).problem(w, r, wrong.status, templates.Problem{Title: "Nothing was sent", Message: wrong.detail})
		}
	}), nil
}

// authenticate returns who makes a request, nobody for static files: a page has many, and they are open.
func (h *Handler) authenticate(r *http.Request) (auth.Grant, error) {
	if path, _ := h.below(r.URL.Path); strings.HasPrefix(path, "/assets/") {
		return auth.Grant{}, nil
	}
	return h.auth.Authenticate(r) //nolint:wrapcheck // it is for the client
}

// hostDecides is the Authenticator of hosts that let only those in who may do everything.
type hostDecides struct {
	identify func(r *http.Request) string // may be nil
	clusters []string                     // where there are several
}

// Authenticate grants everything.
func (a hostDecides) Authenticate(r *http.Request) (auth.Grant, error) {
	g := auth.Grant{Method: "host", Audience: auth.Everything, Clusters: a.clusters}
	if a.identify != nil {
		g.User = a.identify(r)
	}
	return g, nil
}

// deny responds to one who may not take the action of a route. Without a way of its own to refuse, that is a page or a form:
// browsers are led to where people sign in.
func (h *Handler) deny(all audiences) func(w http.ResponseWriter, r *http.Request, why *auth.Error, refuse auth.Refuse) {
	return func(w http.ResponseWriter, r *http.Request, why *auth.Error, refuse auth.Refuse) {
		if why.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(why.RetryAfter.Seconds()))))
		}
		if refuse == nil && flower.WantsJSON(r) {
			refuse = asText // a program, which cannot sign in on a page
		}
		signIn := h.signInURL(r)
		if why.Status == http.StatusUnauthorized && (refuse != nil || signIn == "") {
			h.challenge(w)
		}
		switch {
		case refuse != nil:
			refuse(w, r, why)
		case why.Status == http.StatusUnauthorized && signIn != "":
			http.Redirect(w, r, signIn, http.StatusSeeOther) //nolint:gosec // a path of this server
		default:
			h.shownTo(r, all).problem(w, r, why.Status, templates.Problem{Title: http.StatusText(why.Status), Message: why.Message})
		}
	}
}

// shownTo is what draws pages for the one who makes a request.
func (h *Handler) shownTo(r *http.Request, all audiences) *common {
	if p := all.of(r); p != nil {
		return p.common
	}
	if h.overall != nil && auth.FromContext(r.Context()).Role != "" {
		return h.overall
	}
	return h.nobody
}

// refuse responds to a request that reaches no route.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if h.ofAPI(r) {
		api.Refuse(w, status, detail)
		return
	}
	http.Error(w, detail, status)
}

// ofAPI reports whether a request is for the JSON API or its tools.
func (h *Handler) ofAPI(r *http.Request) bool {
	path, _ := h.below(r.URL.Path)
	return strings.HasPrefix(path, "/api/") || path == mcpPath
}

// bodyType is the type that the body of a request must have, empty if any will do, as for Flower's API.
func (h *Handler) bodyType(r *http.Request) string {
	path, _ := h.below(r.URL.Path)
	switch {
	case strings.HasPrefix(path, apiPath+"/"), path == mcpPath:
		return jsonType
	case strings.HasPrefix(path, "/api/"), path == "/tasks/datatable":
		return ""
	}
	return formType
}

// allowed reports whether the host of a request is one of hosts, or any is.
func allowed(hosts []string, host string) bool {
	if len(hosts) == 0 {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// strip takes the prefix off the path, if it is there, and routes from the root whatever router is
// around this handler.
func (h *Handler) strip(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, okPath := h.below(r.URL.Path)
		raw, okRaw := h.below(r.URL.RawPath)
		if r.URL.Path == "" || !okPath || !okRaw {
			u := url.URL{Path: h.prefix + "/", RawQuery: r.URL.RawQuery}
			http.Redirect(w, r, u.String(), http.StatusPermanentRedirect)
			return
		}
		if plain, err := url.PathUnescape(raw); err != nil || plain != path { // a prefix in another spelling
			raw = "" // so that the path that is routed is the one that pages see
		}
		if target, ok := slashless(path, raw); ok {
			target.Path, target.RawPath, target.RawQuery = h.prefix+target.Path, h.prefix+target.RawPath, r.URL.RawQuery
			http.Redirect(w, r, target.String(), http.StatusPermanentRedirect) //nolint:gosec // slashless leads to no other host
			return
		}
		// An outer chi router leaves its own position in the context.
		r = r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil)))
		u := *r.URL
		u.Path, u.RawPath = path, raw
		r.URL = &u
		next.ServeHTTP(w, r)
	})
}

// slashless returns a path without the slashes at its end, if there are any. An escaped slash is part of a name.
func slashless(path, raw string) (url.URL, bool) {
	raw = cmp.Or(raw, path)
	trimmed := strings.TrimRight(raw, "/")
	n := len(raw) - len(trimmed)
	if n == 0 || trimmed == "" || strings.HasPrefix(path, "//") { // a browser would take these for a host
		return url.URL{}, false
	}
	return url.URL{Path: path[:len(path)-n], RawPath: trimmed}, true
}

// below returns the path under the prefix; false for the prefix itself without a slash.
func (h *Handler) below(path string) (string, bool) {
	if h.prefix == "" {
		return path, true
	}
	rest, ok := strings.CutPrefix(path, h.prefix)
	switch {
	case !ok || rest != "" && rest[0] != '/':
		return path, true
	case rest == "" && path != "":
		return "", false
	}
	return rest, true
}

// panicked responds for a handler that panicked, with the ID of the cause in the log.
func panicked(p *common, w http.ResponseWriter, r *http.Request, cause any) {
	if cause == http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
		panic(cause)
	}
	id := rand.Text()[:12]
	p.log.ErrorContext(r.Context(), "handler panicked", "request_id", id, "path", r.URL.Path, "cause", cause)
	p.failed(w, r, id)
}
