package web

import (
	"net/url"
	"strings"

	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

// maxSuggestions bounds what a field of the filter suggests.
const maxSuggestions = 200

func (p *pages) tasksPage(q query.Tasks) page {
	path := p.site.Prefix + "/tasks"
	v := templates.Tasks{Filter: filter(q)}
	pg := page{
		topic:   q.URL("tasks"),
		address: q.URL("/tasks"),
		title:   "Tasks",
		section: templates.SectionTasks,
		search:  q.Text,
	}
	p.cluster.View(func(c *state.Cluster) {
		v.Found = c.Tasks(q.State())
		v.Counts = c.Counts()
		if len(v.Found.Tasks) == 0 && q.From == nil {
			v.Wider = wider(c, q, path)
		}
	})
	pg.version = v.Found.Version
	if q.From != nil {
		v.Newest = q.First().URL(path)
	}
	if v.Found.Newer != nil {
		v.Newer = q.After(v.Found.Newer, true).URL(path)
	}
	if v.Found.Older != nil {
		v.Older = q.After(v.Found.Older, false).URL(path)
	}
	pg.view = v
	return pg
}

// suggest adds what the fields of the filter propose. It is no part of the live topic: a list that
// changes while it is open helps nobody.
func (p *pages) suggest(pg page) page {
	v, ok := pg.view.(templates.Tasks)
	if !ok {
		return pg
	}
	p.cluster.View(func(c *state.Cluster) {
		v.KnownNames = c.Names()
		for _, w := range c.Workers() {
			v.KnownWorkers = append(v.KnownWorkers, w.Name)
		}
	})
	v.KnownNames = v.KnownNames[:min(len(v.KnownNames), maxSuggestions)]
	v.KnownWorkers = v.KnownWorkers[:min(len(v.KnownWorkers), maxSuggestions)]
	pg.view = v
	return pg
}

// wrongTasksPage keeps what was asked for, right or wrong, and lists nothing.
func (p *pages) wrongTasksPage(q query.Tasks, raw url.Values, wrong *query.Error) page {
	v := templates.Tasks{Filter: filter(q)}
	v.Filter.Param, v.Filter.Message = wrong.Param, wrong.Message
	switch wrong.Param {
	case "q":
		v.Filter.Text = strings.Join(raw["q"], " ")
	case "name":
		v.Filter.Names = raw["name"]
	case "worker":
		v.Filter.Workers = raw["worker"]
	}
	p.cluster.View(func(c *state.Cluster) { v.Counts = c.Counts() })
	return p.suggest(page{
		address: "/tasks",
		title:   "Tasks",
		section: templates.SectionTasks,
		search:  v.Filter.Text,
		view:    v,
	})
}

func filter(q query.Tasks) templates.Filter {
	s := q.State()
	return templates.Filter{
		States:  s.States,
		Names:   s.Names,
		Workers: s.Workers,
		Text:    q.Text,
		Root:    s.Root,
		Limit:   q.Limit,
	}
}

// wider looks for queries with one condition less that do match something.
func wider(c *state.Cluster, q query.Tasks, path string) []templates.Wider {
	var found []templates.Wider
	conditions := q.Query.Conditions()
	for i, condition := range conditions {
		var rest lang.Query
		for j, other := range conditions {
			if j != i {
				rest = rest.And(other)
			}
		}
		less := q.Where(rest)
		less.Limit = 1
		if page := c.Tasks(less.State()); len(page.Tasks) > 0 {
			less.Limit = q.Limit
			found = append(found, templates.Wider{Condition: condition.String(), Href: less.URL(path), Total: page.Total})
		}
	}
	return found
}
