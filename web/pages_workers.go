package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/live"
)

const maxSimilar = 3 // names to propose for one that is not known

// workerMethods are what workers can be told from their pages, in the order of menus.
func workerMethods() []string {
	return []string{
		"ping", "pool_grow", "pool_shrink", "autoscale", "pool_restart", "add_consumer", "cancel_consumer",
		"rate_limit", "time_limit", "enable_events", "disable_events", "shutdown",
	}
}

// workerActions are the methods for menus, none where nobody may act.
func (p *pages) workerActions() []templates.Option {
	if p.service() == nil {
		return nil
	}
	var list []templates.Option
	for _, name := range workerMethods() {
		if m, ok := remote.Lookup(name); ok {
			list = append(list, templates.Option{Value: m.Name, Label: m.Title})
		}
	}
	return list
}

func (p *pages) workers(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, http.StatusOK, p.workersPage(strings.TrimSpace(r.URL.Query().Get(paramFind))))
}

// workersTopic names the list of workers that match.
func workersTopic(find string) string {
	if find == "" {
		return "workers"
	}
	return "workers?" + url.Values{paramFind: {find}}.Encode()
}

// workersOfTopic assembles the page of the live topic of a list of workers.
func (p *pages) workersOfTopic(topic, raw string) (page, error) {
	v, err := url.ParseQuery(strings.TrimPrefix(raw, "?"))
	if err != nil || topic != workersTopic(v.Get(paramFind)) {
		return page{}, live.ErrNoTopic
	}
	return p.workersPage(v.Get(paramFind)), nil
}

// workersPage lists the workers that match every word of find by name, status, pool, queue or version.
func (p *pages) workersPage(find string) page {
	v := templates.Workers{Find: find, Actions: p.workerActions()}
	topic := workersTopic(find)
	pg := page{topic: topic, address: "/" + topic, title: "Workers", section: templates.SectionWorkers}
	var workers []state.Worker
	p.cluster.View(func(c *state.Cluster) {
		pg.version = c.Version()
		workers = c.Workers()
	})
	var known remote.Topology
	if p.operations != nil {
		known = p.operations.Inspector.CachedTopology()
		v.Duplicates = p.operations.Client.Duplicates()
	}
	queues := queuesByWorker(known)
	for _, w := range workers {
		row := templates.WorkerRow{Worker: w, Pool: known.Pools[w.Name].Kind, Slots: known.Pools[w.Name].Slots}
		row.Queues, row.QueuesKnown = queues[w.Name]
		if !row.QueuesKnown && w.Status == state.Offline {
			row = p.lastTold(w)
		}
		v.All = append(v.All, w)
		if matches(row, find) {
			v.Workers = append(v.Workers, row)
		}
	}
	pg.view = v
	return pg
}

// lastTold is a worker with the pool and the queues that it had when it last told.
func (p *pages) lastTold(w state.Worker) templates.WorkerRow {
	row := templates.WorkerRow{Worker: w}
	if p.operations == nil {
		return row
	}
	if told, ok := p.operations.Inspector.LastKnown(w.Name); ok {
		row.Pool, row.Slots, row.QueuesKnown = told.Pool, told.Slots, true
		row.Queues, row.ReportedAt = slices.Sorted(slices.Values(told.Queues)), told.At.UnixMicro()
	}
	return row
}

// matches reports whether every word of find is in what a row shows of its worker.
func matches(row templates.WorkerRow, find string) bool {
	shown := []string{row.Name, string(row.Status), row.Pool}
	if row.Version != nil {
		shown = append(shown, *row.Version)
	}
	text := strings.ToLower(strings.Join(append(shown, row.Queues...), "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(find)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// queuesByWorker returns the queues of all workers that told theirs.
func queuesByWorker(known remote.Topology) map[string][]string {
	list := map[string][]string{}
	for _, worker := range known.Expected {
		if !slices.Contains(known.Missing, worker) {
			list[worker] = nil
		}
	}
	for queue, workers := range known.Queues {
		for _, worker := range workers {
			list[worker] = append(list[worker], queue)
		}
	}
	for _, queues := range list {
		slices.Sort(queues)
	}
	return list
}

// online returns the names of the workers that are asked.
func (p *pages) online() []string {
	var names []string
	p.cluster.View(func(c *state.Cluster) {
		for _, w := range c.Workers() {
			if w.Status == state.Online {
				names = append(names, w.Name)
			}
		}
	})
	return names
}

func (p *pages) worker(w http.ResponseWriter, r *http.Request) {
	t := workerTopic{name: param(r, "name")}
	q := r.URL.Query()
	t.tab, t.find, t.differ = templates.WorkerTab(q.Get("tab")), strings.TrimSpace(q.Get(paramFind)), q.Get("differ") == "1"
	if !slices.Contains(p.workerTabs(), t.tab) {
		t.tab = p.workerTabs()[0]
	}
	if t.tab != templates.TabConfig {
		t.find, t.differ = "", false
	}
	if q.Get(paramRefresh) != "" {
		p.askWorker(r.Context(), t)
		http.Redirect(w, r, p.site.Prefix+t.address(), http.StatusSeeOther)
		return
	}
	if t.inspects() && p.operations != nil {
		p.awaitWorker(r.Context(), t.name)
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	pg, err := p.workerPage(ctx, t)
	if err != nil {
		p.problem(w, r, http.StatusNotFound, p.unknownWorker(t.name))
		return
	}
	p.show(w, r, http.StatusOK, pg)
}

// isOnline reports whether a worker is expected to answer. Others are not asked.
func (p *pages) isOnline(name string) bool {
	var w state.Worker
	p.cluster.View(func(c *state.Cluster) { w, _ = c.Worker(name) })
	return w.Status == state.Online
}

// askWorker waits for what a worker tells now.
func (p *pages) askWorker(ctx context.Context, t workerTopic) {
	if p.operations == nil || !p.isOnline(t.name) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshPatience)
	defer cancel()
	if t.tab == templates.TabSystem {
		p.operations.Inspector.Report(ctx, t.name)
	}
	p.operations.Inspector.Inspect(ctx, t.name)
}

// awaitWorker waits a little for what a worker tells that was never asked, so that pages without scripts show it.
func (p *pages) awaitWorker(ctx context.Context, name string) {
	if !p.isOnline(name) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	for ctx.Err() == nil {
		changed := p.operations.Inspector.Changed()
		if i := p.operations.Inspector.Cached(name); !i.At.IsZero() || len(i.Errors) > 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// unknownWorker proposes workers that share the node's name or its host.
func (p *pages) unknownWorker(name string) templates.Problem {
	v := templates.Problem{
		Title:    "Unknown worker",
		Message:  "No event of worker " + name + " has been seen since Umbel began to listen.",
		Back:     p.site.Prefix + "/workers",
		BackText: "All workers",
	}
	node, host, _ := strings.Cut(name, "@")
	var known []state.Worker
	p.cluster.View(func(c *state.Cluster) { known = c.Workers() })
	for _, w := range known {
		n, h, _ := strings.Cut(w.Name, "@")
		if (strings.EqualFold(n, node) || strings.EqualFold(h, host)) && len(v.Similar) < maxSimilar {
			v.Similar = append(v.Similar, templates.Link{Text: w.Name, Href: p.site.Prefix + templates.WorkerPath(w.Name)})
		}
	}
	return v
}
