package alert

import (
	"fmt"
	"strings"
	"time"
)

// Amount writes a value of the measure with what it counts: 12 failures; 95th percentile of run time 3.2 s.
func (r Rule) Amount(v float64) string {
	switch r.Measure {
	case FailureShare, WaitP50, WaitP95, RunP50, RunP95, RunP99:
		return r.Measure.Label() + " " + r.unit(v)
	case Depth:
		return number(v) + " waiting " + plural(v, "message", "messages")
	case Tasks:
		return number(v) + " " + plural(v, "task that matches", "tasks that match")
	case Failed:
		return number(v) + " " + plural(v, "failure", "failures")
	case Retried:
		return number(v) + " " + plural(v, "retry", "retries")
	case Received, Succeeded:
		return number(v) + " " + plural(v, "task", "tasks") + " " + string(r.Measure)
	}
	return number(v)
}

// Label names a measure.
func (m Measure) Label() string {
	return map[Measure]string{
		Received: "Tasks received", Succeeded: "Tasks succeeded", Failed: "Failures", Retried: "Retries", FailureShare: "Share of failures",
		WaitP50: "Median wait", WaitP95: "95th percentile of wait", RunP50: "Median run time", RunP95: "95th percentile of run time",
		RunP99: "99th percentile of run time", Depth: "Waiting messages", Tasks: "Tasks that match the query",
	}[m]
}

// Label names a kind of rule.
func (k Kind) Label() string {
	return map[Kind]string{
		Threshold: "Threshold", DeafWorker: "Deaf worker", OverdueRun: "Overdue run", SilentSchedule: "Silent schedule", StuckQueue: "Stuck queue",
		ClockOffset: "Clock offset",
	}[k]
}

// Doc says in a sentence what rules of a kind look for.
func (k Kind) Doc() string {
	return map[Kind]string{
		Threshold:      "A measure is above or below a limit.",
		DeafWorker:     "A worker sends heartbeats and runs nothing, tasks wait in its queues, and it receives none.",
		OverdueRun:     "A task runs longer than a multiple of the 99th percentile of its name in the last 24 hours.",
		SilentSchedule: "A task that one client sent at regular intervals, such as Celery beat, is not sent anymore.",
		StuckQueue:     "Messages wait in a queue, and nothing is taken from it.",
		ClockOffset:    "The wall clock of a worker is surely off: the bounds of its offset exclude a number of seconds either way.",
	}[k]
}

// Sentence says when a rule fires.
func (r Rule) Sentence() string {
	of := ""
	if r.Query != "" {
		of = " (" + r.Query + ")"
	}
	switch r.Kind {
	case DeafWorker:
		return "A worker" + of + " sends heartbeats and runs nothing, tasks wait in its queues, and it receives none for " + Duration(r.For) + "."
	case OverdueRun:
		return fmt.Sprintf("A task%s runs longer than %s times the 99th percentile of its name, known from %d runs or more.", of, number(r.Factor), r.Least)
	case SilentSchedule:
		return fmt.Sprintf("A task%s that one client sent at regular intervals has not been sent for %s times the interval.", of, number(r.Factor))
	case StuckQueue:
		return fmt.Sprintf("More than %s %s in a queue%s, and nothing is taken from it for %s.",
			number(r.Limit), plural(r.Limit, "message waits", "messages wait"), of, Duration(r.For))
	case ClockOffset:
		text := fmt.Sprintf("The wall clock of a worker%s is surely more than %s s ahead or behind", of, number(r.Limit))
		if r.For > 0 {
			text += " for " + Duration(r.For)
		}
		return text + "."
	case Threshold:
	}
	var b strings.Builder
	b.WriteString(r.Measure.Label() + of)
	if r.Per != All {
		b.WriteString(" per " + string(r.Per))
	}
	if r.Window > 0 {
		b.WriteString(" within " + Duration(r.Window))
	}
	fmt.Fprintf(&b, " %s %s", r.side(), r.unit(r.Limit))
	if r.For > 0 {
		b.WriteString(" for " + Duration(r.For))
	}
	if r.Least > 0 {
		fmt.Fprintf(&b, ", of %d runs or more", r.Least)
	}
	return b.String() + "."
}

func (r Rule) side() string {
	if r.Below {
		return "below"
	}
	return "above"
}

// unit writes a value with its unit.
func (r Rule) unit(v float64) string {
	switch {
	case r.Measure == FailureShare:
		return number(v) + " %"
	case r.quantile() > 0:
		return number(v) + " s"
	}
	return number(v)
}

func plural(v float64, one, many string) string {
	if v == 1 {
		return one
	}
	return many
}

// Duration writes seconds in words: 90 s, 5 min, 2 h.
func Duration(seconds int64) string {
	switch {
	case seconds >= 3600 && seconds%3600 == 0:
		return fmt.Sprintf("%d h", seconds/3600)
	case seconds >= 60 && seconds%60 == 0:
		return fmt.Sprintf("%d min", seconds/60)
	}
	return fmt.Sprintf("%d s", seconds)
}

// span writes microseconds to the second.
func span(micros int64) string {
	return (time.Duration(micros) * time.Microsecond).Round(time.Second).String()
}
