package outboxwatch

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// sampler holds the sample of the current minute: the highest values seen in it.
type sampler struct{ current history.OutboxSample }

// add adds what was read now. It returns the sample of its minute so far, and whether that has changed.
func (s *sampler) add(o Outbox, at time.Time) (history.OutboxSample, bool) {
	before, minute := s.current, at.Unix()/60
	if s.current.Minute != minute {
		s.current = history.OutboxSample{Outbox: o.Name, Minute: minute}
	}
	c := &s.current
	c.Ready = max(c.Ready, int64(o.Stats.Ready().N))
	c.DeadLetters = max(c.DeadLetters, int64(o.Stats.DeadLetters.N))
	if !o.Stats.OldestReady.IsZero() {
		c.OldestReady = max(c.OldestReady, o.Stats.Now.Sub(o.Stats.OldestReady))
	}
	return *c, *c != before
}

// sample saves the sample of the current minute.
func (w *Watcher) sample(ctx context.Context, i int, s *sampler) {
	if w.samples == nil {
		return
	}
	sample, changed := s.add(w.Snapshot()[i], w.now())
	if !changed {
		return
	}
	if err := w.samples.SaveOutboxSample(ctx, sample); err != nil && ctx.Err() == nil {
		w.log.Warn("sample of an outbox not saved", "outbox", w.sources[i].Name(), "error", err)
	}
}

// Samples returns the samples of an outbox within [from, to), oldest first, the highest values of each step, which is a
// multiple of a minute. Minutes in which nothing was read have none.
func (w *Watcher) Samples(ctx context.Context, name string, from, to time.Time, step time.Duration) ([]history.OutboxSample, error) {
	if w.index(name) < 0 {
		return nil, ErrUnknownSource
	}
	if w.samples == nil {
		return nil, nil
	}
	return w.samples.OutboxSamples(ctx, name, from, to, step)
}
