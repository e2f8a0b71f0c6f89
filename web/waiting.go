package web

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/umbelhq/umbel/static"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
)

// waitingText says why there are no pages. It names no host: whoever asks sees it.
const waitingText = "PostgreSQL, which has the history, does not answer. Umbel tries again until it does; the log says why. This page loads again by itself."

// NewWaiting returns a handler that says, to everybody, that the history cannot be reached yet. Of o, Prefix, Title, Color, Hosts, Origins and
// Logger count.
func NewWaiting(o Options) (http.Handler, error) {
	prefix, err := normalPrefix(o.Prefix)
	if err != nil {
		return nil, err
	}
	assets, err := static.New()
	if err != nil {
		return nil, err
	}
	o.Origins = append(origins(o.Hosts), o.Origins...)
	urls := templates.URLs{Prefix: prefix, Asset: func(name string) string { return prefix + assets.URL(name) }, Title: o.Title, Color: o.Color}
	pages := &common{urls: urls, bare: true, now: time.Now, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	h := &Handler{auth: everybody{}, nobody: pages, overall: pages, prefix: prefix, cookies: prefix, bodies: newBodies()}
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	every := router{mux: r, table: &h.table, deny: h.deny(nil)}
	text := every.with(uncached)
	text.get("/healthz", auth.Open, healthz)
	text.get("/readyz", auth.Open, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not ready: the history cannot be reached", http.StatusServiceUnavailable)
	})
	every.handle(auth.Route{Method: http.MethodGet, Pattern: "/assets/*", Action: auth.Open, Handler: assets})
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		api.Refuse(w, http.StatusServiceUnavailable, waitingText)
	}
	r.HandleFunc("/api/*", refuse)
	r.HandleFunc("/ws", refuse)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Refresh", "5")
		w.Header().Set("Cache-Control", "no-store")
		pages.problem(w, r, http.StatusServiceUnavailable, templates.Problem{
			Title: "The history cannot be reached", Message: waitingText, Back: prefix + r.URL.Path, BackText: "Try again",
		})
	})
	h.routed = r
	h.root, err = h.guard(Options{Hosts: o.Hosts, Origins: o.Origins}, nil, r)
	return h, err
}
