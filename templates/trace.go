package templates

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/trace"
)

// Trace is a file that is shown in place of a cluster. Its end is the time of all its pages.
type Trace struct {
	trace.Header

	End time.Time
	Cut bool // it ends before its last line
}

func (t *Trace) more() string {
	text := "As of " + exactTime(micros(t.End)) + " UTC"
	if t.Cut {
		text = "Cut off at " + exactTime(micros(t.End)) + " UTC: what was received later is missing"
	}
	text += ". " + plural(t.Tasks, "task", "tasks") + " of " + t.Cluster
	if !t.Payload {
		text += ", without arguments, results and the messages of exceptions"
	}
	sentences := []string{text + ". "}
	for _, d := range t.Doubts {
		sentences = append(sentences, "Approximate: "+d+". ")
	}
	return strings.Join(sentences, "")
}
