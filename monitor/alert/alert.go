// Package alert judges rules over a log of records, each of which holds what rules can ask about one interval of time. Judging
// is a pure fold: what a rule would have done in the past is computed by the same function as what it does now.
package alert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state/query"
)

// Kind is what a rule looks for.
type Kind string

// The kinds of rules.
const (
	Threshold      Kind = "threshold"       // a measure is above or below a limit
	DeafWorker     Kind = "deaf_worker"     // a worker sends heartbeats and runs nothing, tasks wait in its queues, and it receives none
	OverdueRun     Kind = "overdue_run"     // a task runs longer than others of its name did
	SilentSchedule Kind = "silent_schedule" // a task that one client sent at regular intervals is not sent anymore
	StuckQueue     Kind = "stuck_queue"     // tasks wait in a queue and nothing is taken from it
	ClockOffset    Kind = "clock_offset"    // a worker's wall clock is surely off
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Threshold, DeafWorker, OverdueRun, SilentSchedule, StuckQueue, ClockOffset}
}

// Measure is what a rule of kind Threshold compares with its limit.
type Measure string

// The measures. Those of waits and runs are percentiles in seconds.
const (
	Received     Measure = "received"
	Succeeded    Measure = "succeeded"
	Failed       Measure = "failed"
	Retried      Measure = "retried"
	FailureShare Measure = "failure_share" // percent of the runs that ended
	WaitP50      Measure = "wait_p50"
	WaitP95      Measure = "wait_p95"
	RunP50       Measure = "run_p50"
	RunP95       Measure = "run_p95"
	RunP99       Measure = "run_p99"
	Depth        Measure = "depth" // messages that wait in queues
	Tasks        Measure = "tasks" // tasks that match the query
)

// Measures returns all measures.
func Measures() []Measure {
	return []Measure{Failed, FailureShare, Retried, Received, Succeeded, WaitP50, WaitP95, RunP50, RunP95, RunP99, Depth, Tasks}
}

// Per is what a rule of kind Threshold is judged for separately.
type Per string

// What a rule is judged per; All is for all that it selects together.
const (
	All       Per = ""
	PerName   Per = "name"
	PerWorker Per = "worker"
	PerQueue  Per = "queue"
)

// Bounds of a rule.
const (
	MaxWindow = time.Hour
	MaxFor    = 24 * time.Hour
	maxQuery  = 2_048 // bytes
)

// Rule says when to fire. Durations are in whole seconds.
type Rule struct { //nolint:recvcheck // only checkQuery changes it
	Kind Kind `json:"kind"`
	// Query selects what is judged. It may ask for names, workers and queues only, but where Measure is Tasks.
	Query   string  `json:"query,omitempty"`
	Measure Measure `json:"measure,omitempty"` // of Threshold, as what follows up to Least
	Below   bool    `json:"below,omitempty"`   // fire below Limit, not above
	Limit   float64 `json:"limit,omitempty"`   // of StuckQueue: the messages that may wait; of ClockOffset: seconds, 1 if zero
	Window  int64   `json:"window_seconds,omitempty"`
	Per     Per     `json:"per,omitempty"`
	Least   int64   `json:"least,omitempty"`       // runs that there must be for shares and percentiles, and to know what is usual
	For     int64   `json:"for_seconds,omitempty"` // how long it must hold
	Factor  float64 `json:"factor,omitempty"`      // of OverdueRun: times the 99th percentile; of SilentSchedule: times the period
	parsed  query.Query
}

// Error is why a rule is wrong.
type Error struct {
	Field   string // query, limit, …; empty if it is the whole rule
	Message string // one sentence
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Message: fmt.Sprintf(format, args...)}
}

// Check returns the rule in its one spelling, with defaults for what is zero. The error is an *Error.
func (r Rule) Check() (Rule, error) {
	if !slices.Contains(Kinds(), r.Kind) {
		return r, wrong("kind", "A rule is of kind %s, not %q.", list(Kinds()), truncate.Text(string(r.Kind), 50))
	}
	if err := r.checkQuery(); err != nil {
		return r, err
	}
	if err := r.checkNumbers(); err != nil {
		return r, err
	}
	clean := Rule{Kind: r.Kind, Query: r.Query, For: r.For, parsed: r.parsed}
	switch r.Kind {
	case Threshold:
		clean.Measure, clean.Below, clean.Limit, clean.Per = r.Measure, r.Below, r.Limit, r.Per
		if r.windowed() {
			clean.Window = cmp.Or(r.Window, 300)
		}
		if r.quantile() > 0 || r.Measure == FailureShare {
			clean.Least = cmp.Or(r.Least, 10)
		}
	case OverdueRun:
		clean.For, clean.Factor, clean.Least = 0, cmp.Or(r.Factor, 3), cmp.Or(r.Least, 20)
	case SilentSchedule:
		clean.For, clean.Factor = 0, cmp.Or(r.Factor, 2)
	case StuckQueue:
		clean.Limit, clean.For = r.Limit, cmp.Or(r.For, 300)
	case DeafWorker:
		clean.For = cmp.Or(r.For, 300)
	case ClockOffset:
		clean.Limit, clean.For = cmp.Or(r.Limit, 1), r.For
	}
	return clean, nil
}

func (r *Rule) checkQuery() error {
	if len(r.Query) > maxQuery {
		return wrong("query", "The query is longer than %d bytes.", maxQuery)
	}
	q, err := query.Parse(r.Query)
	if err != nil {
		return wrong("query", "%s", err)
	}
	r.Query, r.parsed = q.String(), q
	if r.Kind == Threshold && !slices.Contains(Measures(), r.Measure) {
		return wrong("measure", "The measure is %s, not %q.", list(Measures()), truncate.Text(string(r.Measure), 50))
	}
	if (r.Kind != Threshold || r.Measure != Tasks) && !rollup.Countable(q) {
		return wrong("query", "Only conditions on name, worker and queue can be judged by this rule; others need the number of tasks that match.")
	}
	return nil
}

func (r Rule) checkNumbers() error {
	whole := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 && v <= 1e12 }
	switch {
	case !whole(r.Limit):
		return wrong("limit", "The limit is not a number from 0 on.")
	case r.Measure == FailureShare && r.Limit > 100:
		return wrong("limit", "A share is at most 100 percent.")
	case r.Window < 0 || r.Window > int64(MaxWindow/time.Second):
		return wrong("window_seconds", "The window is not between 1 second and an hour.")
	case r.For < 0 || r.For > int64(MaxFor/time.Second):
		return wrong("for_seconds", "The duration is not between 0 and 24 hours.")
	case r.Least < 0 || r.Least > 1_000_000:
		return wrong("least", "The least number of runs is not between 1 and 1,000,000.")
	case r.Factor != 0 && !(r.Factor >= 1 && r.Factor <= 1_000):
		return wrong("factor", "The factor is not between 1 and 1,000.")
	case !slices.Contains([]Per{All, PerName, PerWorker, PerQueue}, r.Per):
		return wrong("per", "A rule is judged per name, worker or queue, not per %q.", truncate.Text(string(r.Per), 50))
	case r.Kind != Threshold:
		return nil
	case r.Below && r.Per != All:
		return wrong("per", "What is not there has no name: a rule that fires below a limit is judged for all together.")
	case r.Per != All && r.Measure == Tasks, r.Per != All && r.Per != PerQueue && r.Measure == Depth:
		return wrong("per", "This measure cannot be judged per %s.", r.Per)
	}
	return nil
}

// windowed reports whether the measure is of the events within a window.
func (r Rule) windowed() bool {
	return r.Kind == Threshold && r.Measure != Depth && r.Measure != Tasks
}

// quantile is the percentile that the rule measures, 0 if none.
func (r Rule) quantile() float64 {
	switch r.Measure {
	case WaitP50, RunP50:
		return .5
	case WaitP95, RunP95:
		return .95
	case RunP99:
		return .99
	default:
		return 0
	}
}

// list is the words of a list, separated by commas.
func list[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// number writes a value without needless digits.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
