// Package web is one http.Handler: pages, live sockets, static files and the JSON API of one cluster. It opens no
// listener, reads no broker and keeps no state of its own but its sockets and caches of single pages.
//
// A request becomes a page so: guard checks it, chi finds its route, and pages.load finds the URL in the table of
// pages.go and calls the load of that page, in the file named after it. load reads the backend and returns values;
// show renders them with the package templates. The forms beside a page are in act_*.go.
//
// A change becomes a frame so: live.Hub calls Snapshot with the URL of a page that somebody looks at, which loads it in
// the same way and renders the parts that change. The hub compares them with those before and sends what differs.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency/audit"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/static"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/flower"
	"github.com/umbelhq/umbel/web/issue"
	"github.com/umbelhq/umbel/web/live"
	"github.com/umbelhq/umbel/web/mcp"
	"github.com/umbelhq/umbel/web/payload"
)

// Options of a Handler. Backend is required.
type Options struct {
	Backend Backend
	// Commands lets people act on the cluster, and inspect workers and queues. Nil leaves both out; a read-only service
	// only inspects.
	Commands *command.Service
	// Alerts are judged by whoever runs them, nil if nobody does.
	Alerts *evaluate.Service
	// AppOutboxes are the outboxes of applications, nil if none is watched.
	AppOutboxes *outboxwatch.Watcher
	// BeatTables are the tables of django-celery-beat, nil if none are read.
	BeatTables *beat.Watcher
	// Peers are other Umbels that watch the same cluster, nil if this one asks workers nothing.
	Peers *peers.Peers
	// ReadOnly leaves out every route that changes anything.
	ReadOnly bool
	// Past reads the cluster as it was at an instant; nil leaves times past out.
	Past func(ctx context.Context, at time.Time) (*view.Past, error)
	// Trace is what is shown in place of a cluster that changes, nil for that.
	Trace *templates.Trace
	// Auth finds who makes a request and what they may do. Nil lets everybody do everything: the host program decides.
	Auth auth.Authenticator
	// Identify returns the user who makes a request where Auth is nil, for the audit log, in at most 256 bytes; nil leaves it
	// unknown.
	Identify func(r *http.Request) string
	// OpenMetrics and ClosedHealth change who may read /metrics, which needs a role by default, and /healthz, /readyz and
	// /healthcheck, which need none.
	OpenMetrics, ClosedHealth bool
	// Routes are served beside those of the pages and the API: those by which people sign in.
	Routes  []auth.Route
	Prefix  string        // path that every link begins with, such as /ops/celery; empty for the root
	Title   string        // badge on every page, such as production; empty for none
	Color   string        // of the badge: gray, green, blue, amber or red
	Version string        // shown on the pages and in the API
	Limits  state.Options // what the backend holds in memory at most, shown on the Settings page
	// Flower are the options of Flower that the API in its form follows.
	Flower flower.Settings
	// Issues makes links that open an issue about failures in a tracker, nil for none.
	Issues *issue.Template
	// Demo says that the cluster is simulated: the overview has a tour.
	Demo bool

	// Hosts are the names by which requests may call this server, without port. Others are refused with
	// 421, which keeps pages of other sites from reading a dashboard on loopback through a name of their own
	// (DNS rebinding). Empty answers any: the host program decides.
	Hosts []string
	// Origins are those of pages besides this server's own, such as https://ops.example:8443, that may
	// open live sockets and change something: those of proxies that hide their name from Umbel. The
	// names in Hosts, but for loopback, are origins already, by https and with its usual port.
	Origins    []string
	Metrics    MetricsOptions
	MaxSockets int // live sockets at once; 0 means 1,000
	// AuditLog records who logs in, is refused, exports and changes rules and views; nil records nothing. Requests that act on
	// the cluster are recorded by Commands.
	AuditLog history.AuditLog
	// Redactor takes secrets out of what pages and the API show; nil has the defaults.
	Redactor *redact.Redactor
	Now      func() time.Time // nil means time.Now
	Logger   *slog.Logger     // nil discards

	// Member says which one of several clusters this is; nil if there is one.
	Member *Member

	flow *flow.Reader // of New, nil of a trace
	then *view.Past   // of pages of an instant, nil for now
}

// Handler serves the dashboard. Requests are answered with and without the prefix, so that it works
// behind http.StripPrefix and proxies that strip. It is safe for concurrent use.
type Handler struct {
	prefix  string
	cookies string // path of those that hold what visitors chose
	hub     *live.Hub
	pages   audiences
	nobody  *common // for those who are not signed in
	overall *common // draws what is of no cluster alone, where there are several; else nil
	auth    auth.Authenticator
	table   []auth.Route // all routes but those of the API
	changes *changes
	bodies  *bodies
	metrics *metricsHandler // nil of a trace
	routed  chi.Routes      // what root leads to
	root    http.Handler
}

// source joins what live topics read.
type source struct {
	audiences
	*changes
}

// New validates o and starts nothing.
func New(o Options) (*Handler, error) {
	if o.Backend == nil {
		return nil, errors.New("web needs a backend")
	}
	prefix, err := normalPrefix(o.Prefix)
	if err != nil {
		return nil, err
	}
	o.Origins = append(origins(o.Hosts), o.Origins...)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	assets, err := static.New()
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Redactor == nil {
		o.Redactor = redact.Default()
	}
	authenticated := o.Auth != nil
	changes := newChanges(sources(o)...)
	if o.Trace == nil {
		var watcher *queues.Watcher
		if o.Commands != nil {
			watcher = o.Commands.Queues
		}
		o.flow = flow.NewReader(o.Backend, watcher, o.AppOutboxes, o.Now)
	}
	o.Backend = newFairBackend(o.Backend)
	if o.Trace != nil {
		o.Backend = unhurried{o.Backend}
	}
	asset := func(name string) string { return prefix + assets.URL(name) }
	p := newAudiences(o, templates.URLs{Prefix: prefix, Asset: asset, Title: o.Title, Color: o.Color, Above: o.Member.above(), Cluster: o.Member.name()}, payload.Hide(o.Backend), changes.note)
	if o.Auth == nil {
		o.Auth = hostDecides{o.Identify, o.Member.others()}
	}
	hub, err := live.New(live.Options{
		Source: source{p, changes}, MaxSockets: o.MaxSockets, Origins: o.Origins, Auth: o.Auth, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	past := newTimes(o)
	for a, shown := range p {
		shown.times = past
		shown.remember = func(topic, name string, s live.Snapshot) { hub.Remember(a, topic, name, s) }
	}
	nobody := &common{urls: p.any().urls, bare: true, now: o.Now, log: o.Logger}
	h := &Handler{auth: o.Auth, nobody: nobody, prefix: prefix, cookies: prefix, hub: hub, pages: p, changes: changes, bodies: newBodies()}
	if o.Member != nil {
		h.cookies = o.Member.Above
	}
	for _, rt := range o.Routes {
		if err := rt.Check(); err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
	}
	like := flower.Options{
		Backend: o.Backend, Commands: o.Commands, ReadOnly: o.ReadOnly, Settings: o.Flower, Authenticated: authenticated, Events: eventCounts(o.Metrics),
		Identify: func(r *http.Request) string { return auth.FromContext(r.Context()).User }, Now: o.Now, Logger: o.Logger,
	}
	compatible, err := flower.New(like)
	if err != nil {
		return nil, err
	}
	like.Backend = payload.Hide(o.Backend)
	hidden, err := flower.New(like)
	if err != nil {
		return nil, err
	}
	h.root, err = h.guard(o, p, h.routes(o, p, assets, compatible, hidden))
	if err != nil {
		return nil, err
	}
	return h, nil
}

// sources returns functions that return the channels of changes of everything that pages show.
func sources(o Options) []func() <-chan struct{} {
	list := []func() <-chan struct{}{o.Backend.Changed}
	if o.Peers != nil {
		list = append(list, o.Peers.Changed)
	}
	if o.AppOutboxes != nil {
		list = append(list, o.AppOutboxes.Changed)
	}
	if o.BeatTables != nil {
		list = append(list, o.BeatTables.Changed)
	}
	if o.Alerts != nil {
		list = append(list, o.Alerts.Changed)
	}
	if o.Commands == nil {
		return list
	}
	list = append(list, o.Commands.Inspector.Changed, o.Commands.Queues.Changed)
	if o.Commands.Locks != nil {
		list = append(list, o.Commands.Locks.Changed)
	}
	if o.Commands.Relay != nil {
		list = append(list, o.Commands.Relay.Changed)
	}
	return list
}

// normalPrefix returns the prefix with a slash before and none behind.
func normalPrefix(prefix string) (string, error) {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return "", nil
	}
	for segment := range strings.SplitSeq(prefix, "/") {
		if segment == "" || segment == "." || segment == ".." || url.PathEscape(segment) != segment {
			return "", fmt.Errorf("the prefix %q is not a plain path such as /ops/celery", prefix)
		}
	}
	return "/" + prefix, nil
}

// Where the API and its tools for assistants are, below the prefix.
const (
	apiPath = "/api/v1"
	mcpPath = "/mcp"
)

// routes maps paths below the prefix.
func (h *Handler) routes(o Options, all audiences, assets http.Handler, compatible, hidden *flower.API) http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	every := router{mux: r, table: &h.table, deny: h.deny(all)}
	r.NotFound(h.signedIn(all, func(p *pages) http.HandlerFunc { return p.notFound }))
	r.MethodNotAllowed(h.signedIn(all, func(p *pages) http.HandlerFunc { return p.notAllowed(r) }))
	text := every.with(uncached, middleware.Compress(5, "text/html", "application/json"))
	for i, rt := range all.any().routes {
		text.get(rt.pattern, rt.action, orJSON(compatible, rt.pattern, all.page(i)))
	}
	text.post("/theme", auth.Open, h.choice("theme", "light", "dark"))
	text.post("/density", auth.Open, h.choice("density", "compact"))
	text.post("/time", auth.Open, h.choice("time", templates.TimeLocal, templates.TimeRelative, templates.TimeUTC))
	if o.Demo {
		text.post("/tour", auth.Open, h.choice("tour", "done"))
	}
	if o.Issues != nil {
		text.get("/failures/{id}/issue", auth.View, all.issue)
	}
	all.routeChanges(text, h)
	text.get("/healthz", o.healthAction(), healthz)
	text.get("/readyz", o.healthAction(), readyz(o.Backend))
	if o.Trace == nil { // else nothing is measured
		h.metrics = newMetricsHandler(o, h.hub.Stats)
		text.handle(auth.Route{
			Method: http.MethodGet, Pattern: "/metrics", Action: o.metricsAction(), Refuse: asText, Handler: compressed(h.metrics),
		})
	}
	for _, rt := range o.Routes {
		text.handle(rt)
	}
	if s, ok := o.Auth.(*auth.Service); ok {
		forms := &signInPages{h: h, service: s.Above()}
		for _, p := range all {
			p.signedIn = forms
		}
		forms.route(text)
	}
	for _, rt := range flowerRoutes(compatible, hidden) {
		if rt.Pattern == "/healthcheck" {
			rt.Action = o.healthAction()
		}
		text.handle(rt)
	}
	h.flowerPages(text, all.any())
	every.get("/favicon.ico", auth.Open, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, all.any().urls.Asset("favicon.svg"), http.StatusFound)
	})
	every.handle(auth.Route{Method: http.MethodGet, Pattern: "/ws", Action: auth.View, Handler: h.hub, Refuse: asAPI})
	every.handle(auth.Route{Method: http.MethodGet, Pattern: "/assets/*", Action: auth.Open, Handler: assets})
	resources := h.newAPI(o, all.any())
	text.mux.Mount(apiPath, resources)
	text.handle(auth.Route{
		Method: http.MethodPost, Pattern: mcpPath, Action: auth.View, Refuse: asAPI,
		Handler: uncached(mcp.NewHandler(resources, o.Version)),
	})
	h.routed = r
	return r
}

// metricsAction is what those may take who read /metrics.
func (o Options) metricsAction() auth.Action {
	if o.OpenMetrics {
		return auth.Open
	}
	return auth.View
}

// healthAction is what those may take who ask whether Umbel is well.
func (o Options) healthAction() auth.Action {
	if o.ClosedHealth {
		return auth.View
	}
	return auth.Open
}

// newAPI returns the API.
func (h *Handler) newAPI(o Options, p *pages) http.Handler {
	var past func(ctx context.Context, at time.Time, hides bool) (api.Backend, error)
	if p.times != nil {
		past = func(ctx context.Context, at time.Time, hides bool) (api.Backend, error) {
			then, err := p.times.at(ctx, at)
			if err != nil {
				return nil, err
			}
			return p.times.backend(then, hides), nil
		}
	}
	var pasts func(ctx context.Context, at time.Time) (*view.Past, error)
	if p.times != nil {
		pasts = p.times.at
	}
	var audited func(context.Context) audit.Report
	if p.audits != nil {
		audited = p.audits.audited
	}
	return api.New(api.Options{
		Audit: audited, Past: past, Pasts: pasts, Backend: o.Backend, Hidden: payload.Hide(o.Backend), Commands: o.Commands, AppOutboxes: o.AppOutboxes, BeatTables: o.BeatTables, Peers: o.Peers, Alerts: o.Alerts, Flow: o.flow,
		ReadOnly: o.ReadOnly, Prefix: h.prefix, Version: o.Version, Now: o.Now, Logger: o.Logger, Challenge: h.challenge,
		AuditLog: o.AuditLog, Redactor: o.Redactor,
	})
}

// signedIn calls what next returns for those who are signed in: others learn nothing of what exists.
func (h *Handler) signedIn(all audiences, next func(p *pages) http.HandlerFunc) http.HandlerFunc {
	deny := h.deny(all)
	return func(w http.ResponseWriter, r *http.Request) {
		if why := auth.Decide(r.Context(), auth.View); why != nil {
			deny(w, r, why, nil)
			return
		}
		next(all.of(r))(w, r)
	}
}

// wildcard names the rest of the path, since node names and task ids may hold slashes.
func wildcard(name string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chi.RouteContext(r.Context()).URLParams.Add(name, chi.URLParam(r, "*"))
		next(w, r)
	}
}

// uncached keeps task arguments out of caches.
func uncached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// healthz responds while the process runs.
func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

// readyz reports whether the history is restored. It does not depend on the broker: pages say if that is unavailable.
func readyz(b Backend) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := b.Health()
		if !h.Ready {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n" + nodesText(h.Nodes)))
	}
}

// choice stores what the visitor chose in a cookie and redirects back. Other values are the usual choice, without one.
func (h *Handler) choice(name string, values ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &http.Cookie{ //nolint:gosec // Secure under TLS: the dashboard may be served on loopback without
			Name: name, Value: r.FormValue(name), Path: h.cookies + "/",
			MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
		}
		if !slices.Contains(values, c.Value) {
			c.Value, c.MaxAge = "", -1
		}
		http.SetCookie(w, c)
		http.Redirect(w, r, h.back(r.FormValue("return")), http.StatusSeeOther)
	}
}

// back returns target if it is an address below the prefix, else that of the overview.
func (h *Handler) back(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, h.prefix+"/") ||
		strings.HasPrefix(u.Path, "//") || strings.Contains(u.Path, `\`) {
		return h.prefix + "/"
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." { // a browser would follow them out of the prefix
			return h.prefix + "/"
		}
	}
	return u.RequestURI()
}

// Run keeps pages live until ctx ends, then closes the sockets with status 1001 and waits for them.
func (h *Handler) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return h.hub.Run(ctx) })
	g.Go(func() error { return h.pages.run(ctx) })
	g.Go(func() error { return h.changes.run(ctx) })
	return g.Wait()
}

// ServeHTTP handles requests for paths below the prefix, and for the same paths without it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.root.ServeHTTP(w, r) }
