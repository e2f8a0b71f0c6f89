package templates

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// Workers is the content of the page that lists workers.
type Workers struct {
	Workers []state.Worker // by name
}

// Page draws the whole page.
func (v Workers) Page(c Chrome) templ.Component { return workers(c, v) }

// Regions are the totals.
func (v Workers) Regions(Site) []Region {
	return []Region{{ID: "matches", Body: workersTotal(v)}}
}

// Lists holds the rows.
func (v Workers) Lists(s Site) []List {
	l := List{ID: "workers"}
	for _, w := range v.Workers {
		l.Rows = append(l.Rows, Region{ID: workerRowID(w.Name), Body: workerRow(s, w)})
	}
	return []List{l}
}

func workerRowID(name string) string { return "w-" + name }

// versions are the software versions that workers report, sorted.
func (v Workers) versions() []string {
	seen := map[string]bool{}
	for _, w := range v.Workers {
		if s := softwareVersion(w); s != "" {
			seen[s] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Worker is the content of the page of one worker.
type Worker struct {
	Worker state.Worker
	Tasks  []state.Task // its newest
}

// Page draws the whole page.
func (v Worker) Page(c Chrome) templ.Component { return worker(c, v) }

// Regions are what is known of the worker itself.
func (v Worker) Regions(s Site) []Region {
	return []Region{
		{ID: "worker-head", Body: workerHead(s, v.Worker)},
		{ID: "worker-tiles", Body: workerTiles(s, v.Worker)},
		{ID: "worker-facts", Body: workerFacts(v.Worker)},
	}
}

// Lists holds its recent tasks.
func (v Worker) Lists(s Site) []List { return []List{taskList(s, "tasks", Table{}, v.Tasks)} }

// extras are the fields of a worker that have no place of their own, by name.
func extras(w state.Worker) []string { return slices.Sorted(maps.Keys(w.Extra)) }

func hundredths(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

func joined(list []string) string { return strings.Join(list, ", ") }
