package web

import (
	"cmp"
	"context"
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

	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/static"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/live"
)

// ClustersPath is what the pages of each of several clusters are below, with its name.
const ClustersPath = "/clusters/"

// clustersEvery is how often the overview of clusters is drawn again.
const clustersEvery = time.Second

// Cluster is one of several.
type Cluster struct {
	Name string
	// Handler returns its pages, or nil and in a sentence why there are none.
	Handler func() (*Handler, string)
	Remote  *Remote // of another Umbel, in place of Handler
}

// ClustersOptions are those of Clusters. What is not documented is as in Options.
type ClustersOptions struct {
	Clusters []Cluster
	Auth     *auth.Service // of all clusters; each Handler has what its In returns. Nil lets everybody do everything.

	Prefix, Title, Color, Version string
	OpenMetrics                   bool
	Hosts, Origins                []string
	Logger                        *slog.Logger
}

// Clusters serves several clusters, each below its name, and an overview of all. It is safe for concurrent use.
type Clusters struct {
	o       ClustersOptions
	h       *Handler // of what is of no cluster alone
	pages   *common
	redrawn *changes
}

// everybody is the Authenticator where everybody may do everything in all clusters.
type everybody struct{ clusters []string }

func (e everybody) Authenticate(*http.Request) (auth.Grant, error) {
	a := auth.Everything
	a.Clusters = strings.Join(e.clusters, ",")
	return auth.Grant{Method: "host", Audience: a, Clusters: e.clusters}, nil
}

// NewClusters validates o and starts nothing.
func NewClusters(o ClustersOptions) (*Clusters, error) {
	prefix, err := normalPrefix(o.Prefix)
	if err != nil {
		return nil, err
	}
	assets, err := static.New()
	if err != nil {
		return nil, err
	}
	o.Origins = append(origins(o.Hosts), o.Origins...)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c := &Clusters{o: o, redrawn: newChanges()}
	urls := templates.URLs{Prefix: prefix, Asset: func(name string) string { return prefix + assets.URL(name) }, Title: o.Title, Color: o.Color}
	c.pages = &common{overall: c, urls: urls, version: o.Version, now: time.Now, log: o.Logger}
	nobody := &common{urls: urls, bare: true, now: time.Now, log: o.Logger}
	c.h = &Handler{auth: o.Auth, nobody: nobody, overall: c.pages, prefix: prefix, cookies: prefix, bodies: newBodies()}
	if o.Auth == nil {
		c.h.auth = everybody{c.names()}
	}
	c.h.hub, err = live.New(live.Options{Source: clustersSource{c, c.redrawn}, Origins: o.Origins, Auth: c.h.auth, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	c.h.root, err = c.h.guard(Options{Hosts: o.Hosts, Origins: o.Origins}, nil, c.routes(assets))
	return c, err
}

func (c *Clusters) names() []string {
	names := make([]string, 0, len(c.o.Clusters))
	for _, one := range c.o.Clusters {
		names = append(names, one.Name)
	}
	return names
}

func (c *Clusters) named(name string) *Cluster {
	i := slices.IndexFunc(c.o.Clusters, func(one Cluster) bool { return one.Name == name })
	if i < 0 {
		return nil
	}
	return &c.o.Clusters[i]
}

// routes maps paths that are of no cluster alone.
func (c *Clusters) routes(assets http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	every := router{mux: r, table: &c.h.table, deny: c.h.deny(nil)}
	text := every.with(uncached, middleware.Compress(5, "text/html", "application/json"))
	text.get("/", auth.View, c.serve)
	text.get("/tasks", auth.View, c.tasks)
	text.get("/*", auth.View, c.notFound)
	text.handle(auth.Route{Method: http.MethodGet, Pattern: apiPath + "/clusters", Action: auth.View, Refuse: asAPI, Handler: http.HandlerFunc(c.list)})
	text.handle(auth.Route{Method: http.MethodGet, Pattern: apiPath + "/tasks", Action: auth.View, Refuse: asAPI, Handler: http.HandlerFunc(c.listTasks)})
	text.handle(auth.Route{Method: http.MethodGet, Pattern: apiPath + "/suggest", Action: auth.View, Refuse: asAPI, Handler: http.HandlerFunc(c.suggest)})
	text.handle(auth.Route{Method: http.MethodGet, Pattern: "/api/*", Action: auth.View, Refuse: asAPI, Handler: http.HandlerFunc(c.noAPI)})
	text.get("/healthz", auth.Open, healthz)
	text.get("/readyz", auth.Open, c.readyz)
	scraped := auth.Route{Method: http.MethodGet, Pattern: "/metrics", Action: Options{OpenMetrics: c.o.OpenMetrics}.metricsAction(), Refuse: asText}
	scraped.Handler = middleware.Compress(1, prometheus.MediaTypes()...)(http.HandlerFunc(c.metrics))
	text.handle(scraped)
	text.post("/theme", auth.Open, c.h.choice("theme", "light", "dark"))
	if c.o.Auth != nil {
		forms := &signInPages{h: c.h, service: c.o.Auth}
		c.pages.signedIn = forms
		forms.route(text)
	}
	every.get("/favicon.ico", auth.Open, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, c.pages.urls.Asset("favicon.svg"), http.StatusFound)
	})
	every.handle(auth.Route{Method: http.MethodGet, Pattern: "/ws", Action: auth.View, Handler: c.h.hub, Refuse: asAPI})
	every.handle(auth.Route{Method: http.MethodGet, Pattern: "/assets/*", Action: auth.Open, Handler: assets})
	c.h.routed = r
	return r
}

// ServeHTTP handles requests for paths below the prefix, and for the same paths without it.
func (c *Clusters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, within := c.h.below(r.URL.Path)
	rest, ok := strings.CutPrefix(path, ClustersPath)
	name, _, _ := strings.Cut(rest, "/")
	one := c.named(name)
	if !within || !ok || one == nil {
		c.h.ServeHTTP(w, r)
		return
	}
	if one.Remote != nil {
		c.absent(w, r, name, http.StatusNotFound, templates.Problem{
			Title: "Another Umbel watches " + name, Message: "Its pages are there: here is only what the overview shows.",
			Back: one.Remote.shown().Href, BackText: "Go to " + one.Remote.URL,
		})
		return
	}
	h, why := one.Handler()
	if h == nil {
		w.Header().Set("Retry-After", "5")
		c.absent(w, r, name, http.StatusServiceUnavailable, templates.Problem{
			Title: "The cluster " + name + " is unavailable", Message: why, Back: c.pages.urls.Prefix + "/", BackText: "All clusters",
		})
		return
	}
	if path == r.URL.Path && c.h.prefix != "" { // a proxy has stripped the prefix of all
		r = r.Clone(r.Context())
		r.URL.Path = c.h.prefix + r.URL.Path
		if r.URL.RawPath != "" {
			r.URL.RawPath = c.h.prefix + r.URL.RawPath
		}
	}
	h.ServeHTTP(w, r)
}

// absent says to those who may see a cluster why it has no pages here.
func (c *Clusters) absent(w http.ResponseWriter, r *http.Request, name string, status int, why templates.Problem) {
	shown := *c.h
	shown.root, _ = shown.guard(Options{Hosts: c.o.Hosts, Origins: c.o.Origins}, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		denied := auth.Decide(r.Context(), auth.View)
		if denied == nil && !slices.Contains(auth.FromContext(r.Context()).Clusters, name) {
			denied = auth.NoCluster(name)
		}
		if denied != nil {
			c.h.deny(nil)(w, r, denied, nil)
			return
		}
		c.pages.problem(w, r, status, why)
	}))
	shown.ServeHTTP(w, r)
}

// visible returns the clusters that those may see who make a request.
func (c *Clusters) visible(ctx context.Context) []Cluster {
	return c.among(auth.FromContext(ctx).Clusters)
}

// here returns those of some clusters that no other Umbel watches.
func (c *Clusters) here(of []Cluster) []Cluster {
	return slices.DeleteFunc(slices.Clone(of), func(one Cluster) bool { return one.Remote != nil })
}

func (c *Clusters) among(names []string) []Cluster {
	return slices.DeleteFunc(slices.Clone(c.o.Clusters), func(one Cluster) bool { return !slices.Contains(names, one.Name) })
}

// page is the overview of some clusters.
func (c *Clusters) page(ctx context.Context, of []Cluster) page {
	v := templates.Clusters{}
	for _, one := range of {
		if one.Remote != nil {
			v.Clusters = append(v.Clusters, one.Remote.shown())
			continue
		}
		t := templates.Cluster{Name: one.Name, Href: c.pages.urls.Prefix + ClustersPath + one.Name + "/"}
		h, why := one.Handler()
		if t.Unavailable = why; h != nil {
			t.Unavailable = ""
			h.summary(ctx, &t)
		}
		v.Clusters = append(v.Clusters, t)
	}
	return page{url: "/", title: "Clusters", view: v}
}

// summary says how a cluster is.
func (h *Handler) summary(ctx context.Context, t *templates.Cluster) {
	p := h.pages.any()
	health, rates := p.backend.Health(), p.backend.Rates()
	t.Ready, t.Connected, t.Broker, t.Rate = health.Ready, health.Broker.Connected, health.Broker.URL, rates.Succeeded+rates.Failed
	p.backend.View(func(v state.View) {
		for _, w := range v.Workers() {
			if w.Status != state.Offline {
				t.Online++
			}
		}
	})
	if p.flow != nil {
		t.Flow = p.flow.Verdict(ctx)
		t.Failed = t.Flow.Recent.Share()
	}
	if p.commands == nil {
		return
	}
	t.Backlog = p.commands.Queues.Snapshot().Backlog()
}

func (c *Clusters) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	c.pages.show(w, r, c.page(ctx, c.visible(ctx)))
}

func (c *Clusters) notFound(w http.ResponseWriter, r *http.Request) {
	message := "This page does not exist. Pages of a cluster are below its name."
	if rest, ok := strings.CutPrefix(r.URL.Path, ClustersPath); ok {
		name, _, _ := strings.Cut(rest, "/")
		message = auth.NoCluster(name).Message
	}
	c.pages.problem(w, r, http.StatusNotFound, templates.Problem{
		Title: "Not found", Message: message, Back: c.pages.urls.Prefix + "/", BackText: "All clusters",
	})
}

func (c *Clusters) noAPI(w http.ResponseWriter, _ *http.Request) {
	api.Refuse(w, http.StatusNotFound, "There are several clusters: the API of each is below /clusters/ and its name, and "+apiPath+"/clusters lists them.")
}

// list answers the API with the clusters.
func (c *Clusters) list(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	v, _ := c.page(ctx, c.visible(ctx)).view.(templates.Clusters)
	items := make([]api.Cluster, 0, len(v.Clusters))
	for i := range v.Clusters {
		t := &v.Clusters[i]
		d := api.Cluster{Name: t.Name, Path: t.Href, Available: t.Unavailable == "", Error: t.Unavailable, Level: "unknown", Ready: t.Ready, Connected: t.Connected}
		if d.Remote = t.Remote != ""; !t.SeenAt.IsZero() {
			d.SeenAt = &t.SeenAt
		}
		if d.Available {
			d.Level, d.Sentence = string(t.Flow.Level), t.Flow.Sentence()
			d.TasksPerSecond, d.FailedShare, d.WorkersOnline, d.Backlog = t.Rate, t.Failed, t.Online, t.Backlog
		}
		items = append(items, d)
	}
	writeJSON(w, map[string]any{"items": items})
}

// readyz reports whether the histories are restored. One that cannot be opened holds up no other.
func (c *Clusters) readyz(w http.ResponseWriter, _ *http.Request) {
	missing, here := 0, c.here(c.o.Clusters)
	for _, one := range here {
		switch h, _ := one.Handler(); {
		case h == nil:
			missing++
		case !h.pages.any().backend.Health().Ready:
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
	}
	switch missing {
	case 0:
		_, _ = w.Write([]byte("ready\n"))
	case len(here):
		http.Error(w, "no cluster is available", http.StatusServiceUnavailable)
	default:
		_, _ = fmt.Fprintf(w, "ready, but %d of %d clusters unavailable\n", missing, len(here))
	}
}

// metrics writes those of all clusters that may be seen, each sample with the name of its own.
func (c *Clusters) metrics(w http.ResponseWriter, r *http.Request) {
	of := c.visible(r.Context())
	if c.o.OpenMetrics {
		of = c.o.Clusters
	}
	format, contentType := prometheus.Negotiate(r.Header.Get("Accept"))
	w.Header().Set("Content-Type", contentType)
	w.Header().Add("Vary", "Accept")
	out := prometheus.NewMerger(w, format)
	for _, one := range c.here(of) {
		h, _ := one.Handler()
		out.Label("cluster", one.Name)
		out.Family(prometheus.Gauge, "umbel_cluster_available", "1 if the cluster is watched, 0 if its history cannot be opened.")
		if out.Add(truth(h != nil)); h != nil && h.metrics != nil {
			(&scrape{metricsHandler: h.metrics, Writer: out}).write(r.Context())
		}
	}
	out.Label("", "")
	(&scrape{metricsHandler: &metricsHandler{version: c.o.Version}, Writer: out}).process()
	_ = out.Close() // the client is gone
}

// Run keeps the overview live until ctx ends. The handlers of the clusters are run by whoever made them.
func (c *Clusters) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return c.h.hub.Run(ctx) })
	for _, one := range c.o.Clusters {
		if one.Remote != nil {
			g.Go(func() error { one.Remote.run(ctx); return nil })
		}
	}
	g.Go(func() error {
		tick := time.NewTicker(clustersEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.redrawn.note()
			case <-ctx.Done():
				return nil
			}
		}
	})
	return g.Wait()
}

// clustersSource is what the live topic of the overview reads.
type clustersSource struct {
	*Clusters
	*changes
}

// Snapshot implements live.Source.
func (s clustersSource) Snapshot(ctx context.Context, a auth.Audience, topic string) (live.Snapshot, error) {
	if topic != "/" {
		return live.Snapshot{}, live.ErrNoTopic
	}
	return s.pages.snapshot(ctx, s.page(ctx, s.among(strings.Split(a.Clusters, ","))))
}

// Action implements live.Source.
func (s clustersSource) Action(string) auth.Action { return auth.View }

// Member says which one of several clusters a Handler shows.
type Member struct {
	Name     string
	Clusters []string // names of all
	Above    string   // prefix of all
}

// NewMember returns the member of a name below the prefix of all, and the prefix of its own pages.
func NewMember(name string, clusters []string, prefix string) (m *Member, own string, err error) {
	if prefix, err = normalPrefix(prefix); err != nil {
		return nil, "", err
	}
	return &Member{name, clusters, prefix}, prefix + ClustersPath + name, nil
}

func (m *Member) name() string {
	if m == nil {
		return ""
	}
	return m.Name
}

func (m *Member) above() string {
	if m == nil {
		return ""
	}
	return m.Above
}

func (m *Member) others() []string {
	if m == nil {
		return nil
	}
	return m.Clusters
}

// elsewhere returns links to a page of each cluster that may be seen. What has an ID is in one cluster only: there its list is
// linked to.
func (p *common) elsewhere(r *http.Request, pg page) []templates.Link {
	if p.urls.Cluster == "" {
		return nil
	}
	var list []templates.Link
	for _, name := range auth.FromContext(r.Context()).Clusters {
		path := pg.url
		if name != p.urls.Cluster {
			path = anywhere(path)
		}
		list = append(list, templates.Link{Text: name, Href: p.urls.Above + ClustersPath + name + path})
	}
	return list
}

// anywhere returns the path of a page in another cluster: queues and types of tasks can have the same names there.
func anywhere(path string) string {
	u, err := url.Parse(path)
	if err != nil {
		return "/"
	}
	section, _, within := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if within && section != "queues" && "/"+section != templates.TypesPath {
		return "/" + section
	}
	q := u.Query()
	for _, place := range []string{"cursor", "before", "after"} {
		q.Del(place)
	}
	u.RawQuery = q.Encode()
	return u.String()
}
