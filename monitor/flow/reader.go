package flow

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	// waitingQuery finds first attempts that could start and have not.
	waitingQuery = "-eta:now.. -is:lost,dismissed retries:0 state:pending,received"

	verdictAge = 2 * time.Second // for which a verdict is not concluded anew
	usualAge   = 10 * time.Minute
	recent     = 10 * time.Minute
	before     = 5 * time.Minute // since when a queue grows
	late       = time.Minute     // how much later than that its depth may have been read
	usualWait  = .99             // quantile
	oldestRead = 50              // tasks that wait, among which the oldest is looked for
	readLimit  = 2 * time.Second // of reading the history
)

// Source is what a Reader reads.
type Source interface {
	View(f func(c state.View))
	Health() view.Health
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Count(ctx context.Context, q query.Query) (history.Count, error)
	History() view.History
}

// Reader concludes whether work flows in one cluster. Many may ask at once: it concludes at most every two seconds, and
// reads at most every ten minutes what is usual. It is safe for concurrent use.
type Reader struct {
	source   Source
	queues   *queues.Watcher      // nil if they are not watched
	outboxes *outboxwatch.Watcher // likewise
	now      func() time.Time

	mu      sync.Mutex // guards what is below, and is held while one reads
	at      time.Time
	verdict Verdict
	usualAt time.Time
	usual   ended
}

// ended is what ended in a span of time.
type ended struct {
	Ends
	wait time.Duration
}

// NewReader returns a Reader. Without a watcher of queues, or of outboxes, they are not judged. A nil now means time.Now.
func NewReader(source Source, watcher *queues.Watcher, outboxes *outboxwatch.Watcher, now func() time.Time) *Reader {
	if now == nil {
		now = time.Now
	}
	return &Reader{source: source, queues: watcher, outboxes: outboxes, now: now}
}

// Verdict returns what is concluded at present.
func (r *Reader) Verdict(ctx context.Context) Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if since := now.Sub(r.at); len(r.verdict.Reasons) > 0 && since >= 0 && since < verdictAge {
		return r.verdict
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit) // others wait for it too
	defer cancel()
	o := r.observe(now)
	err := r.readHistory(ctx, now, &o)
	o.Unreadable = err != nil // pages that read the history say why
	if r.at, r.verdict = now, Judge(o); !o.Unreadable {
		r.verdict.Recent = &o.Recent
	}
	return r.verdict
}

// observe reads what is in memory.
func (r *Reader) observe(now time.Time) Observation {
	h := r.source.Health()
	o := Observation{
		Connected: h.Ready && h.Broker.Connected, For: now.Sub(h.Broker.Since), Backpressure: h.Store.Backpressure,
	}
	if m := h.Watermark; m.Behind && m.Micros != 0 {
		o.Behind, o.BehindWorker = now.Sub(time.UnixMicro(m.Micros)), m.Worker
	}
	busy := map[string]bool{}
	r.source.View(func(c state.View) {
		counts := c.Counts()
		o.Heard = counts.Tasks > 0 || counts.Evicted > 0 || len(counts.Workers) > 0
		for _, w := range c.Workers() {
			if w.Status != state.Offline {
				o.WorkersOnline++
			}
			busy[w.Name] = w.Active == nil && w.RunningTasks > 0 || w.Active != nil && *w.Active > 0
		}
	})
	if o.Unwatched = r.queues == nil; !o.Unwatched {
		o.Queues = observed(r.queues.Peek(), busy)
	}
	if r.outboxes != nil {
		o.Stopped = stopped(r.outboxes.Snapshot())
	}
	return o
}

// stopped returns the outboxes whose relay has stopped. Ages are by the clocks of their databases.
func stopped(all []outboxwatch.Outbox) (list []Outbox) {
	for _, o := range all {
		if ready := o.Stats.Ready(); o.Relay.Stopped {
			list = append(list, Outbox{o.Name, int64(ready.N), !ready.Exact, o.Stats.Now.Sub(o.Relay.IdleSince)})
		}
	}
	return list
}

// readHistory reads what waits, what has ended, and what is usual. mu is held.
func (r *Reader) readHistory(ctx context.Context, now time.Time, o *Observation) error {
	var err error
	if o.Waiting, err = r.waiting(ctx, now); err != nil {
		return err
	}
	last, err := r.ended(ctx, now.Add(-recent), now, time.Minute)
	if err != nil {
		return err
	}
	o.Recent = last.Ends
	if since := now.Sub(r.usualAt); since < 0 || since > usualAge {
		hour := now.Truncate(time.Hour)
		if r.usual, err = r.ended(ctx, hour.Add(-24*time.Hour), hour, time.Hour); err != nil {
			return err
		}
		r.usualAt = now
	}
	o.Usual, o.UsualWait = r.usual.Ends, r.usual.wait
	return nil
}

// waiting finds the first attempts that have not started.
func (r *Reader) waiting(ctx context.Context, now time.Time) (*Wait, error) {
	q, err := query.Parse(waitingQuery)
	if err != nil {
		return nil, err
	}
	n, err := r.source.Count(ctx, q)
	if err != nil {
		return nil, err
	}
	w := &Wait{Tasks: int64(n.N), AtLeast: !n.Exact, Query: q.String()}
	// The tasks that have changed least recently: one that waits does not change.
	page, err := r.source.Tasks(ctx, history.TaskRequest{Query: q, Newer: true, Limit: oldestRead, Now: now})
	if err != nil {
		return nil, err
	}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		since := cmp.Or(t.SentAt, t.ReceivedAt)
		if since != 0 && t.ETA != nil {
			if due, ok := state.ParseTime(*t.ETA); ok {
				since = max(since, due)
			}
		}
		if since != 0 {
			w.Oldest = max(w.Oldest, now.Sub(time.UnixMicro(since)))
		}
	}
	return w, nil
}

// ended counts what ended from one time to another, in spans of rollups.
func (r *Reader) ended(ctx context.Context, from, to time.Time, span time.Duration) (ended, error) {
	var e ended
	var wait rollup.Histogram
	request := history.RollupRange{From: from, To: to, Span: span, Wait: span > time.Minute, By: history.ByTime}
	err := r.source.History().Rollups(ctx, request, func(m history.Rollup) error {
		e.Succeeded += m.Succeeded
		e.Failed += m.Failed
		return wait.MergeSaved(m.Wait)
	})
	e.wait = time.Duration(wait.Quantile(usualWait)) * time.Microsecond
	return e, err
}

// observed returns the queues of tasks of a poll, nil if there was none.
func observed(s queues.Snapshot, busy map[string]bool) []Queue {
	if s.At.IsZero() || s.Error != "" {
		return nil
	}
	list := []Queue{}
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Hidden || q.Missing || q.Ready == nil {
			continue
		}
		list = append(list, fromQueue(q, s.At, busy))
	}
	return list
}

func fromQueue(q *queues.Queue, at time.Time, busy map[string]bool) Queue {
	o := Queue{Name: q.Name, Ready: *q.Ready, Consumers: q.Consumers, In: q.InRate, Out: q.OutRate, Busy: len(q.Workers) == 0}
	if o.Consumers == nil && q.WorkersKnown {
		o.Consumers = new(int64(len(q.Workers)))
	}
	for _, w := range q.Workers {
		o.Busy = o.Busy || busy[w]
	}
	var since time.Time // for which something has waited
	for _, p := range q.Depths {
		switch {
		case p.Ready == 0:
			since = time.Time{}
		case since.IsZero():
			since = p.At
		}
		if age := at.Sub(p.At); age >= before && age < before+late {
			o.Before = new(p.Ready)
		}
	}
	if q.OutRate != nil && !since.IsZero() && at.Sub(since) >= time.Minute {
		o.Taken = new(*q.OutRate > 0)
	}
	return o
}
