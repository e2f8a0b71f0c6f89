package templates

import (
	"cmp"
	"math"
	"slices"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// Overview is the content of the first page.
type Overview struct {
	Flow             flow.Verdict // whether work flows; its zero value where that is not asked
	Chart            Chart
	Rates            view.Rates
	Counts           state.Counts
	Workers          []state.Worker
	Backlog          *int64                            // messages that wait in queues; nil if that is not known
	Failing          []history.FailureGroup            // open groups with most failures in the last hour
	FailuresReadable bool                              // the history, where groups are kept
	Before           map[fingerprint.ID][]deploys.Mark // what came before groups were first seen
	JustResolved     *history.FailureGroup             // what the visitor has just resolved
	Failures         []state.Task                      // newest first
	Health           view.Health
	Tour             []Link // of the demo, nil elsewhere
}

// Page draws the whole page.
func (v Overview) Page(l Layout) templ.Component { return overview(l, v) }

// rowID is the id attribute of a task's row.
func rowID(id string) string { return "t-" + id }

// ended returns how many tasks succeeded in the last minute, and how many succeeded or failed.
func ended(r view.Rates) (succeeded, all float64) {
	if len(r.Series.Succeeded) == 0 { // of a time past
		return math.Round(60 * r.Succeeded), math.Round(60 * (r.Succeeded + r.Failed))
	}
	succeeded = total(r.Series.Succeeded)
	return succeeded, succeeded + total(r.Series.Failed)
}

// fresh reports whether nothing at all has been seen.
func (v Overview) fresh() bool { return v.Counts.Tasks == 0 && v.Counts.Evicted == 0 }

// firstTasks is how many tasks there are at most while a checklist with anything unmet is shown.
const firstTasks = 100

// checking reports whether the checklist is shown: at first, and for a few tasks more, so that its last marks are seen.
func (v Overview) checking() bool {
	done, all := v.checked()
	return v.fresh() || done < all && v.Counts.Tasks < firstTasks && v.Counts.Evicted == 0
}

// checked returns how many checks are met.
func (v Overview) checked() (done, all int) {
	list := v.checks()
	for _, c := range list {
		if c.Done {
			done++
		}
	}
	return done, len(list)
}

// check is a line of the checklist of a fresh installation.
type check struct {
	Done     bool
	Title    string
	Detail   string
	Settings []string // to copy
}

func (v Overview) checks() []check {
	b := v.Health.Broker
	broker := check{Done: b.Connected, Title: "The broker is reachable", Detail: b.URL}
	if !b.Connected {
		broker.Detail += " does not answer. Umbel keeps trying. Check the address in --broker, or UMBEL_BROKER, and that this host may connect."
	}
	return []check{
		broker,
		{
			Done:     len(v.Workers) > 0,
			Title:    "A worker is seen",
			Detail:   "Its heartbeats are heard. If none is, check that workers run and use this broker, with the same virtual host or database number.",
			Settings: []string{"celery -A proj worker -E"},
		},
		{
			Done:     v.eventsSeen(),
			Title:    "Workers send task events",
			Detail:   "Start workers with -E, or set worker_send_task_events. Umbel asks those without to send them, unless --no-enable-events is set. Then run a task.",
			Settings: []string{"worker_send_task_events = True"},
		},
		{
			Done:     v.sentSeen(),
			Title:    "Clients send task-sent events",
			Detail:   "Optional: shows waiting tasks, queues and waiting times. Set it where tasks are sent from, such as the web application.",
			Settings: []string{"task_send_sent_event = True"},
		},
	}
}

// eventsSeen reports whether any event of a worker about a task arrived: clients leave tasks pending.
func (v Overview) eventsSeen() bool {
	return v.Counts.Evicted > 0 || v.Counts.Tasks > v.Counts.ByState[state.Pending]
}

// sentSeen reports whether any task-sent arrived: no other event names a queue.
func (v Overview) sentSeen() bool { return len(v.Counts.ByQueue) > 0 }

// otherStatuses counts the workers that are not online, by status.
func otherStatuses(counts map[state.Status]int) string {
	text := ""
	for _, s := range []state.Status{state.Late, state.Stopping, state.Offline} {
		if n := counts[s]; n > 0 {
			if text != "" {
				text += ", "
			}
			text += number(n) + " " + string(s)
		}
	}
	return cmp.Or(text, "all online")
}

func workersIn(workers []state.Worker) (counts map[state.Status]int, all int) {
	counts = map[state.Status]int{}
	for _, w := range workers {
		counts[w.Status]++
	}
	return counts, len(workers)
}

// maxCells bounds the strip of workers.
const maxCells = 300

// mostHeld is how many unfinished tasks the busiest worker has.
func mostHeld(workers []state.Worker) int {
	most := 0
	for _, w := range workers {
		most = max(most, w.RunningTasks)
	}
	return most
}

// heat grades how busy a worker is against the busiest, from 0 (idle) to 4.
func heat(w state.Worker, most int) int {
	if w.RunningTasks <= 0 {
		return 0
	}
	return (4*w.RunningTasks + most - 1) / most
}

// rejection is a cause for which something that arrived was not used.
type rejection struct {
	Cause string // as in the API
	Words string
	Lost  bool // a whole event or more was lost, not just a field
	Count uint64
}

// rejections puts causes into words, the most frequent first.
func rejections(counts map[string]uint64) []rejection {
	var list []rejection
	for cause, n := range counts {
		if n > 0 {
			words, lost := explain(cause)
			list = append(list, rejection{cause, words, lost, n})
		}
	}
	slices.SortFunc(list, func(a, b rejection) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cause, b.Cause))
	})
	return list
}

// explain says what a cause means, and whether it cost whole events.
func explain(cause string) (words string, lost bool) {
	switch cause {
	case celery.CausePickle:
		return "Events in pickle, which is not decoded: set event_serializer of clients and workers to json, msgpack or yaml", true
	case celery.CauseContentType:
		return "Messages that are not JSON, MessagePack or YAML: set event_serializer to one of them", true
	case celery.CauseMalformed:
		return "Malformed messages, with the rest of each", true
	case celery.CauseNotEvent:
		return "JSON that is not an event", true
	case celery.CauseHostname:
		return "Events without a sender", true
	case celery.CauseUUID:
		return "Task events without a valid ID", true
	case celery.CauseTimestamp:
		return "Timestamps replaced by the time of receipt", false
	case celery.CauseClock:
		return "Clocks ignored because they are not valid numbers", false
	case celery.CauseField:
		return "Fields ignored because of their type", false
	case view.CauseSymbols:
		return "Names beyond the limit, shown as (other)", false
	case view.CauseEvents:
		return "Events beyond the limit per task", false
	}
	return cause, true
}

// rejectedWords sum up what could not be used.
func rejectedWords(list []rejection) (title, rest string) {
	var lost, partly uint64
	for _, r := range list {
		if r.Lost {
			lost += r.Count
		} else {
			partly += r.Count
		}
	}
	if lost > 0 {
		return plural(lost, "event", "events") + " rejected.", "All others were applied."
	}
	return plural(partly, "event was", "events were") + " partly applied.", "Only what is listed here was lost."
}
