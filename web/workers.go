package web

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
)

const maxSimilar = 3 // names to propose for one that is not known

// workerMethods are the remote control commands of menus, in their order.
func workerMethods() []string {
	return []string{
		"ping", "pool_grow", "pool_shrink", "autoscale", "pool_restart", "add_consumer", "cancel_consumer",
		"rate_limit", "time_limit", "enable_events", "disable_events", "drain", "undrain", "shutdown",
	}
}

// workerActions are the entries of menus, none if the dashboard is read-only.
func (p *common) workerActions() []templates.Option {
	if p.service() == nil {
		return nil
	}
	var list []templates.Option
	for _, name := range workerMethods() {
		if name == "undrain" { // offered where a worker is drained
			continue
		}
		if m, ok := remote.Lookup(name); ok && p.audience.Role.Allows(auth.ControlAction(name)) {
			list = append(list, templates.Option{Value: m.Name, Label: m.Title})
		}
	}
	return list
}

// workerPages are the list of workers and the page of one.
type workerPages struct{ *common }

// load lists the workers that match every word of find by name, status, pool, queue or version.
func (p *workerPages) load(_ context.Context, a address) (page, error) {
	find := strings.TrimSpace(a.query.Get(paramFind))
	v := templates.Workers{Find: find, Actions: p.workerActions()}
	pg := page{url: "/workers", title: "Workers", section: templates.SectionWorkers}
	if find != "" {
		pg.url += "?" + url.Values{paramFind: {find}}.Encode()
	}
	var workers []state.Worker
	p.backend.View(func(c state.View) {
		workers = c.Workers()
	})
	var known remote.Topology
	if p.commands != nil {
		known = p.commands.Inspector.CachedTopology()
		v.Duplicates = p.commands.Client.Duplicates()
	}
	queues := queuesByWorker(known)
	for _, w := range workers {
		row := templates.WorkerRow{Worker: w, Pool: known.Pools[w.Name].Kind, Slots: known.Pools[w.Name].Slots}
		row.Queues, row.QueuesKnown = queues[w.Name]
		if !row.QueuesKnown && w.Status == state.Offline {
			row = lastReported(w)
		}
		v.All = append(v.All, w)
		if matches(row, find) {
			v.Workers = append(v.Workers, row)
		}
	}
	pg.view = v
	return pg, nil
}

// lastReported is a worker with the pool and the queues that it last reported.
func lastReported(w state.Worker) templates.WorkerRow {
	row := templates.WorkerRow{Worker: w}
	if r := w.LastReport; r != nil {
		row.Pool, row.Slots, row.QueuesKnown = r.Pool, r.Slots, true
		row.Queues, row.ReportedAt = slices.Sorted(slices.Values(r.Queues)), r.At
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

// queuesByWorker returns the queues of all workers that reported theirs.
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

// online returns the names of the online workers.
func (p *workerPages) online() []string {
	var names []string
	p.backend.View(func(c state.View) {
		for _, w := range c.Workers() {
			if w.Status == state.Online {
				names = append(names, w.Name)
			}
		}
	})
	return names
}
