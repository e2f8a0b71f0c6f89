package templates

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
)

// Queues is the content of the page that lists queues.
type Queues struct {
	Queues []Queue
	All    bool            // those that are none of tasks, too
	Hidden int             // how many are none of tasks
	Poll   queues.Snapshot // without Queues
	Then   bool            // they are those of an instant
	Sent   map[string]int  // tasks that had been sent and not received then, by queue
	Sorts  map[string]Sort // by key of query.QueuesSortKeys
	Others string          // address of the list with the hidden ones, or without

	Counted  bool          // how many tasks ended is known
	Observed bool          // Umbel ran at some time of the span
	Step     time.Duration // of what ended
	Span     *ChartSpan    // in which tasks ended, nil for the last hour
	Carry    string        // query of addresses that leads to the same span, empty for the last hour
}

// Queue is a queue with the chart of its depths.
type Queue struct {
	queues.Queue
	Depths []Depth         // of the last hour
	Ended  []tasktype.Step // its tasks that ended, nil if none is known
	Then   bool            // it is that of an instant
}

// Depth is how long a queue was at a moment of the last hour, which is 3,600 seconds long.
type Depth struct {
	Second int
	Ready  int64
}

// Page draws the whole page.
func (v Queues) Page(l Layout) templ.Component { return queuesPage(l, v) }

func (q Queue) rowID() string { return "q-" + q.Name }

// summary sums up the queues.
func (v Queues) summary() string {
	if len(v.Queues) == 0 {
		return ""
	}
	words := plural(len(v.Queues), "queue", "queues")
	waiting, known := int64(0), 0
	for _, q := range v.Queues {
		if q.Ready != nil {
			waiting += *q.Ready
			known++
		}
	}
	switch {
	case known == 0:
		return words
	case known < len(v.Queues):
		return words + ", " + plural(waiting, "message waiting", "messages waiting") + " in " + number(known) + " of them"
	default:
		return words + ", " + plural(waiting, "message waiting", "messages waiting")
	}
}

// warned are the queues with warnings.
func (v Queues) warned() []Queue {
	var list []Queue
	for _, q := range v.Queues {
		if len(q.Warnings) > 0 {
			list = append(list, q)
		}
	}
	return list
}

// QueuePage is the content of the page of one queue.
type QueuePage struct {
	Queue   Queue
	Poll    queues.Snapshot // without Queues
	Waiting command.WaitingMessages
	Tasks   []state.Task   // its newest
	Chart   Chart          // of its tasks
	Carry   string         // query of addresses that leads to the same span of time, empty for the last hour
	Marks   []deploys.Mark // of the hour before End, oldest first
	End     time.Time      // of its chart: the poll, or the instant
	// Sent is how many tasks had been sent and not received at an instant, and NotReceived the newest of them.
	Sent        int
	NotReceived []state.Task
}

// place is where a mark is in the chart of depths.
func (v QueuePage) place(m deploys.Mark) float64 { return 3600 - v.End.Sub(m.At).Seconds() }

// Page draws the whole page.
func (v QueuePage) Page(l Layout) templ.Component { return queuePage(l, v) }

// within says in which time tasks ended.
func (v Queues) within() string {
	if v.Span != nil {
		return "in this time"
	}
	return "in the last hour"
}

// endedWords say how many tasks of a queue ended.
func (q Queue) endedWords() string {
	succeeded, failed := typeTrend(q.Ended)
	return number(int64(total(succeeded) + total(failed)))
}

// failed is how many tasks of a queue failed.
func (q Queue) failed() int64 {
	_, failed := typeTrend(q.Ended)
	return int64(total(failed))
}

// failedWords say which share of the tasks of a queue failed.
func (q Queue) failedWords() string {
	succeeded, failed := typeTrend(q.Ended)
	all := total(succeeded) + total(failed)
	return percent(total(failed), all) + " of " + number(int64(all)) + " finished"
}

// anyEnded reports whether a task of the queue ended.
func (q Queue) anyEnded() bool {
	succeeded, failed := typeTrend(q.Ended)
	return total(succeeded)+total(failed) > 0
}

// depthBox is the viewBox of a chart of depths.
const depthBox = "0 0 3600 48"

// depthGap is how many seconds may lie between two looks before the line is broken.
const depthGap = 150

// depthTop is the value at the upper edge of a chart of depths.
func (q Queue) depthTop() float64 {
	top := 0.0
	for _, d := range q.Depths {
		top = max(top, float64(d.Ready))
	}
	return ceiling(top)
}

// depthLeast is how many seconds a stretch is wide at least: one poll can be seen.
const depthLeast = 40

// stretch is a part of the hour in which the queue was polled.
type stretch struct {
	from, to int
	depths   []Depth
}

// stretches splits depths where there was no poll.
func (q Queue) stretches() []stretch {
	var list []stretch
	for _, d := range q.Depths {
		if n := len(list); n == 0 || d.Second-list[n-1].to > depthGap {
			list = append(list, stretch{from: d.Second})
		}
		last := &list[len(list)-1]
		last.to, last.depths = d.Second, append(last.depths, d)
	}
	for i := range list {
		s := &list[i]
		s.from = max(min(s.from, s.to-depthLeast), 0)
		s.to = max(s.to, s.from+depthLeast)
	}
	return list
}

// depthLine draws depths as a line, with gaps where there was no poll.
func (q Queue) depthLine() string {
	var b strings.Builder
	top := q.depthTop()
	for _, s := range q.stretches() {
		y := func(d Depth) float64 { return barHeight - barHeight*float64(d.Ready)/top }
		fmt.Fprintf(&b, "M%d %.1f", s.from, y(s.depths[0]))
		for _, d := range s.depths {
			fmt.Fprintf(&b, "L%d %.1f", d.Second, y(d))
		}
		fmt.Fprintf(&b, "H%d", s.to)
	}
	return b.String()
}

// depthPath draws the area below the line.
func (q Queue) depthPath() string {
	var b strings.Builder
	top := q.depthTop()
	for _, s := range q.stretches() {
		fmt.Fprintf(&b, "M%d %dV%.1f", s.from, barHeight, barHeight-barHeight*float64(s.depths[0].Ready)/top)
		for _, d := range s.depths {
			fmt.Fprintf(&b, "L%d %.1f", d.Second, barHeight-barHeight*float64(d.Ready)/top)
		}
		fmt.Fprintf(&b, "H%dV%dz", s.to, barHeight)
	}
	return b.String()
}

// hour is the hour of the chart.
func (q Queue) hour() string {
	if q.Then {
		return "the hour before"
	}
	return "the last hour"
}

// looked labels when its depth was read.
func (q Queue) looked() string {
	if q.Then {
		return "Recorded"
	}
	return "Last poll"
}

// unheard is for how many seconds of the hour the queue was not polled.
func (q Queue) unheard() int {
	left := 3600
	for _, s := range q.stretches() {
		left -= s.to - s.from
	}
	return max(left, 0)
}

// depthWords describe the chart.
func (q Queue) depthWords() string {
	if len(q.Depths) == 0 {
		return q.why("Not polled yet")
	}
	low, high := q.Depths[0].Ready, q.Depths[0].Ready
	for _, d := range q.Depths {
		low, high = min(low, d.Ready), max(high, d.Ready)
	}
	words := "Messages waiting over " + q.hour() + ": from " + number(low) + " to " + number(high) + ", last " +
		number(q.Depths[len(q.Depths)-1].Ready)
	if n := q.unheard(); n > depthGap {
		words += "; not polled for " + duration(float64(n)) + " of it"
	}
	return words
}

// ageWords say how certain the age of the next message is.
func (q Queue) ageWords() string {
	if q.AgeAtLeast == nil || q.AgeAtMost == nil {
		return "Estimated"
	}
	return "Estimated: from " + duration(q.AgeAtLeast.Seconds()) + " to " + duration(q.AgeAtMost.Seconds())
}

// drain is the time to drain in seconds, nil if it is not known.
func (q Queue) drain() *float64 {
	if q.DrainTime == nil {
		return nil
	}
	return new(q.DrainTime.Seconds())
}

// why says why something of a queue is not known.
func (q Queue) why(otherwise string) string {
	switch {
	case q.Then:
		return "Not kept of this time"
	case q.Missing:
		return "No queue of this name on the broker"
	case q.Error != "":
		return "Could not be read: " + q.Error
	}
	return otherwise
}

// noDrain says why no time to drain is shown.
func (q Queue) noDrain() string {
	switch {
	case q.Ready == nil || q.InRate == nil || q.OutRate == nil:
		return q.why("Rates unknown")
	case *q.Ready == 0:
		return "No messages waiting"
	}
	return "Not shrinking at current rates"
}

// QueuePath is the address of a queue's page, below the prefix.
func QueuePath(name string) string { return "/queues/" + url.PathEscape(name) }

func (u URLs) queue(name string) templ.SafeURL { return u.path(QueuePath(name)) }

func (u URLs) queueJSON(name string) templ.SafeURL {
	return u.path("/api/v1/queues/" + url.PathEscape(name))
}

func (u URLs) purge(queue string) templ.SafeURL {
	return u.path("/act/purge?" + url.Values{"queue": {queue}}.Encode())
}

// actOnQueue links to the form that lets workers start or stop consuming from a queue.
func (u URLs) actOnQueue(method, queue string, workers ...string) templ.SafeURL {
	v := url.Values{"method": {method}, ArgumentPrefix + "queue": {queue}}
	for _, w := range workers {
		v.Add("worker", w)
	}
	return u.path("/act/worker?" + v.Encode())
}

func (u URLs) tasksOf(queue string) templ.SafeURL {
	return u.tasksWhere("q", "queue:"+strconv.Quote(queue))
}
