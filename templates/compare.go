package templates

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/difference"
	"github.com/umbelhq/umbel/state"
)

// Comparison is the content of the page of two tasks side by side.
type Comparison struct {
	First, Second ComparedTask
	With          string // id of the second, empty if there is none to compare with
	Missing       bool   // the second is not retained
	Similar       Similar
	Args, Kwargs  *difference.Comparison // nil if one of them is not known
}

// ComparedTask is one side.
type ComparedTask struct {
	Task   state.Task
	Waited *state.Elapsed // bounds of how long it waited, nil if there are none
}

// Page draws the whole page.
func (v Comparison) Page(l Layout) templ.Component { return compare(l, v) }

// comparedField is a line of the comparison.
type comparedField struct {
	Label         string
	First, Second templ.Component
	Same          bool
	Note          string // on the difference
}

// fields are what two tasks have, but for their arguments.
func (v Comparison) fields(u URLs) (differing, equal []comparedField) {
	a, b := v.First.Task, v.Second.Task
	list := []comparedField{
		comparedBy("Name", a, b, func(t state.Task) templ.Component { return taskName(t.Name) }),
		comparedBy("State", a, b, func(t state.Task) templ.Component { return stateMark(u, t.State) }),
		comparedBy("Exception", a, b, func(t state.Task) templ.Component { return comparedText(t.Exception, "None") }),
		comparedBy("Worker", a, b, func(t state.Task) templ.Component { return workerLink(u, t.Worker) }),
		comparedBy("Process", a, b, comparedPID),
		comparedBy("Queue", a, b, func(t state.Task) templ.Component { return text(t.Queue, "No task-sent event") }),
		comparedBy("Attempts", a, b, tries),
		v.waited(),
		comparedTime("Ran", ran(a), ran(b), "Not finished, or the start was not seen"),
		comparedBy("Result", a, b, func(t state.Task) templ.Component { return comparedText(t.Result, "None") }),
		comparedBy("Client", a, b, func(t state.Task) templ.Component { return text(t.Client, "No task-sent event") }),
		comparedBy("Exchange", a, b, func(t state.Task) templ.Component { return text(t.Exchange, "The default one, or no task-sent event") }),
		comparedBy("Routing key", a, b, func(t state.Task) templ.Component { return text(t.RoutingKey, "No task-sent event") }),
		comparedBy("ETA", a, b, func(t state.Task) templ.Component { return isoMoment(t.ETA, "None, or not known") }),
		comparedBy("Expires", a, b, func(t state.Task) templ.Component { return isoMoment(t.Expires, "Never, or not known") }),
		comparedBy("Sent", a, b, func(t state.Task) templ.Component { return moment(t.SentAt, "No task-sent event") }),
		comparedBy("Started", a, b, func(t state.Task) templ.Component { return moment(t.StartedAt, "No task-started event") }),
	}
	for _, f := range list {
		if f.Same {
			equal = append(equal, f)
		} else {
			differing = append(differing, f)
		}
	}
	return differing, equal
}

// comparedBy is a line of what is drawn of both tasks: they are equal if it is.
func comparedBy(label string, a, b state.Task, draw func(state.Task) templ.Component) comparedField {
	f := comparedField{Label: label, First: draw(a), Second: draw(b)}
	f.Same = drawn(f.First) == drawn(f.Second)
	return f
}

// drawn is the HTML of a component.
func drawn(c templ.Component) string {
	var b strings.Builder
	if err := c.Render(context.Background(), &b); err != nil {
		return err.Error()
	}
	return b.String()
}

// comparedPID is the process of the newest attempt.
func comparedPID(t state.Task) templ.Component {
	if n := len(t.Executions); n > 0 && t.Executions[n-1].PID != 0 {
		return comparedWords("pid " + number(t.Executions[n-1].PID))
	}
	return unknown("Not known")
}

// waited compares how long both waited. They are equal if no difference of more than a tenth is shown.
func (v Comparison) waited() comparedField {
	f := comparedTime("Waited", v.First.Task.WaitSeconds, v.Second.Task.WaitSeconds, "Not known")
	f.First, f.Second = waitTime(v.First.Task, v.First.Waited), waitTime(v.Second.Task, v.Second.Waited)
	return f
}

// comparedTime compares two spans of time. Those that differ by less than a tenth are taken as equal.
func comparedTime(label string, a, b *float64, why string) comparedField {
	f := comparedField{Label: label, First: took(a, why), Second: took(b, why)}
	if a == nil || b == nil {
		f.Same = a == b
		return f
	}
	low, high := min(*a, *b), max(*a, *b)
	f.Same = high-low <= high/10 || high < .001
	if times := high / max(low, .001); !f.Same && times >= 2 {
		f.Note = decimal(times) + " times as long"
		if *a > *b {
			f.Note = "this one " + f.Note
		} else {
			f.Note = "the other " + f.Note
		}
	}
	return f
}

// lane is one task on the common axis, from its first moment.
type lane struct {
	Spans []span
	State state.State
	Took  *float64 // s from its first moment to its end, nil if it has not ended
}

// lanes place both tasks on one axis as if they had begun at the same time. length is what the axis spans, µs.
func (v Comparison) lanes() (both [2]lane, length int64) {
	tasks := [2]state.Task{v.First.Task, v.Second.Task}
	var first [2]int64
	for i := range tasks {
		x := axisOf(tasks[i])
		if first[i] = x.first; len(tasks[i].Executions) > 0 {
			length = max(length, x.length)
		}
	}
	for i, t := range tasks {
		both[i].State = t.State
		if len(t.Executions) == 0 {
			continue
		}
		x := axis{first: first[i], length: max(length, 1)}
		for _, r := range runsOn(t, x) {
			both[i].Spans = append(both[i].Spans, r.Spans...)
			if r.EndedAt != 0 {
				both[i].Took = seconds(r.EndedAt - first[i])
			}
		}
	}
	return both, length
}

// phases say in words what lanes show.
func phases(l lane) string {
	if l.Took == nil || math.IsNaN(*l.Took) {
		return "not ended"
	}
	return duration(*l.Took) + " in all"
}

// differenceWords count what differs between arguments.
func differenceWords(c *difference.Comparison) string {
	switch {
	case !c.Differs():
		return "equal"
	case !c.ByStructure:
		return "compared word by word, since one of them cannot be read as values"
	default:
		return plural(len(c.Rows), "difference", "differences")
	}
}

// equalWords count what is folded.
func equalWords(n int) string { return plural(n, "equal value", "equal values") }

// otherName is how the second task is called.
func (v Comparison) otherName() string {
	return cmp.Or(stateWord(v.Second.Task.State), "Other") + " " + shortID(v.Second.Task.ID)
}
