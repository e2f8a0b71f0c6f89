package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/issue"
)

// tracebackLines is how many lines of the newest traceback an issue has: the last ones, which say where it failed.
const tracebackLines = 12

// issue leads to the form of the tracker, filled in. It is a route of its own, since only a request tells by which name this
// dashboard is reached.
func (all audiences) issue(w http.ResponseWriter, r *http.Request) {
	p := all.of(r)
	pg, err := p.failing.loadGroup(r.Context(), address{name: chi.URLParam(r, "id")})
	if err != nil {
		p.notLoaded(w, r, err)
		return
	}
	v, ok := pg.view.(templates.FailureGroup)
	if !ok {
		p.notFound(w, r)
		return
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, p.issues.URL(issueValues(v, origin(r)+p.urls.Prefix+pg.url)), http.StatusSeeOther) //nolint:gosec // to the tracker that the operator chose
}

// issueValues describe a group of failures.
func issueValues(v templates.FailureGroup, page string) issue.Values {
	f := v.Group
	out := issue.Values{
		Title: templates.FailureTitle(f), Name: f.Name, Exception: f.Fingerprint.Type, URL: page, Count: templates.FailureCount(f),
	}
	lines := []string{
		f.Fingerprint.Message, "",
		out.Count + " failed between " + f.FirstAt.UTC().Format(time.RFC3339) + " and " + f.LastAt.UTC().Format(time.RFC3339) + ".", page,
	}
	if v.Traceback != nil {
		tail := strings.Split(strings.TrimSpace(*v.Traceback), "\n")
		lines = append(lines, "", "```")
		lines = append(append(lines, tail[max(0, len(tail)-tracebackLines):]...), "```")
	}
	out.Body = strings.TrimSpace(strings.Join(lines, "\n"))
	return out
}

// origin is how the browser reaches this server. Proxies that terminate TLS set X-Forwarded-Proto.
func origin(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
