package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/issue"
	"github.com/umbelhq/umbel/web/live"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

// common is what all pages and forms share.
type common struct {
	backend  Backend
	commands *command.Service // nil where only events are seen
	readOnly bool
	audience auth.Audience // that pages are drawn for
	// appOutboxes are the outboxes of applications, nil if none is watched.
	appOutboxes *outboxwatch.Watcher
	// beatTables are the tables of django-celery-beat, nil if none are read.
	beatTables *beat.Watcher
	alerts     *evaluate.Service // nil if there are none
	flow       *flow.Reader      // says whether work flows, nil of a trace
	redactor   *redact.Redactor
	auditLog   history.AuditLog // nil records nothing
	urls       templates.URLs
	signedIn   *signInPages    // nil where people do not sign in here
	overall    *Clusters       // whose pages are drawn, nil for those of one cluster
	bare       bool            // pages show nothing of the cluster, for those who are not signed in
	version    string          // of Umbel
	issues     *issue.Template // nil for none
	demo       bool            // the cluster is simulated
	remember   func(topic, name string, s live.Snapshot)
	times      *times           // past; nil if they cannot be read
	instant    *templates.Past  // that pages show, nil for now
	then       *view.Past       // likewise
	outbox     outboxStats      // which every page shows
	trace      *templates.Trace // shown in place of a cluster that changes, nil for that
	now        func() time.Time
	log        *slog.Logger
}

// service accepts requests. It is nil if the dashboard is read-only.
func (p *common) service() *command.Service {
	if p.readOnly || p.commands == nil || p.commands.Relay == nil {
		return nil
	}
	return p.commands
}

// shownCommands returns commands as the audience may see them.
func (p *common) shownCommands(list []history.Command) []history.Command {
	shown := make([]history.Command, len(list))
	for i := range list {
		shown[i] = p.shownCommand(list[i])
	}
	return shown
}

func (p *common) shownCommand(c history.Command) history.Command {
	if p.audience.Payload {
		return c
	}
	return payload.Command(c)
}

// layout is what surrounds every page.
func (p *common) layout(ctx context.Context) templates.Layout {
	if p.overall != nil {
		return templates.Layout{URLs: p.urls, Version: p.version, Overall: true}
	}
	h := p.backend.Health()
	if p.instant != nil {
		return templates.Layout{URLs: p.urls, Version: p.version, Health: h, Past: p.instant, Trace: p.trace}
	}
	return templates.Layout{
		URLs: p.urls, Version: p.version, Health: h, HistoryError: p.historyError(h), Outbox: p.outboxAlert(ctx),
		AppOutboxes: p.appOutboxAlerts(), Alerts: p.alertBell(), Trace: p.trace,
	}
}

// snapshot draws a page and keeps the parts of it that change.
func (p *common) snapshot(ctx context.Context, pg page) (live.Snapshot, error) {
	parts, err := templates.Record(context.WithoutCancel(ctx), pg.view.Page(p.layout(ctx)), io.Discard)
	if err != nil {
		return live.Snapshot{}, fmt.Errorf("render %s: %w", pg.url, err)
	}
	return snapshotOf(parts), nil
}

func snapshotOf(parts templates.Parts) live.Snapshot {
	s := live.Snapshot{Regions: fragments(parts.Regions)}
	for _, l := range parts.Lists {
		s.Lists = append(s.Lists, live.List{ID: l.ID, Rows: fragments(l.Rows)})
	}
	return s
}

func fragments(parts []templates.Part) []live.Fragment {
	list := make([]live.Fragment, len(parts))
	for i, part := range parts {
		list[i] = live.Fragment(part)
	}
	return list
}

// record records what a visitor has changed of views and failures. Its error is logged: what is done is done.
func (p *common) record(r *http.Request, action, target string) {
	if p.auditLog == nil {
		return
	}
	a := auth.AuditRecord(r)
	a.Kind, a.Action, a.Target = history.AuditView, action, target
	if err := p.auditLog.Append(context.WithoutCancel(r.Context()), a); err != nil {
		p.log.ErrorContext(r.Context(), "write audit record", "action", action, "error", err)
	}
}

// notFound responds to addresses without a page.
func (p *common) notFound(w http.ResponseWriter, r *http.Request) {
	p.problem(w, r, http.StatusNotFound, templates.Problem{
		Title:   "Not found",
		Message: "This page does not exist.",
	})
}

// notAllowed responds to methods that the route does not have.
func (p *common) notAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := cmp.Or(r.URL.RawPath, r.URL.Path)
		var list []string
		for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			as := m
			if m == http.MethodHead {
				as = http.MethodGet // as middleware.GetHead has it
			}
			if routes.Match(chi.NewRouteContext(), as, path) {
				list = append(list, m)
			}
		}
		allowed := strings.Join(list, ", ")
		w.Header().Set("Allow", allowed)
		p.problem(w, r, http.StatusMethodNotAllowed, templates.Problem{
			Title: "Not allowed", Message: "This address does not support " + r.Method + ", only " + allowed + ".",
		})
	}
}

// failed responds with an error page. The request ID is that of the cause in the log.
func (p *common) failed(w http.ResponseWriter, r *http.Request, requestID string) {
	p.problem(w, r, http.StatusInternalServerError, templates.Problem{
		Title:     "Something went wrong",
		Message:   "This page could not be rendered. Umbel keeps running.",
		RequestID: requestID,
	})
}

func (p *common) problem(w http.ResponseWriter, r *http.Request, status int, v templates.Problem) {
	p.show(w, r, page{url: "/", static: true, status: status, title: v.Title, view: v})
}

// param is a route parameter as it was before it was escaped. chi leaves it escaped only where the
// path could not be written otherwise.
func param(r *http.Request, name string) string {
	v := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

// show writes a page within its layout.
func (p *common) show(w http.ResponseWriter, r *http.Request, pg page) {
	l := templates.Layout{URLs: p.urls, Bare: true}
	if !p.bare {
		l = p.layout(r.Context())
		l.User, l.Clusters = p.user(r), p.elsewhere(r, pg)
	}
	l.Title, l.Section, l.Theme, l.Path = pg.title, pg.section, theme(r), p.urls.Prefix+pg.url
	l.Span = query.SpanOf(pg.url)
	l.Compact, l.Time, l.Demo, l.TourDone = compact(r), timeOf(r), p.demo, toured(r)
	switch {
	case p.instant != nil:
		l.Path = p.instant.Here
	case p.times != nil && !p.bare && pg.lasting && pg.status == 0:
		l.LookBack = lookBack(l.Path)
	}
	if pg.static = pg.static || p.trace != nil; !pg.static {
		l.Topic, l.Page = pg.url, rand.Text()[:12]
	}
	var html bytes.Buffer
	// A visitor who leaves is no reason to fail.
	parts, err := templates.Record(context.WithoutCancel(r.Context()), pg.view.Page(l), &html)
	if err != nil {
		p.log.ErrorContext(r.Context(), "render page", "title", pg.title, "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	if !pg.static && p.remember != nil {
		p.remember(l.Topic, l.Page, snapshotOf(parts))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(cmp.Or(pg.status, http.StatusOK))
	body := html.Bytes()
	if p.instant != nil {
		body = p.pin(body, p.instant.At)
	}
	if _, err := w.Write(body); err != nil { //nolint:gosec // what templates have drawn
		p.log.DebugContext(r.Context(), "send page", "error", err)
	}
}

// theme is what the visitor chose, empty for that of the system.
func theme(r *http.Request) string {
	c, err := r.Cookie("theme")
	if err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// timeOf is how the visitor chose to see times, empty for the usual way.
func timeOf(r *http.Request) string {
	c, err := r.Cookie("time")
	if err == nil && slices.Contains([]string{templates.TimeLocal, templates.TimeRelative, templates.TimeUTC}, c.Value) {
		return c.Value
	}
	return ""
}

// compact reports whether the visitor chose lower rows.
func compact(r *http.Request) bool {
	c, err := r.Cookie("density")
	return err == nil && c.Value == "compact"
}

// toured reports whether the visitor has closed the tour of the demo.
func toured(r *http.Request) bool {
	c, err := r.Cookie("tour")
	return err == nil && c.Value == "done"
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// historyError is why the history cannot be written or read, empty if it can.
func (p *common) historyError(h view.Health) string {
	return cmp.Or(h.Store.LastError, p.backend.History().Health().LastError)
}
