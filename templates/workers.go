package templates

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// Workers is the content of the page that lists workers.
type Workers struct {
	Workers    []WorkerRow    // those that match, by name
	All        []state.Worker // by name
	Find       string         // what they match
	Actions    []Option       // methods for those that are chosen
	Duplicates []string       // names that more than one worker has answered by
}

// Option is a value that may be chosen, with the words to show for it.
type Option struct{ Value, Label string }

// WorkerRow is a worker with its pool and queues.
type WorkerRow struct {
	state.Worker
	Pool        string   // prefork; empty if unknown
	Slots       *int64   // tasks that it can run at once
	Queues      []string // that it consumes from
	QueuesKnown bool     // whether Queues is known
	ReportedAt  int64    // when it told Pool and Queues, µs, if it is not asked any more; else 0
}

// Page draws the whole page.
func (v Workers) Page(l Layout) templ.Component { return workers(l, v) }

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

// pool is the kind of pool with its size: prefork × 4.
func (w WorkerRow) pool() string {
	if w.Pool != "" && w.Slots != nil {
		return w.Pool + " × " + number(*w.Slots)
	}
	return w.Pool
}

// busy is how much of its slots a worker uses, in hundredths, false if either is not known.
func (w WorkerRow) busy() (int, bool) {
	if w.Active == nil || w.Slots == nil || *w.Slots <= 0 {
		return 0, false
	}
	return int(100 * min(max(*w.Active, 0), *w.Slots) / *w.Slots), true
}

func hundredths(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

func joined(list []string) string { return strings.Join(list, ", ") }

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
