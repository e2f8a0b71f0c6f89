package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
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

const (
	workerCountsAge = 10 * time.Second // counters are stored every few seconds
	longestAge      = time.Second
)

// workerCounts caches what the counters and events say of workers.
type workerCounts struct {
	counts  *cache[workers.Counts]
	longest *cache[map[string]workers.Run]
}

func newWorkerCounts() *workerCounts {
	return &workerCounts{newCache[workers.Counts](workerCountsAge), newCache[map[string]workers.Run](longestAge)}
}

// workerPages are the list of workers and the page of one.
type workerPages struct {
	*common
	*workerCounts

	charts *charts // nil where none is drawn
}

// counted returns the counts of the last 24 hours, none of a time past or if they cannot be read.
func (p *workerPages) counted(ctx context.Context) workers.Counts {
	if p.instant != nil {
		return workers.Counts{}
	}
	c, err := p.counts.get("", func() (workers.Counts, error) { return workers.ReadCounts(ctx, p.backend.History(), p.now()) })
	if err != nil {
		p.log.WarnContext(ctx, "counters of workers not read", "error", err)
	}
	return c
}

// load lists the workers that match every word of find by name, status, pool, queue or version.
func (p *workerPages) load(ctx context.Context, a address) (page, error) {
	path := p.urls.Prefix + templates.WorkersPath
	q, err := query.ParseWorkers(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "All workers", Href: path})
	}
	v := templates.Workers{Find: q.Find, Sort: q.Sort, Actions: p.workerActions()}
	rows := p.rows(ctx, &v)
	if p.instant == nil && p.trace == nil {
		v.Gossip = new(p.backend.Health().Gossip)
	}
	v.Workers = slices.DeleteFunc(rows, func(r workers.Row) bool { return !matches(r, q.Find) })
	if q.Sort != "" {
		workers.Sort(v.Workers, q.Sort)
		v.ByHost = query.Workers{Find: q.Find}.URL(path)
	} else {
		v.Groups = workers.ByHost(v.Workers)
	}
	v.Sorts = workerSorts(q, path, v.Groups == nil)
	return page{url: q.URL(templates.WorkersPath), title: "Workers", section: templates.SectionWorkers, view: v}, nil
}

// rows returns a row for each worker, by name, and fills in what the page says of all.
func (p *workerPages) rows(ctx context.Context, v *templates.Workers) []workers.Row {
	p.backend.View(func(c state.View) { v.All = c.Workers() })
	var known remote.Topology
	if p.commands != nil {
		known = p.commands.Inspector.CachedTopology()
		v.Duplicates = p.commands.Client.Duplicates()
	}
	counts := p.counted(ctx)
	longest, _ := p.longest.get("", func() (longest map[string]workers.Run, _ error) {
		p.backend.View(func(c state.View) { longest = workers.Longest(c, p.now(), counts) })
		return longest, nil
	})
	return workers.Rows(v.All, known, counts, longest)
}

// workerSorts are the orders that the heads of columns lead to, by key. Where nothing is sorted, rows are by name.
func workerSorts(q query.Workers, path string, byName bool) map[string]templates.Sort {
	if q.Sort == "" && byName {
		q.Sort = "name"
	}
	return sorts(workers.SortKeys(), q.Sort, func(order string) string {
		return query.Workers{Find: q.Find, Sort: order}.URL(path)
	}, "name", "pool", "queues", "version")
}

// matches reports whether every word of find is in what a row shows of its worker.
func matches(row workers.Row, find string) bool {
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
