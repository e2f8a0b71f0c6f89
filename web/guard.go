package web

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
)

// policy lets a page load what this server sends and nothing else: no inline script, no inline style.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard stands before every route: it sets security headers, refuses foreign hosts and cross-site writes,
// takes the prefix off, and answers for handlers that panic.
func (h *Handler) guard(o Options, p *pages, next http.Handler) (http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	for _, origin := range o.Origins {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("the origin %q is not of the form https://host: %w", origin, err)
		}
	}
	routed := protection.Handler(h.strip(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("X-Robots-Tag", "noindex, nofollow")
		if !allowed(o.Hosts, r.Host) {
			http.Error(w, "this dashboard is not served under that name; --host allows one", http.StatusMisdirectedRequest)
			return
		}
		defer recovered(p, w, r)
		routed.ServeHTTP(w, r)
	}), nil
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

// origins returns those of pages that a proxy shows under one of hosts. Other programs serve pages on
// loopback too, so its names are none.
func origins(hosts []string) []string {
	var list []string
	for _, h := range hosts {
		ip := net.ParseIP(h)
		if strings.EqualFold(h, "localhost") || ip != nil || strings.ContainsAny(h, `*?[]\/:`) {
			continue
		}
		list = append(list, "https://"+h, "http://"+h)
	}
	return list
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
		// An outer chi router leaves its own position in the context.
		r = r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil)))
		u := *r.URL
		u.Path, u.RawPath = path, raw
		r.URL = &u
		next.ServeHTTP(w, r)
	})
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

// recovered answers for a handler that panicked, with an id that leads to the cause in the log.
func recovered(p *pages, w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
		panic(cause)
	}
	id := rand.Text()[:12]
	p.log.ErrorContext(r.Context(), "handler panicked", "request_id", id, "path", r.URL.Path, "cause", cause)
	p.failed(w, r, id)
}
