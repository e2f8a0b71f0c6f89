package templates

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/gossip"
)

// WorkersPath is the address of the list of workers, below the prefix.
const WorkersPath = "/workers"

// Workers is the content of the page that lists workers.
type Workers struct {
	Workers    []workers.Row   // those that match
	Groups     []workers.Group // the same by host, nil if they are not grouped
	All        []state.Worker  // by name
	Find       string          // what they match
	Sort       string          // parameter of the address, empty if it has none
	Sorts      map[string]Sort // by key
	ByHost     string          // address of the list by host, empty if it is so
	Actions    []Option        // methods for those that are chosen
	Duplicates []string        // names that more than one worker has answered by
	Gossip     *gossip.Report  // which workers hear each other, nil where that is not told
}

// Option is a value that may be chosen, with the words to show for it.
type Option struct{ Value, Label string }

// Page draws the whole page.
func (v Workers) Page(l Layout) templ.Component { return workersPage(l, v) }

func workerRowID(name string) string {
	if strings.Contains(name, "@") { // which no other id has, escaped
		return url.QueryEscape(name) // as on Flower's page
	}
	return "w-" + name
}

// chosen reports whether rows can be chosen.
func (v Workers) chosen() bool { return len(v.Actions) > 0 }

// versions are the software versions that workers report which are not offline, sorted.
func (v Workers) versions() []string {
	seen := map[string]bool{}
	for _, w := range v.All {
		if s := softwareVersion(w); s != "" && w.Status != state.Offline {
			seen[s] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// poolWords is the kind of pool with its size: prefork × 4.
func poolWords(w workers.Row) string {
	if w.Pool != "" && w.Slots != nil {
		return w.Pool + " × " + number(*w.Slots)
	}
	return w.Pool
}

// busyPart is how much of some slots is used, in hundredths, false if either is not known.
func busyPart(active, slots *int64) (int, bool) {
	if active == nil || slots == nil || *slots <= 0 {
		return 0, false
	}
	return int(100 * min(max(*active, 0), *slots) / *slots), true
}

// hostRowID is the id of the row above the workers of a host.
func hostRowID(host string) string { return "host-" + url.QueryEscape(host) }

// failedOn links to the tasks that failed on a worker in the span of time of its counts.
func (u URLs) failedOn(worker string) templ.SafeURL {
	return u.tasksWhere("worker", worker, "state", string(state.Failure), "q", "received:-24h..")
}

// usually says how long tasks such as a run take, empty if that is not known.
func usually(r workers.Run) string {
	if r.Usual == 0 {
		return ""
	}
	return "usually under " + duration(r.Usual.Seconds())
}

// usuallyTitle says what usually means.
const usuallyTitle = "95 % of the tasks of this name that succeeded in the last 24 hours took no longer"

func hundredths(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

func joined(list []string) string { return strings.Join(list, ", ") }

// hostTotal says what runs on a host.
func hostTotal(t workers.Total) string {
	list := []string{plural(t.Workers, "worker", "workers")}
	if t.Online < t.Workers {
		list = append(list, number(t.Online)+" online")
	}
	if t.Unfinished > 0 {
		list = append(list, plural(t.Unfinished, "unfinished task", "unfinished tasks"))
	}
	return joined(list)
}

// forgetWorker links to the form that forgets a worker.
func (u URLs) forgetWorker(name string) templ.SafeURL {
	return u.path("/act/forget?" + url.Values{"worker": {name}}.Encode())
}

// ArgumentPrefix comes before the names of arguments in the address of a form.
const ArgumentPrefix = "arg."

// actOnWorker links to the form of a remote control command, with pairs of argument and value.
func (u URLs) actOnWorker(method, worker string, pairs ...string) templ.SafeURL {
	v := url.Values{"method": {method}, "worker": {worker}}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(ArgumentPrefix+pairs[i], pairs[i+1])
	}
	return u.path("/act/worker?" + v.Encode())
}
