// Package templates draws the pages of the dashboard: values go in, HTML comes out. It asks nothing of
// the cluster, reads no wall clock and decides nothing; equal values give equal bytes.
package templates

import (
	"net/url"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// Site says where the dashboard lives, and what may be done there. Every link is made by it.
type Site struct {
	Prefix   string                   // path before every page, "/ops/celery"; empty at the root
	Asset    func(name string) string // URL of a static file, "umbel.css"
	ReadOnly bool                     // nothing can be changed: no view saved, no failure resolved
	Acts     bool                     // people may act on the cluster
	Operates bool                     // queues, and what is sent, can be seen
}

// Region is an element that a live page replaces as a whole. ID is its id attribute.
type Region struct {
	ID   string
	Body templ.Component
}

// List is an element whose rows a live page reorders, each by its own id.
type List struct {
	ID   string
	Rows []Region
}

// View is the content of one page. What Regions and Lists return is part of what Page draws, byte
// for byte, and depends on nothing but the values.
type View interface {
	Page(c Chrome) templ.Component
	Regions(s Site) []Region
	Lists(s Site) []List
}

func (s Site) overview() templ.SafeURL { return templ.SafeURL(s.Prefix + "/") }

func (s Site) workers() templ.SafeURL { return templ.SafeURL(s.Prefix + "/workers") }

func (s Site) queues() templ.SafeURL { return templ.SafeURL(s.Prefix + "/queues") }

func (s Site) outbox() templ.SafeURL { return templ.SafeURL(s.Prefix + "/outbox") }

func (s Site) tasks() templ.SafeURL { return templ.SafeURL(s.Prefix + "/tasks") }

func (s Site) settings() templ.SafeURL { return templ.SafeURL(s.Prefix + "/settings") }

func (s Site) theme() templ.SafeURL { return templ.SafeURL(s.Prefix + "/theme") }

// TaskPath is the address of a task's page, below the prefix.
func TaskPath(id string) string { return "/tasks/" + url.PathEscape(id) }

// WorkerPath is the address of a worker's page, below the prefix.
func WorkerPath(name string) string { return "/workers/" + url.PathEscape(name) }

func (s Site) task(id string) templ.SafeURL { return templ.SafeURL(s.Prefix + TaskPath(id)) }

func (s Site) taskJSON(id string) templ.SafeURL {
	return templ.SafeURL(s.Prefix + "/api/v1/tasks/" + url.PathEscape(id))
}

func (s Site) worker(name string) templ.SafeURL { return templ.SafeURL(s.Prefix + WorkerPath(name)) }

// tasksWhere links to the tasks that match pairs of parameter and value.
func (s Site) tasksWhere(pairs ...string) templ.SafeURL {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return templ.SafeURL(s.Prefix + "/tasks?" + v.Encode())
}

// running links to the tasks that have started, have not ended and are not lost.
func (s Site) running() templ.SafeURL {
	return s.tasksWhere("q", "is:active -is:dismissed,lost -state:pending,received,retry")
}

func (s Site) tasksIn(st state.State) templ.SafeURL { return s.tasksWhere("state", string(st)) }

// unfinishedOn links to the tasks that a worker holds.
func (s Site) unfinishedOn(worker string) templ.SafeURL {
	return s.tasksWhere("state", string(state.Received), "state", string(state.Started), "worker", worker)
}

func (s Site) icon(name string) string { return s.Asset("sprite.svg") + "#" + name }
