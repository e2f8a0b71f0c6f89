package templates

import (
	"cmp"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Overview is the content of the first page.
type Overview struct {
	Chart            Chart
	Rates            Rates
	Counts           state.Counts
	Workers          []state.Worker
	Failing          []history.FailureGroup // open groups with most failures in the last hour
	FailuresReadable bool                   // the history, where groups are kept
	JustResolved     *history.FailureGroup  // what the visitor has just resolved
	Failures         []state.Task           // newest first
	Ingest           Ingest
}

// Rates are per second, over the last ten seconds; the series hold one value for each of the last
// sixty, oldest first.
type Rates struct {
	Received, Succeeded, Failed, Retried                         float64
	ReceivedSeries, SucceededSeries, FailedSeries, RetriedSeries []float64
}

// Ingest is how events come in.
type Ingest struct {
	Broker   Broker
	Messages uint64
	Events   uint64
	Rejected []Rejection // what could not be used, most frequent first
}

// Rejection is a cause for which something that arrived was not used.
type Rejection struct {
	Cause string // as in the API
	Words string // what happened, in words
	Lost  bool   // a whole event or more was lost, not just a field
	Count uint64
}

// Page draws the whole page.
func (v Overview) Page(l Layout) templ.Component { return overview(l, v) }

// rowID is the id attribute of a task's row.
func rowID(id string) string { return "t-" + id }

// ended is how many tasks of the last minute ended well, and how many ended.
func (r Rates) ended() (well, all float64) {
	well = total(r.SucceededSeries)
	return well, well + total(r.FailedSeries)
}

// fresh reports whether nothing at all has been seen.
func (v Overview) fresh() bool { return v.Counts.Tasks == 0 && v.Counts.Evicted == 0 }

// check is a line of the checklist of a fresh installation.
type check struct {
	Done    bool
	Title   string
	Detail  string
	Command string // to copy; empty if there is none
}

func (v Overview) checks() []check {
	return []check{
		{
			Done:   v.Ingest.Broker.Connected,
			Title:  "The broker is reachable",
			Detail: v.Ingest.Broker.URL,
		},
		{
			Done:    len(v.Workers) > 0,
			Title:   "Workers send events",
			Detail:  "Start workers with -E, or set worker_send_task_events = True. Heartbeats alone show the worker, not its tasks.",
			Command: "celery -A proj worker -E",
		},
		{
			Done:    v.sentSeen(),
			Title:   "Clients send task-sent",
			Detail:  "Optional: shows waiting tasks, queues and waiting times.",
			Command: "task_send_sent_event = True",
		},
	}
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

// summary sums up what could not be used.
func (i Ingest) summary() (title, rest string) {
	var lost, odd uint64
	for _, r := range i.Rejected {
		if r.Lost {
			lost += r.Count
		} else {
			odd += r.Count
		}
	}
	if lost > 0 {
		return plural(lost, "event", "events") + " rejected.", "All others were applied."
	}
	return plural(odd, "event was", "events were") + " partly applied.", "Only what is listed here was lost."
}
