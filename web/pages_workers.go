package web

import (
	"strings"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

const (
	recentTasks = 25 // of one worker
	maxSimilar  = 3  // names to propose for one that is not known
)

func (p *pages) workersPage() page {
	var v templates.Workers
	pg := page{topic: "workers", address: "/workers", title: "Workers", section: templates.SectionWorkers}
	p.cluster.View(func(c *state.Cluster) {
		pg.version = c.Version()
		v.Workers = c.Workers()
	})
	pg.view = v
	return pg
}

func (p *pages) workerPage(name string) (page, error) {
	var v templates.Worker
	var version uint64
	known := false
	p.cluster.View(func(c *state.Cluster) {
		version = c.Version()
		if v.Worker, known = c.Worker(name); !known {
			return
		}
		v.Tasks = c.Tasks(state.Query{Workers: []string{name}, Limit: recentTasks}).Tasks
	})
	if !known {
		return page{}, errUnknown
	}
	return page{
		topic:   "worker/" + name,
		address: templates.WorkerPath(name),
		title:   name,
		section: templates.SectionWorkers,
		view:    v,
		version: version,
	}, nil
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
