package web

import (
	"net/http"
	"slices"

	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/flower"
)

// flowerPages leads from the addresses of Flower's pages to those of pages that show the same.
func (h *Handler) flowerPages(r router, p *pages) {
	lead := func(pattern string, to func(name string) string) {
		at := route{pattern: pattern}
		r.get(pattern, auth.View, func(w http.ResponseWriter, r *http.Request) {
			a, ok := at.match(r.URL)
			if !ok {
				http.NotFound(w, r)
				return
			}
			http.Redirect(w, r, p.urls.Prefix+to(a.name), http.StatusFound)
		})
	}
	lead("/worker/*", templates.WorkerPath)
	lead("/task/*", templates.TaskPath)
	lead("/broker", func(string) string { return "/queues" })
}

// orJSON serves the JSON that Flower has at the addresses of workers, if the request asks for it, else a page.
func orJSON(compatible *flower.API, pattern string, page http.HandlerFunc) http.HandlerFunc {
	if pattern != "/" && pattern != "/workers" {
		return page
	}
	workers := compatible.Workers()
	return func(w http.ResponseWriter, r *http.Request) {
		if flower.WantsJSON(r) {
			workers.ServeHTTP(w, r)
			return
		}
		page(w, r)
	}
}

// eventCounts returns a function that counts events by worker and type, nil if nothing is counted.
func eventCounts(o MetricsOptions) func() map[string]map[string]uint64 {
	if o.Read == nil {
		return nil
	}
	return func() map[string]map[string]uint64 {
		counts := make(map[string]map[string]uint64)
		add := func(worker string, events []metrics.Count) {
			if counts[worker] == nil {
				counts[worker] = make(map[string]uint64)
			}
			for _, c := range events {
				counts[worker][c.Type] += c.Events
			}
		}
		counted := o.Read().Counted
		for _, series := range counted.Series {
			add(series.Worker, series.Events)
		}
		for worker, events := range counted.Workers {
			add(worker, events)
		}
		return counts
	}
}

// flowerRoutes are the routes of whole, but for those who may not see payloads, whom hidden serves.
func flowerRoutes(whole, hidden *flower.API) []auth.Route {
	others := hidden.Routes()
	list := slices.Clone(whole.Routes())
	for i, rt := range list {
		if rt.Pattern != "/dashboard" { // which browsers ask for, too
			list[i].Refuse = asText
		}
		list[i].Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if rt.Action == auth.Open || auth.FromContext(r.Context()).Payload {
				rt.Handler.ServeHTTP(w, r)
				return
			}
			others[i].Handler.ServeHTTP(w, r)
		})
	}
	return list
}
