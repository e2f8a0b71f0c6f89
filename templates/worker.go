package templates

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
)

// maxShownGaps bounds the gaps that a worker's page names.
const maxShownGaps = 5

// missingTitle says how many events are missing in gaps.
func missingTitle(gaps []view.Gap) string {
	n := int64(0)
	for _, g := range gaps {
		n += g.Missing
	}
	return "≥ " + plural(n, "started event", "started events") + " missing."
}

// clocks are those that events in a gap can have.
func clocks(g view.Gap) string {
	if g.After+2 == g.Before {
		return "clock " + number(g.After+1)
	}
	return "clocks " + number(g.After+1) + "–" + number(g.Before-1)
}

// WorkerTab is a part of the page of a worker.
type WorkerTab string

// The parts that there are.
const (
	TabNow      WorkerTab = "now"
	TabHistory  WorkerTab = "history"
	TabQueues   WorkerTab = "queues"
	TabTasks    WorkerTab = "tasks"
	TabConfig   WorkerTab = "config"
	TabSystem   WorkerTab = "system"
	TabClock    WorkerTab = "clock"
	TabCommands WorkerTab = "commands"
)

// Worker is the content of the page of one worker. Only what its tab shows is filled in.
type Worker struct {
	Worker     state.Worker
	Tab        WorkerTab
	Tabs       []WorkerTab
	Actions    []Option       // methods that can be called on it
	LastReport workers.Row    // its pool and queues as it last told them, where ReportedAt is not 0
	Forget     bool           // whether to offer that it is forgotten
	Gaps       []view.Gap     // where its events are missing, oldest first
	Drain      *command.Drain // of its process, nil if there is none or it was undone

	Inspection Inspection
	Now        WorkerNow
	Queues     []ConsumedQueue
	Registered []RegisteredTask
	Config     WorkerConfig
	System     WorkerSystem
	Tasks      []state.Task // its newest
	Runs       []RunTimes
	Chart      Chart
	Clock      WorkerClock
	Commands   []history.Command // newest first
}

// Inspection says how old an inspection is, and why parts of it are missing.
type Inspection struct {
	At         int64 // when it last answered, µs; 0 if it never did
	InProgress bool
	Times      map[string]int64  // when parts were answered, µs, by method
	Truncated  map[string]int    // how long the lists were that are told in part, by method
	Errors     map[string]string // why parts are missing or old, by method
	Refresh    string            // address that asks it again, empty if it cannot be asked
	Why        string            // why it is not asked, as a sentence
}

// WorkerNow is what a worker holds.
type WorkerNow struct {
	Active, Reserved, Scheduled []WorkerTask
	Revoked                     []string
	Lost                        []WorkerTask // started there by a process that is gone, the newest
	LostInAll                   int
	Slots                       int64 // tasks that it can run at once, 0 if not known
}

// free is how many rows the list of running tasks has for those that could run besides: the page keeps its height.
func (n WorkerNow) free() int {
	const most = 8
	return max(0, int(min(n.Slots, most))-len(n.Active))
}

// byEvents says what runs, as events know; oldestAt follows it, if it is known.
func (n WorkerNow) byEvents() string {
	if len(n.Active) == 0 {
		return "events know no task that runs there."
	}
	text := "events say " + plural(len(n.Active), "task runs", "tasks run")
	switch {
	case n.oldestAt() == 0:
		return text + "."
	case len(n.Active) > 1:
		text += ", the oldest"
	}
	return text + " for"
}

// oldestAt is when the task began that runs longest, µs, 0 if none runs or that is not known.
func (n WorkerNow) oldestAt() int64 {
	for _, t := range n.Active {
		if t.StartedAt != 0 {
			return t.StartedAt
		}
	}
	return 0
}

// WorkerTask is a task that a worker holds, according to the worker, to events, or to both.
type WorkerTask struct {
	ByWorker, ByEvents     bool
	ID, Name, Args, Kwargs string
	StartedAt              int64 // µs, by Umbel's clock; 0 if it has not started
	ETA                    int64
	Elapsed                float64       // seconds since it started
	Usual                  time.Duration // within which such tasks succeed, 0 if unknown
	WorkerAt, EventsAt     int64         // when the worker reported it, and when its newest event was sent, µs; 0 if not
	PID                    *int64        // of the pool process
	Queue                  string
	Priority               *int64
	Redelivered            bool
	Soft, Hard             *float64 // time limits, seconds
	Revoke, Terminate      bool     // it can be
}

// ConsumedQueue is a queue that a worker consumes from.
type ConsumedQueue struct {
	remote.ConsumedQueue
	Others int // other workers that consume from it
}

// RegisteredTask is a task that a worker can run.
type RegisteredTask struct {
	Name  string
	Limit string // rate limit, empty if there is none
	Info  string // the rest of what it tells: serializer=json max_retries=3
	Total *int64 // accepted since the worker started
}

// WorkerConfig are the settings of a worker.
type WorkerConfig struct {
	Settings []Setting // that match, by name
	All      int       // how many there are, here or elsewhere
	Find     string    // what their names and values hold
	Differ   bool      // only those that differ are shown
	Compared int       // workers that it was compared with
	Waiting  int       // workers that have not answered yet
	Self     string    // address of the tab
}

// extent says how much of all there is to see.
func (c WorkerConfig) extent() string {
	text := number(len(c.Settings)) + " of " + number(c.All) + ", compared with " + plural(c.Compared, "other worker", "other workers")
	if c.Waiting > 0 {
		text += ", " + number(c.Waiting) + " not replied yet"
	}
	return text
}

// Setting is one setting of a worker.
type Setting struct {
	Name, Value string
	Differs     []Differing
}

// Differing are workers that have another value.
type Differing struct {
	Value   string // empty if they do not have the setting
	Workers []string
}

// WorkerSystem is what a worker reported about its process and pool.
type WorkerSystem struct {
	Known          bool
	PID            int64
	StartedAt      int64 // µs, 0 if unknown
	Implementation string
	Kind           string
	MaxConcurrency *int64
	Slots          *int64
	Processes      []PoolProcess
	MaxTasks       string // per child
	Soft, Hard     *float64
	Prefetch       *int64
	Autoscaler     string
	Writes, Broker []Param
	Usage          []Param
	Totals         []TaskTotal
	Report         string
}

// PoolProcess is a process of the pool with the task that it runs.
type PoolProcess struct {
	PID  int64
	Task *WorkerTask
}

// TaskTotal is how many tasks of a name a worker has accepted.
type TaskTotal struct {
	Name string
	N    int64
}

// RunTimes sums up recent tasks of one name.
type RunTimes struct {
	Name           string
	N, Failed      int
	Median, Worst  *float64 // seconds
	UnknownRuntime int
}

// WorkerClock is what is known of a worker's Lamport clock and its wall clock.
type WorkerClock struct {
	Reported *int64              // as it answered
	History  []state.OffsetPoint // of its wall clock, oldest first
}

// replyOf returns the reply of a worker to a command, the zero value if there is none.
func replyOf(c history.Command, worker string) history.Reply {
	if i := slices.IndexFunc(c.Replies, func(r history.Reply) bool { return r.Node == worker }); i >= 0 {
		return c.Replies[i]
	}
	return history.Reply{}
}

// Page draws the whole page.
func (v Worker) Page(l Layout) templ.Component { return worker(l, v) }

// extras are the fields of a worker that have no place of their own, by name.
func extras(w state.Worker) []string { return slices.Sorted(maps.Keys(w.Extra)) }

// label is the tab as a word.
func (t WorkerTab) label() string {
	if t == TabTasks {
		return "Registered tasks"
	}
	return strings.ToUpper(string(t[:1])) + string(t[1:])
}

// WorkerTabPath is the address of a tab, below the prefix.
func WorkerTabPath(name string, t WorkerTab) string {
	return WorkerPath(name) + "?" + url.Values{"tab": {string(t)}}.Encode()
}

func (u URLs) workerTab(name string, t WorkerTab) templ.SafeURL {
	return u.path(WorkerTabPath(name, t))
}

// name is the name of a task as the marks of names take it.
func (t WorkerTask) name() *string {
	if t.Name == "" {
		return nil
	}
	return &t.Name
}

// run is the task as one that runs.
func (t WorkerTask) run() workers.Run {
	return workers.Run{ID: t.ID, Name: t.Name, StartedAt: t.StartedAt, Elapsed: time.Duration(t.Elapsed * float64(time.Second)), Usual: t.Usual}
}

// call is how the task was called: (1, 2) {'a': 3}.
func (t WorkerTask) call() string {
	args, kwargs := t.Args, t.Kwargs
	if args == "()" || args == "[]" {
		args = ""
	}
	if kwargs == "{}" {
		kwargs = ""
	}
	return strings.TrimSpace(args + " " + kwargs)
}

// limit is the time limit that ends the task first, nil if there is none.
func (t WorkerTask) limit() *float64 {
	switch {
	case t.Soft == nil:
		return t.Hard
	case t.Hard == nil || *t.Soft < *t.Hard:
		return t.Soft
	}
	return t.Hard
}

// used is how much of its time limit the task has used, in hundredths.
func (t WorkerTask) used() int {
	l := t.limit()
	if l == nil || *l <= 0 {
		return 0
	}
	return int(100 * min(max(t.Elapsed / *l, 0), 1))
}

// limits are the time limits in words.
func (t WorkerTask) limits() string {
	var parts []string
	if t.Soft != nil {
		parts = append(parts, "soft "+duration(*t.Soft))
	}
	if t.Hard != nil {
		parts = append(parts, "hard "+duration(*t.Hard))
	}
	return strings.Join(parts, ", ")
}

// others says who else consumes from a queue.
func (q ConsumedQueue) others() string {
	if q.Others == 0 {
		return "only this worker"
	}
	return plural(q.Others, "other worker", "other workers")
}

// common is the error of the last inspection if all its parts failed alike, else empty.
func (i Inspection) common() string {
	why := i.Errors["stats"]
	for method := range i.Times {
		if i.Errors[method] != why {
			return ""
		}
	}
	return why
}

// withoutErrors leaves out why parts are missing or old, where that is said beside it.
func (i Inspection) withoutErrors() Inspection {
	i.Errors, i.Why = nil, ""
	return i
}

// answered reports whether a part is known.
func (i Inspection) answered(method string) bool { return i.Times[method] != 0 }

// why is the reason that a part is not known.
func (i Inspection) why(method string) string {
	if i.Errors[method] != "" {
		return i.Errors[method]
	}
	if i.InProgress {
		return "Waiting for the worker's reply."
	}
	return cmp.Or(i.Why, "The worker has not been inspected yet.")
}

// words are the workers that have another value, and that value.
func (d Differing) words() string {
	who := d.Workers[0]
	if n := len(d.Workers) - 1; n > 0 {
		who += " and " + plural(n, "other", "others")
	}
	if d.Value == "" {
		return who + " does not set it"
	}
	return who + ": " + excerpt(d.Value, 200)
}

// limitWords are seconds in words, none where there is no limit.
func limitWords(seconds *float64) string {
	if seconds == nil {
		return "none"
	}
	return duration(*seconds)
}

// flowerID is the id that Flower's page has for a remote control command, empty if it has none.
func flowerID(method string) string {
	switch method {
	case "shutdown":
		return "worker-shutdown"
	case "pool_restart":
		return "worker-pool-restart"
	case "pool_grow":
		return "worker-pool-grow"
	case "pool_shrink":
		return "worker-pool-shrink"
	case "autoscale":
		return "worker-pool-autoscale"
	case "add_consumer":
		return "worker-add-consumer"
	}
	return ""
}

// drainWords say how far a drain is.
func drainWords(d command.Drain) (tone, title, text string) {
	switch c := d.Command; {
	case c.State == history.CommandDone || c.State == history.CommandSent:
		text = "It consumes from no queue and runs nothing."
		if len(c.Replies) > 0 {
			text = c.Replies[0].Text
		}
		return "info", "Drained.", text
	case c.State.Final():
		return "warn", "Drain given up.", cmp.Or(c.LastError, "It took more than a day.") + " Consumers that were cancelled stay so."
	default:
		text = cmp.Or(c.LastError, "It is about to begin.")
		if d.Shutdown {
			text += " It is shut down then."
		}
		return "info", "Draining.", text
	}
}
