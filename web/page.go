package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/live"
	"github.com/umbelhq/umbel/web/query"
)

// loadTimeout is how long a page may take to load.
const loadTimeout = 5 * time.Second

// page is one page as it is now.
type page struct {
	url     string // path and query below the prefix, in their one spelling; the topic of live updates
	static  bool   // it does not change by itself: there is no such topic
	status  int    // 0 means 200
	title   string
	section templates.Section
	view    templates.View
	lasting bool // as its route
}

// address is the URL of a page, taken apart.
type address struct {
	name  string // what the path names, unescaped; empty where the pattern has no such part
	query url.Values
}

// route is a kind of page.
type route struct {
	// pattern is of chi. The last segment may be {name}, or * where names hold slashes; or one before it {id}.
	pattern string
	// action is what those may take who see the page, by a visit or live.
	action auth.Action
	// load reads the page. The error is a *problem or a redirect, or that of the history.
	load func(ctx context.Context, a address) (page, error)
	// visit runs before a visitor gets the page, not before live updates. It may return a URL to go to instead.
	visit func(ctx context.Context, a address) string
	// onlyNow says, in a sentence, why an instant does not apply to the page. Pages without show how they were.
	onlyNow string
}

func (rt route) lasting() bool { return rt.onlyNow == "" }

// match returns the address of a URL below the prefix, false if the URL is that of another kind of page.
func (rt route) match(u *url.URL) (address, bool) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		query = u.Query()
	}
	path := u.EscapedPath()
	if before, after, within := strings.Cut(rt.pattern, "{id}/"); within {
		rest, ok := strings.CutPrefix(path, before)
		id, fits := strings.CutSuffix(rest, "/"+after)
		name, err := url.PathUnescape(id)
		return address{name, query}, ok && fits && id != "" && !strings.Contains(id, "/") && err == nil
	}
	cut := strings.LastIndexByte(rt.pattern, '/') + 1
	last := rt.pattern[cut:]
	if last != "*" && !strings.HasPrefix(last, "{") {
		return address{query: query}, path == rt.pattern
	}
	rest, ok := strings.CutPrefix(path, rt.pattern[:cut])
	if !ok || rest == "" || last != "*" && strings.Contains(rest, "/") {
		return address{}, false
	}
	name, err := url.PathUnescape(rest)
	return address{name, query}, err == nil
}

// problem is the error of a page that there is not: what is shown in its place.
type problem struct {
	status int
	view   templates.Problem
}

func (e *problem) Error() string { return e.view.Message }

// unknown says that nothing has the name in the address of a page.
func unknown(v templates.Problem) error { return &problem{http.StatusNotFound, v} }

// invalid says that a parameter of an address is wrong. back leads to the page without parameters.
func invalid(err error, back templates.Link) error {
	return &problem{http.StatusBadRequest, templates.Problem{
		Title: "Invalid address", Message: "The parameter " + err.Error() + ".", Back: back.Href, BackText: back.Text,
	}}
}

// redirect is the error of a page that has moved to another URL below the prefix.
type redirect string

func (e redirect) Error() string { return "moved to " + string(e) }

// load returns the page at a URL below the prefix, for visitors and live updates alike. The error is a *problem or a
// redirect, or that of the history.
func (p *pages) load(ctx context.Context, u *url.URL) (page, error) {
	for _, rt := range p.routes {
		a, ok := rt.match(u)
		switch {
		case !ok:
			continue
		case !p.audience.Allows(rt.action): // the route has checked; should it be another than this page's, this has not
			return page{}, &auth.Error{Status: http.StatusForbidden, Message: "You may not see this page."}
		}
		pg, err := rt.load(ctx, a)
		pg.lasting = rt.lasting()
		return pg, err
	}
	return page{}, unknown(templates.Problem{Title: "Not found", Message: "This page does not exist."})
}

// action is what those may take who see the page at a URL.
func (p *pages) action(topic string) auth.Action {
	u, err := url.Parse(topic)
	if err != nil {
		return auth.View
	}
	for _, rt := range p.routes {
		if _, ok := rt.match(u); ok {
			return rt.action
		}
	}
	return auth.View
}

// serve handles requests for the pages of a route.
func (p *pages) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.times != nil && r.URL.Query().Has(paramAt) {
			p.servePast(w, r, rt)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
		defer cancel()
		if a, ok := rt.match(r.URL); ok && rt.visit != nil {
			if target := rt.visit(ctx, a); target != "" {
				http.Redirect(w, r, p.urls.Prefix+target, http.StatusSeeOther)
				return
			}
		}
		pg, err := p.load(ctx, r.URL)
		switch {
		case err != nil:
			p.notLoaded(w, r, err)
		case !pg.static && hasEmpty(r.URL.Query()):
			// A form sends its empty fields too. The address bar gets the short spelling.
			http.Redirect(w, r, p.urls.Prefix+pg.url, http.StatusSeeOther)
		default:
			p.show(w, r, pg)
		}
	}
}

// notLoaded says why there is no page.
func (p *common) notLoaded(w http.ResponseWriter, r *http.Request, err error) {
	if wrong, ok := errors.AsType[*problem](err); ok {
		p.problem(w, r, wrong.status, wrong.view)
		return
	}
	if target, ok := errors.AsType[redirect](err); ok {
		path := string(target)
		if p.instant != nil {
			path = withInstant(path, p.instant.At)
		}
		http.Redirect(w, r, p.urls.Prefix+path, http.StatusSeeOther) //nolint:gosec // a page of ours
		return
	}
	if why, ok := errors.AsType[*auth.Error](err); ok {
		p.problem(w, r, why.Status, templates.Problem{Title: http.StatusText(why.Status), Message: why.Message})
		return
	}
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{
			Title: "Invalid search", Message: sentence(wrong.Message), Back: p.urls.Prefix + "/tasks", BackText: "Newest tasks",
		})
		return
	}
	if wrong, ok := errors.AsType[lang.UnresolvedError](err); ok {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{
			Title: "Invalid search", Message: sentence(wrong.Error()), Back: p.urls.Prefix + "/tasks", BackText: "Newest tasks",
		})
		return
	}
	if errors.Is(err, fair.ErrBusy) {
		w.Header().Set("Retry-After", "5")
		p.problem(w, r, http.StatusServiceUnavailable, templates.Problem{
			Title: "Too many searches", Message: "Your earlier searches are still running. Try again in a moment.",
		})
		return
	}
	id := rand.Text()[:12]
	p.log.ErrorContext(r.Context(), "read page", "request_id", id, "path", r.URL.Path, "error", err)
	p.problem(w, r, http.StatusServiceUnavailable, templates.Problem{
		Title:     "The history is unavailable",
		Message:   "Umbel keeps receiving events. Try again, or narrow the search.",
		RequestID: id,
		Back:      p.urls.Prefix + "/tasks",
		BackText:  "Newest tasks",
	})
}

func hasEmpty(v url.Values) bool {
	for _, values := range v {
		if slices.Contains(values, "") {
			return true
		}
	}
	return false
}

// Snapshot renders the page at a URL for live updates. Only the one spelling of a URL is a topic, so that all who look
// at a page share it.
func (p *pages) Snapshot(ctx context.Context, topic string) (live.Snapshot, error) {
	u, err := url.Parse(topic)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return live.Snapshot{}, live.ErrNoTopic
	}
	pg, err := p.load(ctx, u)
	_, missing := errors.AsType[*problem](err)
	_, moved := errors.AsType[redirect](err)
	_, refused := errors.AsType[*auth.Error](err)
	_, invalid := errors.AsType[*query.Error](err)
	_, unknown := errors.AsType[lang.UnresolvedError](err)
	if missing || moved || refused || invalid || unknown || err == nil && (pg.static || pg.url != topic) {
		return live.Snapshot{}, live.ErrNoTopic
	}
	if err != nil {
		return live.Snapshot{}, err
	}
	return p.snapshot(ctx, pg)
}
