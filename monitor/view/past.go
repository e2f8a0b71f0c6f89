package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/loss"
)

// Bounds of what is read for one instant.
const (
	maxDivided = 10_000 // tasks that the instant divides, and as many that were unfinished
	maxLately  = 2_000  // tasks that changed since the snapshot before it
)

// Errors of At and of what a Past cannot tell.
var (
	ErrFuture  = errors.New("is in the future")
	ErrNotPast = errors.New("only what is known now, not how it was")
)

// Past is a cluster as it was at an instant: a function of what had been received by then, and of what is retained of that.
// It reads as a Reader does, and is safe for concurrent use.
type Past struct {
	*Reader
	at       int64
	snapshot history.Snapshot
	unsaved  map[string][]byte // tasks that the store does not have as they are
	around   map[string][]byte // events of the tasks that the instant divides
	divided  []state.Task      // tasks of which something was received later or may yet be, as they were
	cluster  *state.Cluster    // with the workers, and the tasks that were not finished
	lost     loss.Detector     // as of the snapshot
	counts   state.Counts
	whole    bool // counts are of all tasks
	rates    Rates
	doubts   []string
	groups   groupsThen
	calls    callsThen
	lacks    []string // those about events
}

// At returns the cluster as it was at an instant, to the µs. The error is ErrFuture, or that of the store.
func (r *Reader) At(ctx context.Context, at time.Time) (*Past, error) {
	if at.After(r.now()) {
		return nil, ErrFuture
	}
	p := &Past{Reader: r, at: at.UnixMicro(), cluster: state.New(state.Options{MaxTasks: 4 * maxDivided})}
	more := false
	r.source.View(func(c state.View) {
		p.unsaved = c.UnsavedEvents(maxDivided)
		more = len(p.unsaved) == maxDivided
	})
	var err error
	if p.snapshot, err = r.store.Snapshot(ctx, p.at); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	for _, w := range p.snapshot.Workers {
		if err := cmp.Or(p.cluster.LoadWorker([]byte(w)), p.lost.LoadWorker([]byte(w))); err != nil {
			return nil, fmt.Errorf("read snapshot: %w", err)
		}
	}
	p.cluster.Expire(p.snapshot.At)
	cut, err := p.readTasks(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tasks of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	counted, err := p.count(ctx)
	if err == nil {
		p.rates, err = p.readRates(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("count tasks of %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	p.whole = counted && p.counts.Evicted == 0
	p.doubt(more || cut, counted)
	return p, nil
}

// doubt notes why what is shown may not be all that was known then.
func (p *Past) doubt(cut, counted bool) {
	note := func(is bool, text string) {
		if is {
			p.doubts = append(p.doubts, text)
		}
	}
	note(p.at < p.snapshot.Since, "Umbel did not keep yet when it received each event")
	note(cut, "more tasks were unfinished than are read")
	rules := p.store.RetentionRules()
	for _, keep := range []time.Duration{rules.Succeeded, rules.Failed} {
		if keep > 0 && p.at < p.now().Add(-keep).UnixMicro() {
			note(true, "tasks that ended by then may have been removed")
			break
		}
	}
	p.lacks = slices.Clone(p.doubts)
	note(p.snapshot.At == 0, "workers and counts were not kept")
	note(p.snapshot.At != 0 && !counted, "counts are those of "+clockText(p.snapshot.At))
}

func clockText(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05 UTC")
}

// readTasks reads the tasks that the instant divides, and those that have not ended since: they may change while p is read, and
// then the store does not have them as they were. They are read first, so that none of them is missed that changes meanwhile.
func (p *Past) readTasks(ctx context.Context) (cut bool, err error) {
	r, seen := state.Reader{Until: p.at}, make(map[string]bool)
	add := func(id string, events []byte) error {
		t, err := r.Task(id, events)
		if errors.Is(err, state.ErrUnknownYet) || seen[id] {
			return nil
		}
		if err != nil {
			return err
		}
		seen[id] = true
		p.divided = append(p.divided, t)
		return p.hold(id, events, t.State)
	}
	for id, events := range p.unsaved {
		if err := add(id, events); err != nil {
			return false, err
		}
	}
	saved := func(id string, events []byte) error {
		if _, newer := p.unsaved[id]; newer {
			return nil
		}
		return add(id, events)
	}
	rest, err := p.store.ActiveSince(ctx, p.at, maxDivided, saved)
	if err != nil {
		return false, err
	}
	p.around = make(map[string][]byte)
	more, err := p.store.TasksAround(ctx, p.at, maxDivided, func(id string, events []byte) error {
		if _, newer := p.unsaved[id]; !newer {
			p.around[id] = events
		}
		return saved(id, events)
	})
	return more || rest, err
}

// hold keeps an unfinished task in the cluster, for what is counted of workers.
func (p *Past) hold(id string, events []byte, s state.State) error {
	if s.Final() {
		return nil
	}
	_, err := p.cluster.LoadUntil(id, events, p.at)
	return err
}

// count counts the tasks: as of the snapshot, and then each that has changed since. It reports false if too many have, and
// leaves the counts of the snapshot.
func (p *Past) count(ctx context.Context) (exact bool, err error) {
	p.counts = p.snapshot.Counts
	now := p.cluster.Counts()
	for _, by := range []*map[string]int{&p.counts.ByName, &p.counts.ByWorker, &p.counts.ByQueue} {
		if *by == nil {
			*by = map[string]int{}
		}
	}
	if p.counts.ByState == nil {
		p.counts.ByState = map[state.State]int{}
	}
	p.counts.Workers = now.Workers
	if p.snapshot.At == 0 {
		return false, nil
	}
	then, at := state.Reader{Until: p.snapshot.At}, state.Reader{Until: p.at}
	type change struct{ before, after *state.Task }
	var changes []change
	read := func(id string, events []byte) error {
		var c change
		for _, side := range []struct {
			r    *state.Reader
			into **state.Task
		}{{&then, &c.before}, {&at, &c.after}} {
			switch t, err := side.r.Task(id, events); {
			case err == nil:
				*side.into = &t
			case !errors.Is(err, state.ErrUnknownYet):
				return err
			}
		}
		changes = append(changes, c)
		return nil
	}
	seen := make(map[string]bool)
	once := func(id string, events []byte) error {
		if seen[id] {
			return nil
		}
		seen[id] = true
		if newer, ok := p.unsaved[id]; ok {
			events = newer
		}
		return read(id, events)
	}
	for id, events := range p.unsaved {
		if err := once(id, events); err != nil {
			return false, err
		}
	}
	more, err := p.store.ChangedBetween(ctx, p.snapshot.At, p.at, maxLately, once)
	if err != nil || more {
		return false, err
	}
	if len(p.around) > maxLately {
		return false, nil
	}
	for id, events := range p.around {
		if err := once(id, events); err != nil {
			return false, err
		}
	}
	p.around = nil
	for _, c := range changes {
		bump(&p.counts, c.before, -1)
		bump(&p.counts, c.after, 1)
	}
	p.counts.Running, p.counts.Unreachable = now.Running, now.Unreachable
	p.counts.Lost, p.counts.Orphaned, p.counts.Returned, p.counts.Dismissed = now.Lost, now.Orphaned, now.Returned, now.Dismissed
	return true, nil
}

// bump counts a task, by -1 to take it out.
func bump(c *state.Counts, t *state.Task, by int) {
	if t == nil {
		return
	}
	c.Tasks += by
	add(c.ByState, t.State, by)
	for _, f := range []struct {
		counts map[string]int
		value  *string
	}{{c.ByName, t.Name}, {c.ByWorker, t.Worker}, {c.ByQueue, t.Queue}} {
		if f.value != nil && *f.value != "" {
			add(f.counts, *f.value, by)
		}
	}
}

func add[K comparable](counts map[K]int, k K, by int) {
	if counts[k] += by; counts[k] <= 0 {
		delete(counts, k)
	}
}

// readRates returns the means of the last whole minute.
func (p *Past) readRates(ctx context.Context) (rates Rates, err error) {
	to := time.UnixMicro(p.at).Truncate(time.Minute)
	observed := false
	r := history.RollupRange{From: to.Add(-time.Minute), To: to, Span: time.Minute, By: history.ByTime}
	err = p.store.Rollups(ctx, r, func(m history.Rollup) error {
		observed = true
		rates.Received += float64(m.Received) / 60
		rates.Succeeded += float64(m.Succeeded) / 60
		rates.Failed += float64(m.Failed) / 60
		rates.Retried += float64(m.Retried) / 60
		return nil
	})
	if !observed && p.now().Sub(to) < history.RollupSpans()[0].Retention {
		p.doubts = append(p.doubts, "Umbel received nothing in the minute before")
	}
	return rates, err
}

// Instant is when it was.
func (p *Past) Instant() time.Time { return time.UnixMicro(p.at).UTC() }

// WorkersAt is when workers were as they are shown, zero if that is not known.
func (p *Past) WorkersAt() time.Time {
	if p.snapshot.At == 0 {
		return time.Time{}
	}
	return time.UnixMicro(p.snapshot.At).UTC()
}

// Empty reports that nothing was known yet of any task that had ended, nor of any other.
func (p *Past) Empty() bool {
	return len(p.divided) == 0 && p.counts.Tasks == 0 && p.cluster.Counts().Tasks == 0
}

// Doubts says, in clauses, why what is shown may not be all that was known then. Empty means that it is.
func (p *Past) Doubts() []string { return p.doubts }

// Steps returns the newest receipt before the instant and the next one after it, zero if there is none.
func (p *Past) Steps(ctx context.Context) (before, after time.Time, err error) {
	b, a, err := p.store.Steps(ctx, p.at)
	for events := range p.eachUnsaved() {
		for _, r := range events {
			if r < p.at {
				b = max(b, r)
			} else if r > p.at && (a == 0 || r < a) {
				a = r
			}
		}
	}
	if b != 0 {
		before = time.UnixMicro(b).UTC()
	}
	if a != 0 {
		after = time.UnixMicro(a).UTC()
	}
	return before, after, err
}

// eachUnsaved yields the receipts of the tasks that are not saved.
func (p *Past) eachUnsaved() func(yield func([]int64) bool) {
	return func(yield func([]int64) bool) {
		for id, events := range p.unsaved {
			if receipts, err := state.Receipts(id, events); err == nil && !yield(receipts) {
				return
			}
		}
	}
}
