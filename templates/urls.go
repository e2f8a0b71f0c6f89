// Package templates draws the pages of the dashboard: values go in, HTML comes out. It asks nothing of
// the cluster, reads no wall clock and decides nothing; equal values give equal bytes.
package templates

import (
	"net/url"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// URLs says where the dashboard lives, and what may be done there. Every link is made by it.
type URLs struct {
	Prefix       string                   // path before every page, "/ops/celery"; empty at the root
	Asset        func(name string) string // URL of a static file, "umbel.css"
	Title, Color string                   // badge of every page, "production", "red"; none if the title is empty
	Above        string                   // path before the pages that are of all clusters, where there are several: "/ops"
	Cluster      string                   // name of the cluster; empty where there is one
	ReadOnly     bool                     // nothing can be changed: no view saved, no failure resolved
	CanSend      bool                     // people may act on the cluster
	IsAdmin      bool                     // people may stop workers, delete messages, release locks and read the audit log
	HidesPayload bool                     // arguments, results, exceptions and messages are not to be seen
	HasCommands  bool                     // queues, and what is sent, can be seen
	HasLocks     bool                     // there is a Redis with locks
	HasTraces    bool                     // traces can be saved
	HasAlerts    bool                     // rules of alerts can be seen
	Tracker      string                   // host where issues can be opened, empty if there is none
	// ReadOnlyAlerts says that no rule of alerts is judged.
	ReadOnlyAlerts bool
}

// View is the content of one page. Page draws nothing but the values.
type View interface {
	Page(l Layout) templ.Component
}

// path links to a path below the prefix.
func (u URLs) path(below string) templ.SafeURL { return templ.SafeURL(u.Prefix + below) }

// TaskPath is the address of a task's page, below the prefix.
func TaskPath(id string) string { return "/tasks/" + url.PathEscape(id) }

// WorkerPath is the address of a worker's page, below the prefix.
func WorkerPath(name string) string { return "/workers/" + url.PathEscape(name) }

func (u URLs) task(id string) templ.SafeURL { return u.path(TaskPath(id)) }

func (u URLs) taskJSON(id string) templ.SafeURL {
	return u.path("/api/v1/tasks/" + url.PathEscape(id))
}

func (u URLs) worker(name string) templ.SafeURL { return u.path(WorkerPath(name)) }

// tasksWhere links to the tasks that match pairs of parameter and value.
func (u URLs) tasksWhere(pairs ...string) templ.SafeURL {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return u.path("/tasks?" + v.Encode())
}

// running links to the tasks that have started, have not ended and are not lost.
func (u URLs) running() templ.SafeURL {
	return u.tasksWhere("q", "is:active -is:dismissed,lost -state:pending,received,retry")
}

func (u URLs) tasksIn(st state.State) templ.SafeURL { return u.tasksWhere("state", string(st)) }

// unfinishedOn links to the tasks that a worker holds.
func (u URLs) unfinishedOn(worker string) templ.SafeURL {
	return u.tasksWhere("worker", worker, "q", "is:active -is:dismissed,lost -state:pending,retry")
}

func (u URLs) icon(name string) string { return u.Asset("sprite.svg") + "#" + name }
