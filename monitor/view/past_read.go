package view

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// pastView is the cluster as it was, with counts of all tasks.
type pastView struct {
	*state.Cluster
	p *Past
}

func (v pastView) Counts() state.Counts { return v.p.counts }

// LowWaterMark says whether there were other tasks than those that are counted.
func (v pastView) LowWaterMark() *state.Position {
	if v.p.whole {
		return nil
	}
	return &state.Position{}
}

// View calls f with the workers as they were, and the tasks that were not finished.
func (p *Past) View(f func(c state.View)) { f(pastView{p.cluster, p}) }

// Changed returns a channel that is never closed.
func (p *Past) Changed() <-chan struct{} { return nil }

// Health is that of a connected broker: what is wrong now was not then. Events are missing as of the snapshot.
func (p *Past) Health() Health {
	return Health{
		Ready: true, Broker: BrokerHealth{URL: p.source.Health().Broker.URL, Connected: true},
		MissingStarted: p.lost.Missing(), Gaps: p.lost.Gaps(),
	}
}

// Rates are means of the last whole minute before the instant.
func (p *Past) Rates() Rates { return p.rates }

// Task returns the task as it was, or history.ErrNotFound if nothing of it had been received.
func (p *Past) Task(ctx context.Context, id string) (state.Task, error) {
	t, _, err := p.taskEvents(ctx, id)
	if err != nil {
		return state.Task{}, err
	}
	if held, ok := p.cluster.Task(id); ok { // which knows of workers
		t = held
	}
	t.Children = nil
	page, err := p.Tasks(ctx, history.TaskRequest{Query: query.New(query.Equal(query.Parent, id)), Limit: maxPage, Now: p.Instant()})
	for _, child := range slices.Backward(page.Tasks) {
		t.Children = append(t.Children, child.ID)
	}
	return t, err
}

// TaskEvents returns the events of a task that had been received, by stamp, or history.ErrNotFound.
func (p *Past) TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error) {
	_, events, err := p.taskEvents(ctx, id)
	return events, err
}

func (p *Past) taskEvents(ctx context.Context, id string) (state.Task, []state.TaskEvent, error) {
	saved, err := p.saved(ctx, id)
	if err != nil {
		return state.Task{}, nil, err
	}
	t, events, err := (&state.Reader{Until: p.at}).TaskEvents(id, saved)
	if errors.Is(err, state.ErrUnknownYet) {
		err = history.ErrNotFound
	}
	return t, events, err
}

// Tasks returns a page of the tasks as they were. Those of which nothing was received later are in the store as they were;
// the others are merged with them.
func (p *Past) Tasks(ctx context.Context, q history.TaskRequest) (history.TaskPage, error) {
	return p.tasks(ctx, q, p.divided)
}

func (p *Past) tasks(ctx context.Context, q history.TaskRequest, divided []state.Task) (history.TaskPage, error) {
	q.Limit, q.Until, q.Now = min(max(q.Limit, 1), maxPage), p.at, p.Instant()
	var err error
	if q.Query, err = q.Query.Within(p.Reader.cluster); err != nil {
		return history.TaskPage{}, err
	}
	if q.Query, err = ResolveCauses(ctx, p, p.resolve(q.Query), q.Now); err != nil {
		return history.TaskPage{}, err
	}
	if q.Sort.Field.Alphabetical() {
		return history.TasksByWord(ctx, pastWords{p, divided}, q)
	}
	l := newList(q)
	for i := range divided {
		l.add(&divided[i])
	}
	rest := q
	if q.From == nil && q.Sort == (query.Sort{}) && !q.Newer && p.snapshot.Clock != 0 {
		rest.From = &state.Position{} // the list begins below what was received later
		rest.From.Stamp.Clock = p.snapshot.Clock + 1
	}
	for {
		page, err := p.store.Tasks(ctx, rest)
		if err != nil {
			return history.TaskPage{}, err
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			if _, newer := p.unsaved[t.ID]; newer || l.ids[t.ID] {
				continue
			}
			at, _ := l.place(t)
			l.ids[t.ID] = true
			l.rows = append(l.rows, row{*t, at})
		}
		next := page.Next
		if q.Newer {
			next = page.Prev
		}
		l.searched += page.Searched
		if next == nil || page.Searched > 0 || l.count(next) >= q.Limit {
			return l.page(next), nil
		}
		rest.From = next
	}
}

// pastWords are the values of fields as they were.
type pastWords struct {
	*Past

	divided []state.Task
}

func (p pastWords) Tasks(ctx context.Context, q history.TaskRequest) (history.TaskPage, error) {
	return p.tasks(ctx, q, p.divided)
}

func (p pastWords) Words(ctx context.Context, w history.WordRange) ([]string, error) {
	words, err := p.store.Words(ctx, w)
	for i := range p.divided {
		words = append(words, w.Field.Word(&p.divided[i]))
	}
	return w.Next(words), err //nolint:wrapcheck // the caller's sentence
}

// Count returns how many tasks there were, and ErrNotPast for queries: their lists tell how many tasks they show.
func (p *Past) Count(_ context.Context, q query.Query) (history.Count, error) {
	if !q.All() || p.snapshot.At == 0 {
		return history.Count{}, ErrNotPast
	}
	return history.Count{N: p.counts.Tasks, Exact: p.whole}, nil
}

// History returns the history, whose rollups end at the instant.
func (p *Past) History() History { return pastHistory{p.Reader.History(), p} }

type pastHistory struct {
	History
	p *Past
}

// Rollups calls f with the rollups as they were. Of the span that the instant divides, those of shorter spans stand for it, as
// far as they are kept.
func (h pastHistory) Rollups(ctx context.Context, r history.RollupRange, f func(history.Rollup) error) error {
	divided := h.p.Instant().Truncate(r.Span)
	if !r.To.After(divided) {
		return h.History.Rollups(ctx, r, f)
	}
	from := r.From
	r.To = divided
	if err := h.History.Rollups(ctx, r, f); err != nil || from.After(divided) {
		return err
	}
	for _, part := range h.p.parts(from, r.Span) {
		r.From, r.To, r.Span = part.From, part.To, part.Span
		err := h.History.Rollups(ctx, r, func(m history.Rollup) error {
			m.At = divided.Unix() / 60
			return f(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// parts returns the shorter spans whose rollups make up what was counted of a span by the instant. It leaves out those that are
// not kept any more, but what is before a time does not matter.
func (p *Past) parts(since time.Time, span time.Duration) (list []history.RollupRange) {
	spans := history.RollupSpans()
	from := p.Instant().Truncate(span)
	for _, s := range slices.Backward(spans[:]) {
		if s.Length >= span {
			continue
		}
		needed := from
		if since.After(needed) {
			needed = since
		}
		if needed.Before(p.now().Add(-s.Retention)) {
			break
		}
		to := p.Instant().Truncate(s.Length)
		if to.After(from) {
			list = append(list, history.RollupRange{From: from, To: to, Span: s.Length})
		}
		from = to
	}
	return list
}

// TypeSpan is a span of time that counters of task types cover, as of the instant. Without an instant it stays.
func (p *Past) TypeSpan(s tasktype.Span) tasktype.Span {
	if p != nil {
		s.Now, s.Read = p.CountedUntil(s.From), p.ReadAt()
	}
	return s
}

// ReadAt is when the past is read, which decides how short the spans are that are kept of it; zero without an instant.
func (p *Past) ReadAt() time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.now().UTC()
}

// CountedUntil is where the shortest span of rollups ends that is kept and ended by the instant. What is before since does not
// matter.
func (p *Past) CountedUntil(since time.Time) time.Time {
	const day = 24 * time.Hour
	until := p.Instant().Truncate(day)
	for _, part := range p.parts(since, day) {
		until = part.To
	}
	return until
}

// Marks returns those of moments by the instant, whenever they were added.
func (h pastHistory) Marks(ctx context.Context, from, to time.Time, limit int) ([]history.Mark, error) {
	if end := time.UnixMicro(h.p.at + 1); to.After(end) {
		to = end
	}
	return h.History.Marks(ctx, from, to, limit)
}

func (h pastHistory) MarkDuplicates(context.Context, []state.Task) error { return nil }
