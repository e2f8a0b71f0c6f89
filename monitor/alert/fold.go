package alert

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	second = int64(time.Second / time.Microsecond)
	// gap is the time without records after which what held before is not known to have held all along.
	gap = 90 * second
	// MaxSubjects bounds what one rule may fire for at once.
	MaxSubjects = 50
)

// Lookback is how far back records may matter for what a rule says now, whatever happened before.
const Lookback = 3 * 24 * time.Hour

// Firing is a time during which a rule fired for a subject.
type Firing struct {
	Subject  string    `json:"subject"` // name, worker, queue or task id; empty if the rule is judged for all together
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"` // zero while it fires
	Value    float64   `json:"value"`
	Evidence Evidence  `json:"evidence"`
}

// Evidence is what a rule saw when it fired.
type Evidence struct {
	Text string `json:"text"` // one sentence
	// Query and the times select the tasks that it is about.
	Query  string    `json:"query,omitempty"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	TaskID string    `json:"task_id,omitempty"`
	Worker string    `json:"worker,omitempty"`
	Queue  string    `json:"queue,omitempty"`
}

// seen is a subject for which the condition of a rule holds.
type seen struct {
	value    float64
	evidence Evidence
}

// condition is how long the condition holds for a subject.
type condition struct {
	since  int64 // µs, end of the first record in which it held
	firing *Firing
}

// judge finds the subjects for which the condition of a rule holds. known is false if a record does not tell.
type judge interface {
	judge(r *Record) (holds map[string]seen, known bool)
}

// Fold judges one rule over records, oldest first. What it says depends on the records of the last Lookback alone, but for
// when firings that are open began.
type Fold struct {
	rule   Rule
	judge  judge
	last   int64 // end of the last record
	tracks map[string]*condition
}

// NewFold returns a Fold that has seen no record. The error is that of Rule.Check.
func NewFold(r Rule) (*Fold, error) {
	r, err := r.Check()
	if err != nil {
		return nil, err
	}
	f := &Fold{rule: r, tracks: map[string]*condition{}}
	s := newSelection(&r)
	switch r.Kind {
	case DeafWorker:
		f.judge = &deafWorkers{rule: r, selection: s}
	case OverdueRun:
		f.judge = &overdueRuns{rule: r, selection: s, names: map[string]*usual{}}
	case SilentSchedule:
		f.judge = &silentSchedules{rule: r, selection: s, names: map[string]*schedule{}}
	case StuckQueue:
		f.judge = &stuckQueues{rule: r, selection: s, before: map[string]int64{}}
	case ClockOffset:
		f.judge = &clockOffsets{rule: r, selection: s}
	case Threshold:
		f.judge = newThreshold(r, s)
	}
	return f, nil
}

// Step judges the next record, and returns the firings that began with it and those that ended, by subject. Records that
// are not after the last are ignored.
func (f *Fold) Step(r *Record) (began, ended []Firing) {
	if r.At <= f.last {
		return nil, nil
	}
	missed := f.last > 0 && r.From-f.last > gap
	f.last = r.At
	holds, known := f.judge.judge(r)
	if !known {
		return nil, nil
	}
	for _, subject := range slices.Sorted(maps.Keys(f.tracks)) {
		c := f.tracks[subject]
		_, still := holds[subject]
		if !still && c.firing != nil {
			done := *c.firing
			done.End = time.UnixMicro(r.At).UTC()
			ended = append(ended, done)
		}
		if !still || missed && c.firing == nil {
			delete(f.tracks, subject)
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(holds)) {
		if len(f.tracks) >= MaxSubjects && f.tracks[subject] == nil {
			continue
		}
		if b := f.hold(r, subject, holds[subject]); b != nil {
			began = append(began, *b)
		}
	}
	return began, ended
}

// hold notes that the condition holds for a subject, and returns the firing that began by that.
func (f *Fold) hold(r *Record, subject string, s seen) *Firing {
	c := f.tracks[subject]
	if c == nil {
		c = &condition{since: r.At}
		f.tracks[subject] = c
	}
	if c.firing != nil || r.At-c.since < f.rule.For*second {
		return nil
	}
	s.evidence.To = time.UnixMicro(r.At).UTC()
	if s.evidence.From.IsZero() {
		s.evidence.From = time.UnixMicro(min(c.since, r.From)).UTC()
	}
	c.firing = &Firing{Subject: subject, Start: time.UnixMicro(r.At).UTC(), Value: s.value, Evidence: s.evidence}
	return c.firing
}

// Open returns the firings that have not ended, by subject.
func (f *Fold) Open() []Firing {
	var open []Firing
	for _, c := range f.tracks {
		if c.firing != nil {
			open = append(open, *c.firing)
		}
	}
	slices.SortFunc(open, func(a, b Firing) int { return cmp.Compare(a.Subject, b.Subject) })
	return open
}

// Pending returns how many subjects meet the condition, but not yet for as long as the rule asks.
func (f *Fold) Pending() int { return len(f.tracks) - len(f.Open()) }

// Backtest returns the firings of a rule over a log that had not ended by from, oldest first: those that live judging
// of the same log has recorded. The log begins Lookback before from, or with the first record that there is. read calls a
// function with every record of the log, oldest first.
func Backtest(r Rule, from time.Time, read func(step func(*Record) error) error) ([]Firing, *Fold, error) {
	f, err := NewFold(r)
	if err != nil {
		return nil, nil, err
	}
	var all []Firing
	err = read(func(rec *Record) error {
		_, ended := f.Step(rec)
		for _, e := range ended {
			if !e.End.Before(from) {
				all = append(all, e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	all = append(all, f.Open()...)
	slices.SortStableFunc(all, func(a, b Firing) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Subject, b.Subject))
	})
	return all, f, nil
}

// selection says which names, workers and queues the query of a rule selects.
type selection struct {
	where query.Query
	known map[[3]string]bool
}

// maxMatches bounds what a selection remembers.
const maxMatches = 20_000

func newSelection(r *Rule) *selection {
	return &selection{where: r.parsed, known: map[[3]string]bool{}}
}

func (s *selection) match(name, worker, queue string) bool {
	if s.where.All() {
		return true
	}
	k := [3]string{name, worker, queue}
	yes, ok := s.known[k]
	if !ok {
		if len(s.known) >= maxMatches {
			clear(s.known)
		}
		yes = s.where.Match(&state.Task{Name: optional(name), Worker: optional(worker), Queue: optional(queue)}, time.Time{})
		s.known[k] = yes
	}
	return yes
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// subjectField is the field that names the subjects of a rule, false if it has one subject.
func (r Rule) subjectField() (query.Field, bool) {
	switch r.Per {
	case PerName:
		return query.Name, true
	case PerWorker:
		return query.Worker, true
	case PerQueue:
		return query.Queue, true
	default:
		return 0, false
	}
}
