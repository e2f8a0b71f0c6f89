// Package tasktype reads what the counters say of each task name, a type of tasks: how many, how long they waited and ran,
// where, and whether that has changed since last week. Of single tasks it reads only the newest, to find what failures share.
package tasktype

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
)

// Bounds of a table.
const (
	MaxTypes = 10_000 // beyond, further names are counted as rollup.Other
	// NewestFailures is how many groups of failures, newest failure first, Rows gets.
	NewestFailures = 500
	maxLength      = 90 * 24 * time.Hour // of a span of time: its end is counted
	maxPlaces      = 100                 // workers, and queues, kept of a type; beyond, further ones are only counted
)

// Ranges returns the spans of time that tables may cover, shortest first.
func Ranges() []time.Duration {
	const day = 24 * time.Hour
	return []time.Duration{time.Hour, 6 * time.Hour, day, 7 * day, 30 * day}
}

// step is the length of the steps that a span of time is counted in, for which counters as old as its beginning are kept.
func step(length, age time.Duration) time.Duration {
	const day = 24 * time.Hour
	least := day
	switch {
	case length <= time.Hour:
		least = time.Minute
	case length <= 12*time.Hour:
		least = 10 * time.Minute
	case length <= 3*day:
		least = time.Hour
	}
	return kept(least, age)
}

// kept is the shortest span, but no shorter than least, of which counters as old are kept.
func kept(least, age time.Duration) time.Duration {
	spans := history.RollupSpans()
	for _, s := range spans {
		if s.Length >= least && age <= s.Retention {
			return s.Length
		}
	}
	return spans[len(spans)-1].Length
}

// Span is the time from From to To, as of Now. Of a Now that is past, Read is when it is looked at: then it may be that only
// counters of longer steps are kept.
type Span struct{ From, To, Now, Read time.Time }

// Table is what happened to the tasks of each name.
type Table struct {
	From, To time.Time     // From is the start of a step
	Step     time.Duration // of trends
	Observed time.Duration // how long of that a monitor was running; gaps within a step count as well
	Types    []Type        // by name
}

// Type counts the events of the tasks of one name.
type Type struct {
	Name                                 string // empty if unknown; rollup.Other for names that were counted together
	Received, Succeeded, Failed, Retried int64
	Wait, Run                            rollup.Histogram // Run of succeeded tasks
	Trend                                []Step
	Workers, Queues                      Places
	FailedAt                             int64 // start of the newest step with a failure, µs since 1970 UTC; 0 if there was none
}

// Step counts the ends of one step.
type Step struct {
	Observed          bool // a monitor was running
	Received          int64
	Succeeded, Failed int64
}

// Places are names of workers or queues, in order. More counts those beyond maxPlaces, each time that they were met.
type Places struct {
	Names []string
	More  bool
}

// Ended is how many tasks succeeded or failed.
func (t *Type) Ended() int64 { return t.Succeeded + t.Failed }

// FailureShare is the part of the ended tasks that failed, 0 to 1, and false if none ended.
func (t *Type) FailureShare() (float64, bool) {
	if t.Ended() == 0 {
		return 0, false
	}
	return float64(t.Failed) / float64(t.Ended()), true
}

// Read reads the table of a span of time, which is widened to whole steps, as of now. If names is not empty it has only these.
func Read(ctx context.Context, rollups history.RollupReader, s Span, names ...string) (Table, error) {
	b := newBuilder(s)
	return b.read(ctx, rollups, history.ByName, names)
}

// Start is when the table of the span begins: at the start of a step.
func (s Span) Start() time.Time {
	t := widened(s)
	return t.From
}

// age is how long ago the span began when it is read.
func (s Span) age() time.Duration {
	if s.Read.After(s.Now) {
		return s.Read.Sub(s.From)
	}
	return s.Now.Sub(s.From)
}

// widened returns a table without types of a span of time.
func widened(s Span) Table {
	if first := s.To.Add(-maxLength); s.From.Before(first) {
		s.From = first
	}
	step := step(s.To.Sub(s.From), s.age())
	t := Table{From: s.From.Truncate(step).UTC(), To: s.To.UTC(), Step: step}
	if end := t.To.Add(step - 1).Truncate(step); end.Before(s.Now) {
		t.To = end
	} else {
		t.To = s.Now.UTC()
	}
	return t
}

// newBuilder returns a builder of the table of a span of time.
func newBuilder(s Span) *builder {
	t, fine := widened(s), time.Minute
	if t.Step > time.Hour {
		fine = time.Hour
	}
	return &builder{Table: t, fine: kept(fine, s.age()), types: map[string]*building{}, known: make([]bool, t.steps())}
}

func (b *builder) read(ctx context.Context, rollups history.RollupReader, by history.RollupGrouping, names []string) (Table, error) {
	r := history.RollupRange{From: b.From, To: b.To, Span: b.Step, Names: names, Wait: true, Run: true, By: by, Places: true}
	if err := rollups.Rollups(ctx, r, b.add); err != nil {
		return Table{}, fmt.Errorf("read task types: %w", err)
	}
	if err := b.observe(ctx, rollups); err != nil {
		return Table{}, fmt.Errorf("read when a monitor was running: %w", err)
	}
	return b.table(), nil
}

// observe adds up how long a monitor was running. A step beside one in which none was is looked at more closely.
func (b *builder) observe(ctx context.Context, rollups history.RollupReader) error {
	for i, known := range b.known {
		start := b.From.Add(time.Duration(i) * b.Step)
		end := start.Add(b.Step)
		if end.After(b.To) {
			end = b.To
		}
		switch {
		case !known:
		case b.fine == b.Step || i > 0 && b.known[i-1] && (i+1 == len(b.known) || b.known[i+1]):
			b.Observed += end.Sub(start)
		default:
			seen := map[int64]bool{}
			r := history.RollupRange{From: start, To: end, Span: b.fine, By: history.ByTime}
			err := rollups.Rollups(ctx, r, func(m history.Rollup) error {
				seen[m.At] = true
				return nil
			})
			if err != nil {
				return err
			}
			b.Observed += min(time.Duration(len(seen))*b.fine, end.Sub(start))
		}
	}
	return nil
}

func (t *Table) steps() int { return max(int((t.To.Sub(t.From)+t.Step-1)/t.Step), 0) }

// builder adds up a table.
type builder struct {
	Table
	fine  time.Duration // spans that tell how long a monitor was running in a step
	types map[string]*building
	known []bool                                 // by step
	added func(m history.Rollup, step int) error // is called with what has been added, if not nil
}

type building struct {
	Type
	workers, queues map[string]bool
}

func (b *builder) add(m history.Rollup) error {
	at := time.Unix(m.At*60, 0)
	i := int(at.Sub(b.From) / b.Step)
	if i < 0 || i >= len(b.known) {
		return nil
	}
	b.known[i] = true
	if m.Name == "" && m.Received+m.Succeeded+m.Failed+m.Retried == 0 && len(m.Wait)+len(m.Run) == 0 {
		return nil // says only that a monitor was running
	}
	t := b.of(m.Name)
	t.Received += m.Received
	t.Succeeded += m.Succeeded
	t.Failed += m.Failed
	t.Retried += m.Retried
	step := &t.Trend[i]
	step.Received += m.Received
	step.Succeeded += m.Succeeded
	step.Failed += m.Failed
	if m.Failed > 0 {
		t.FailedAt = max(t.FailedAt, at.UnixMicro())
	}
	t.Workers.More = note(t.workers, m.Worker, m.Workers) || t.Workers.More
	t.Queues.More = note(t.queues, m.Queue, m.Queues) || t.Queues.More
	if err := errors.Join(t.Wait.MergeSaved(m.Wait), t.Run.MergeSaved(m.Run)); err != nil || b.added == nil {
		return err
	}
	return b.added(m, i)
}

// of returns the type of a name.
func (b *builder) of(name string) *building {
	t := b.types[name]
	if t == nil && len(b.types) >= MaxTypes {
		name = rollup.Other
		t = b.types[name]
	}
	if t == nil {
		t = &building{workers: map[string]bool{}, queues: map[string]bool{}}
		t.Name, t.Trend = name, make([]Step, len(b.known))
		b.types[name] = t
	}
	return t
}

// note adds known names to a set, unless that is full: then it returns true.
func note(set map[string]bool, name string, names []string) (more bool) {
	more = noteOne(set, name)
	for _, name := range names {
		more = noteOne(set, name) || more
	}
	return more
}

func noteOne(set map[string]bool, name string) (more bool) {
	if name == "" || set[name] {
		return false
	}
	if name == rollup.Other || len(set) >= maxPlaces {
		return true
	}
	set[name] = true
	return false
}

func (b *builder) table() Table {
	for _, t := range b.types {
		for i := range t.Trend {
			t.Trend[i].Observed = b.known[i]
		}
		t.Workers.Names = slices.Sorted(maps.Keys(t.workers))
		t.Queues.Names = slices.Sorted(maps.Keys(t.queues))
		b.Types = append(b.Types, t.Type)
	}
	slices.SortFunc(b.Types, func(x, y Type) int { return cmp.Compare(x.Name, y.Name) })
	return b.Table
}
