package alert

import (
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// sums are the events of a subject.
type sums struct {
	received, succeeded, failed, retried int64
	took                                 rollup.Histogram // waits or runs, whichever the rule measures
}

func (s *sums) add(o *sums, sign int64) {
	s.received += sign * o.received
	s.succeeded += sign * o.succeeded
	s.failed += sign * o.failed
	s.retried += sign * o.retried
}

// slot is what the window holds of one record.
type slot struct {
	at, from int64
	subjects map[string]*sums
}

// threshold judges rules of kind Threshold.
type threshold struct {
	*selection

	rule   Rule
	window []slot           // oldest first
	totals map[string]*sums // of the window, without durations
}

func newThreshold(r Rule, s *selection) *threshold {
	return &threshold{selection: s, rule: r, totals: map[string]*sums{}}
}

func (t *threshold) judge(r *Record) (map[string]seen, bool) {
	switch t.rule.Measure {
	case Tasks:
		return t.tasks(r)
	case Depth:
		return t.depth(r)
	default:
		return t.events(r)
	}
}

func (t *threshold) tasks(r *Record) (map[string]seen, bool) {
	for _, c := range r.Counts {
		if c.Query == t.rule.Query {
			return t.compare(map[string]float64{"": float64(c.N)}, r.At), true
		}
	}
	return nil, false
}

func (t *threshold) depth(r *Record) (map[string]seen, bool) {
	if !r.QueuesKnown {
		return nil, false
	}
	values := map[string]float64{}
	if t.rule.Per == All {
		values[""] = 0
	}
	for _, q := range r.Queues {
		if !t.match("", "", q.Name) {
			continue
		}
		if t.rule.Per == All {
			values[""] += float64(q.Ready)
		} else {
			values[q.Name] = float64(q.Ready)
		}
	}
	return t.compare(values, r.At), true
}

// events judges what is counted of the events within the window.
func (t *threshold) events(r *Record) (map[string]seen, bool) {
	now := slot{at: r.At, from: r.From, subjects: map[string]*sums{}}
	for i := range r.Cells {
		c := &r.Cells[i]
		if t.match(c.Name, c.Worker, c.Queue) {
			t.count(now.subjects, c)
		}
	}
	t.window = append(t.window, now)
	for subject, s := range now.subjects {
		if t.totals[subject] == nil {
			t.totals[subject] = &sums{}
		}
		t.totals[subject].add(s, 1)
	}
	for t.window[0].at <= r.At-t.rule.Window*second {
		for subject, s := range t.window[0].subjects {
			t.totals[subject].add(s, -1)
			if total := t.totals[subject]; total.received|total.succeeded|total.failed|total.retried == 0 && t.rule.quantile() == 0 {
				delete(t.totals, subject)
			}
		}
		t.window = t.window[1:]
	}
	values := map[string]float64{}
	if t.rule.Per == All && t.rule.quantile() == 0 && t.rule.Measure != FailureShare {
		values[""] = 0
	}
	for subject, s := range t.totals {
		if v, ok := t.value(subject, s); ok {
			values[subject] = v
		}
	}
	// A rule that fires below a limit would, before there is a window of records.
	known := !t.rule.Below || r.Connected && t.window[0].from <= r.At-t.rule.Window*second+gap
	return t.compare(values, r.At), known
}

// count adds the counts of a cell to its subject.
func (t *threshold) count(to map[string]*sums, c *history.Rollup) {
	subject := ""
	switch t.rule.Per {
	case PerName:
		subject = c.Name
	case PerWorker:
		subject = c.Worker
	case PerQueue:
		subject = c.Queue
	case All:
	}
	if subject == "" && t.rule.Per != All || subject == rollup.Other {
		return
	}
	s := to[subject]
	if s == nil {
		s = &sums{}
		to[subject] = s
	}
	s.add(&sums{received: c.Received, succeeded: c.Succeeded, failed: c.Failed, retried: c.Retried}, 1)
	encoded := c.Run
	if t.rule.Measure == WaitP50 || t.rule.Measure == WaitP95 {
		encoded = c.Wait
	}
	if t.rule.quantile() > 0 && len(encoded) > 0 {
		if h, err := rollup.ParseHistogram(encoded); err == nil {
			s.took.Merge(h)
		}
	}
}

// value returns what the rule measures of a subject, false if there is too little to tell.
func (t *threshold) value(subject string, s *sums) (float64, bool) {
	switch t.rule.Measure {
	case Received:
		return float64(s.received), true
	case Succeeded:
		return float64(s.succeeded), true
	case Failed:
		return float64(s.failed), true
	case Retried:
		return float64(s.retried), true
	case FailureShare:
		n := s.succeeded + s.failed
		return 100 * float64(s.failed) / float64(max(n, 1)), n >= t.rule.Least
	default:
	}
	var all rollup.Histogram
	for _, w := range t.window {
		if s := w.subjects[subject]; s != nil {
			all.Merge(s.took)
		}
	}
	return float64(all.Quantile(t.rule.quantile())) / 1e6, all.Count() >= max(t.rule.Least, 1)
}

// compare returns the subjects beyond the limit.
func (t *threshold) compare(values map[string]float64, at int64) map[string]seen {
	holds := map[string]seen{}
	for subject, v := range values {
		if v > t.rule.Limit && !t.rule.Below || v < t.rule.Limit && t.rule.Below {
			holds[subject] = seen{v, t.evidence(subject, v, at)}
		}
	}
	return holds
}

func (t *threshold) evidence(subject string, v float64, at int64) Evidence {
	e := Evidence{Text: t.sentence(subject, v)}
	if t.rule.windowed() {
		e.From = time.UnixMicro(at - t.rule.Window*second).UTC()
	}
	q := t.where
	if f, ok := t.rule.subjectField(); ok && subject != "" {
		q = q.And(query.New(query.Equal(f, subject)))
		if f == query.Worker {
			e.Worker = subject
		}
		if f == query.Queue {
			e.Queue = subject
		}
	}
	for m, s := range map[Measure]state.State{Failed: state.Failure, FailureShare: state.Failure, Retried: state.Retry, Succeeded: state.Success, RunP50: state.Success, RunP95: state.Success, RunP99: state.Success} {
		if m == t.rule.Measure && m != Retried { // a task that was retried has another state by now
			q = q.And(query.New(query.Equal(query.State, string(s))))
		}
	}
	e.Query = q.String()
	return e
}

// sentence says what a rule saw.
func (t *threshold) sentence(subject string, v float64) string {
	var b strings.Builder
	b.WriteString(t.rule.Amount(v))
	if subject != "" {
		fmt.Fprintf(&b, " of %s %s", t.rule.Per, subject)
	}
	if t.rule.Window > 0 {
		b.WriteString(" in " + Duration(t.rule.Window))
	}
	fmt.Fprintf(&b, ", %s %s.", t.rule.side(), t.rule.unit(t.rule.Limit))
	return b.String()
}
