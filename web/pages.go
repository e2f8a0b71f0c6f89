package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/operate"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/live"
	"github.com/umbelhq/umbel/web/query"
)

// pages assembles what people see: it reads the cluster and hands values to the templates. A page
// and the live topic of the same name come from one place, so that they never disagree.
type pages struct {
	cluster Backend
	// operations may be nil, and so may its Commands: nobody can act then.
	operations  *operate.Operations
	readOnly    bool
	identify    func(r *http.Request) string
	counts      *counter
	records     *records // nil if there is no result backend
	charts      remembered[rollup.Result]
	facetCounts remembered[breakdown]
	site        templates.URLs
	version     string
	limits      state.Options
	planner     planner
	outbox      stats
	verified    verdict
	peeked      peeks
	now         func() time.Time
	log         *slog.Logger
}

// page is one page as it is now.
type page struct {
	topic   string
	address string // of the page itself, below the prefix
	title   string
	section templates.Section
	view    templates.View
	version uint64 // of the cluster that it shows
}

// patience is how long a page may take to be read.
const patience = 5 * time.Second

// errUnknown says that the cluster does not hold what a page is about.
var errUnknown = errors.New("not held")

// page assembles the page of a topic. The error is live.ErrNoTopic or errUnknown, or of the history.
func (p *pages) page(ctx context.Context, topic string) (page, error) {
	if topic == "settings" {
		return p.settingsPage(ctx), nil
	}
	if raw, ok := strings.CutPrefix(topic, "overview"); ok {
		return p.overviewTopic(ctx, topic, raw)
	}
	if raw, ok := strings.CutPrefix(topic, "tasks"); ok {
		v, err := url.ParseQuery(strings.TrimPrefix(raw, "?"))
		if err != nil {
			return page{}, live.ErrNoTopic
		}
		q, err := query.Parse(v)
		if err != nil || q.URL("tasks") != topic {
			return page{}, live.ErrNoTopic
		}
		return p.tasksPage(ctx, q)
	}
	if id, ok := strings.CutPrefix(topic, "task/"); ok {
		return p.taskPage(ctx, id)
	}
	if raw, ok := strings.CutPrefix(topic, "failures"); ok {
		return p.failuresTopic(ctx, topic, raw)
	}
	if id, ok := strings.CutPrefix(topic, "failure/"); ok {
		return p.failurePage(ctx, id)
	}
	if raw, ok := strings.CutPrefix(topic, "workers"); ok {
		return p.workersOfTopic(topic, raw)
	}
	if strings.HasPrefix(topic, "worker/") || strings.HasPrefix(topic, "worker?") {
		return p.workerOfTopic(ctx, topic)
	}
	return p.operated(ctx, topic)
}

// Snapshot renders a topic for the sockets.
func (p *pages) Snapshot(ctx context.Context, topic string) (live.Snapshot, error) {
	pg, err := p.page(ctx, topic)
	if errors.Is(err, errUnknown) {
		err = live.ErrNoTopic
	}
	if err != nil {
		return live.Snapshot{}, err
	}
	s := live.Snapshot{Version: pg.version}
	chrome := templates.Layout{URLs: p.site, Broker: brokerView(p.cluster.Health()), HistoryAlert: p.trouble(), OutboxAlert: p.outgoing(ctx)}
	s.Regions, err = fragments(ctx, append(chrome.Regions(), pg.view.Regions(p.site)...))
	if err != nil {
		return live.Snapshot{}, err
	}
	for _, l := range pg.view.Lists(p.site) {
		rows, err := fragments(ctx, l.Rows)
		if err != nil {
			return live.Snapshot{}, err
		}
		s.Lists = append(s.Lists, live.List{ID: l.ID, Rows: rows})
	}
	return s, nil
}

func fragments(ctx context.Context, regions []templates.Region) ([]live.Fragment, error) {
	list := make([]live.Fragment, 0, len(regions))
	for _, r := range regions {
		html, err := render(ctx, r.Body)
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", r.ID, err)
		}
		list = append(list, live.Fragment{ID: r.ID, HTML: html})
	}
	return list, nil
}

func (p *pages) overview(w http.ResponseWriter, r *http.Request) {
	chart, _ := query.ParseChart(r.URL.Query().Get("chart")) // a wrong one shows the usual one
	pg := p.overviewPage(r.Context(), chart)
	if v, ok := pg.view.(templates.Overview); ok {
		v.JustResolved = p.justResolved(r)
		pg.view = v
	}
	p.show(w, r, http.StatusOK, pg)
}

func (p *pages) tasks(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	v := r.URL.Query()
	q, err := query.ParseLax(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		pg, err := p.wrongTasksPage(ctx, q, v, wrong)
		p.showRead(w, r, http.StatusBadRequest, pg, err)
		return
	}
	// A form sends its empty fields too. The address bar gets the short spelling.
	if hasEmpty(v) {
		http.Redirect(w, r, q.URL(p.site.Prefix+"/tasks"), http.StatusSeeOther) //nolint:gosec // only the query is the visitor's
		return
	}
	pg, err := p.tasksPage(ctx, q)
	p.showRead(w, r, http.StatusOK, pg, err)
}

// showRead writes a page, or says that it could not be read.
func (p *pages) showRead(w http.ResponseWriter, r *http.Request, status int, pg page, err error) {
	if err == nil {
		p.show(w, r, status, pg)
		return
	}
	if errors.Is(err, fair.ErrBusy) {
		w.Header().Set("Retry-After", "5")
		p.problem(w, r, http.StatusServiceUnavailable, templates.Problem{
			Title: "Too many searches at once", Message: "Those you asked for before are not done. Try again in a moment.",
		})
		return
	}
	id := rand.Text()[:12]
	p.log.ErrorContext(r.Context(), "read page", "request_id", id, "path", r.URL.Path, "error", err)
	p.problem(w, r, http.StatusServiceUnavailable, templates.Problem{
		Title:     "The history cannot be read",
		Message:   "Umbel goes on taking in events. Try again, or ask for less.",
		RequestID: id,
		Back:      p.site.Prefix + "/tasks",
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

func (p *pages) task(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	id := param(r, "id")
	pg, err := p.taskPage(ctx, id)
	if errors.Is(err, errUnknown) {
		p.problem(w, r, http.StatusNotFound, p.unknownTask(ctx, id))
		return
	}
	p.showRead(w, r, http.StatusOK, pg, err)
}

// notFound answers for addresses that no page has.
func (p *pages) notFound(w http.ResponseWriter, r *http.Request) {
	p.problem(w, r, http.StatusNotFound, templates.Problem{
		Title:   "Not found",
		Message: "There is no page at this address.",
	})
}

// notAllowed answers for a method that the route of a request does not have.
func (p *pages) notAllowed(routes chi.Routes) http.HandlerFunc {
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
			Title: "Not possible", Message: "There is nothing at this address that answers to " + r.Method + ", only to " + allowed + ".",
		})
	}
}

// failed answers for a page that could not be made. The request id leads to the cause in the log.
func (p *pages) failed(w http.ResponseWriter, r *http.Request, requestID string) {
	p.problem(w, r, http.StatusInternalServerError, templates.Problem{
		Title:     "Something went wrong",
		Message:   "This page could not be made. The rest of Umbel goes on.",
		RequestID: requestID,
	})
}

func (p *pages) problem(w http.ResponseWriter, r *http.Request, status int, v templates.Problem) {
	p.show(w, r, status, page{title: v.Title, view: v, address: "/"})
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

// show writes a page with its chrome.
func (p *pages) show(w http.ResponseWriter, r *http.Request, status int, pg page) {
	html, err := render(r.Context(), pg.view.Page(templates.Layout{
		URLs:         p.site,
		Title:        pg.title,
		Section:      pg.section,
		Topic:        pg.topic,
		Theme:        theme(r),
		Path:         p.site.Prefix + pg.address,
		Version:      p.version,
		Broker:       brokerView(p.cluster.Health()),
		HistoryAlert: p.trouble(),
		OutboxAlert:  p.outgoing(r.Context()),
	}))
	if err != nil {
		p.log.ErrorContext(r.Context(), "render page", "title", pg.title, "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write([]byte(html)); err != nil {
		p.log.DebugContext(r.Context(), "send page", "error", err)
	}
}

// render draws a component to its end: a visitor who leaves is no reason to fail.
func render(ctx context.Context, c templ.Component) (string, error) {
	var b bytes.Buffer
	if err := c.Render(context.WithoutCancel(ctx), &b); err != nil {
		return "", err
	}
	return b.String(), nil
}

// theme is what the visitor chose, empty for that of the system.
func theme(r *http.Request) string {
	c, err := r.Cookie("theme")
	if err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

func brokerView(health view.Health) templates.Broker {
	h := health.Broker
	return templates.Broker{
		URL:         h.URL,
		Connected:   h.Connected,
		Since:       micros(h.Since),
		LastEventAt: micros(h.LastEventAt),
		LastError:   h.LastError,
		NextTryAt:   micros(h.NextTryAt),
		Attempts:    h.Attempts,
		Restoring:   !health.Ready && !h.Connected,
		Forgets:     h.Loss.Forgets,
		Gaps:        h.Loss.Outages,
		GapSeconds:  h.Loss.OutageTime.Seconds(),
		LastGapAt:   micros(h.Loss.LastOutage),
		UnseenTasks: h.Loss.MissedTasks,
		Dropped:     h.Loss.Dropped,
	}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
