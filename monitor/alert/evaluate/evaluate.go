// Package evaluate keeps the log that alerts are judged by, judges the rules with every record, and enqueues notifications. A
// record, the firings that follow from it and their notifications are written in one transaction, so that a crash at any
// moment neither loses nor repeats one.
package evaluate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/state/query"
)

const (
	defaultInterval = time.Minute
	countTimeout    = 5 * time.Second // for all counts of a record
	pageSize        = 500
)

// Options of a Service. Store and Take are required.
type Options struct {
	Store history.Alerts
	// Take returns what events have told since the last call, nil if that is no interval, as ingest.Ingester.TakeRecord.
	Take func() *alert.Record
	// Queues returns the queues of the broker, nil if they are not known.
	Queues func() queues.Snapshot
	// Count returns how many tasks match a query, nil if nobody counts.
	Count func(ctx context.Context, q query.Query) (history.Count, error)
	// Others are the Umbels that watch the same cluster; nil means that there are none. Outbox is where their notes learn from what
	// has been sent.
	Others Others
	Outbox history.CommandReader
	// Sent returns a channel that is closed when the outbox has recorded that something was sent; nil looks every two seconds.
	Sent func() <-chan struct{}
	// Wake is called after notifications were enqueued; nil sends none.
	Wake func()
	// Receivers are those that rules may name.
	Receivers []receivers.Receiver
	Cluster   string        // name of the cluster, where there are several
	URL       string        // of Umbel's pages, for links in notifications; empty leaves them out
	ReadOnly  bool          // no rule is judged
	Interval  time.Duration // between records, a minute if zero
	Now       func() time.Time
	Logger    *slog.Logger
}

// Service judges rules. It is safe for concurrent use.
type Service struct {
	o       Options
	pending *alert.Record      // taken, and not written yet; used by Tick alone
	folds   map[int64]*judging // by rule; used by Tick alone
	last    int64              // end of the last record, µs; used by Tick alone
	led     bool               // this process told of alerts at the last record; used by Tick alone
	unsent  bool               // notifications wait to be sent; used by Tick alone
	sent    <-chan struct{}    // closed when one may not anymore, nil if that is not told; used by Tick alone
	testing chan struct{}      // holds a token while a backtest runs

	mu      sync.Mutex // guards what is below
	changed chan struct{}
	open    []history.AlertFiring
	rules   []Rule
	failed  string // why the last one could not be written
}

// judging is the fold of a stored rule.
type judging struct {
	definition string
	fold       *alert.Fold
}

// New validates o and starts nothing.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Take == nil {
		return nil, errors.New("alerts need a store and records")
	}
	o.Interval, o.Logger = cmp.Or(o.Interval, defaultInterval), cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{o: o, testing: make(chan struct{}, 1), changed: make(chan struct{})}, nil
}

// Run writes a record at every interval and judges the rules by it, until ctx ends. It returns nil.
func (s *Service) Run(ctx context.Context) error {
	if err := s.refresh(ctx); err != nil {
		s.o.Logger.WarnContext(ctx, "alerts not read", "error", err)
	}
	s.o.Take() // which begins the first interval
	ticker, sent := time.NewTicker(s.o.Interval), time.NewTicker(noteInterval)
	defer ticker.Stop()
	defer sent.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sent.C:
			if s.unsent {
				s.logNote(ctx)
			}
			continue
		case <-s.outcome():
			s.logNote(ctx)
			continue
		case <-ticker.C:
		}
		if err := s.Tick(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.ErrorContext(ctx, "alerts not judged", "error", err)
		}
	}
}

// outcome returns a channel that is closed when a notification may have been sent, nil if none waits.
func (s *Service) outcome() <-chan struct{} {
	if !s.unsent {
		return nil
	}
	return s.sent
}

// Tick writes one record and judges the rules by it. After an error, the same record is tried again at the next one. It must
// not be called while Run runs.
func (s *Service) Tick(ctx context.Context) error {
	r := s.pending
	if r == nil {
		if r = s.o.Take(); r == nil {
			return nil
		}
		s.queues(r)
	}
	s.pending = r
	err := s.tick(ctx, r)
	if err == nil {
		s.pending, s.led = nil, s.Tells()
		err = s.refresh(ctx)
		s.logNote(ctx)
	} else {
		s.folds = nil // they may have seen the record, which is not in the log
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = ""
	if err != nil {
		s.failed = err.Error()
	}
	return err
}

func (s *Service) tick(ctx context.Context, r *alert.Record) error {
	rules, err := s.Rules(ctx)
	if err != nil {
		return err
	}
	if r.Counts == nil {
		r.Counts = s.counts(ctx, rules)
	}
	if r.At <= s.last { // the clock was set back, and the folds have seen the time that comes again
		s.folds = nil
	}
	s.last = r.At
	u := history.AlertUpdate{At: time.UnixMicro(r.At), Record: r.Encode()}
	if !s.o.ReadOnly {
		if err := s.judge(ctx, r, rules, &u); err != nil {
			return err
		}
	}
	if err := s.o.Store.UpdateAlerts(ctx, u); err != nil {
		return err
	}
	if len(u.Commands) > 0 && s.o.Wake != nil {
		s.o.Wake()
	}
	return nil
}

// Tells reports whether this process tells of alerts: it is not read-only, and no other Umbel does so.
func (s *Service) Tells() bool { return !s.o.ReadOnly && (s.o.Others == nil || s.o.Others.Leads()) }

// logNote writes the note for the next leader.
func (s *Service) logNote(ctx context.Context) {
	if err := s.note(ctx); err != nil {
		s.o.Logger.WarnContext(ctx, "other Umbels not told of alerts", "error", err)
	}
}

// queues adds the queues of the broker to a record.
func (s *Service) queues(r *alert.Record) {
	if s.o.Queues == nil {
		return
	}
	snapshot := s.o.Queues()
	r.QueuesKnown = snapshot.Error == "" && s.o.Now().Sub(snapshot.At) < 2*time.Minute
	for i := range snapshot.Queues {
		q := &snapshot.Queues[i]
		if q.Hidden || q.Ready == nil || len(r.Queues) >= alert.MaxQueues {
			continue
		}
		v := alert.Queue{Name: q.Name, Ready: *q.Ready}
		if q.OutRate != nil {
			v.Taken = alert.TakenNone
			if *q.OutRate > 0 {
				v.Taken = alert.TakenSome
			}
		}
		r.Queues = append(r.Queues, v)
	}
}

// counts counts the tasks that match the queries of rules which compare that.
func (s *Service) counts(ctx context.Context, rules []Rule) []alert.Count {
	counts := []alert.Count{}
	if s.o.Count == nil {
		return counts
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	for _, r := range rules {
		text := r.Rule.Query
		known := slices.ContainsFunc(counts, func(c alert.Count) bool { return c.Query == text })
		if r.Invalid != "" || r.Rule.Measure != alert.Tasks || !r.Enabled || known || len(counts) >= alert.MaxCounts {
			continue
		}
		q, err := query.Parse(text)
		if err != nil {
			continue
		}
		n, err := s.o.Count(ctx, q)
		if err != nil {
			s.o.Logger.WarnContext(ctx, "tasks not counted for an alert", "rule", r.Name, "error", err)
			continue
		}
		counts = append(counts, alert.Count{Query: text, N: int64(n.N)})
	}
	return counts
}

// judge steps every rule, and adds to u what changes: which firings should be open by the rules is compared with which are
// open in the store, so that whatever happened before, the store follows.
func (s *Service) judge(ctx context.Context, r *alert.Record, rules []Rule, u *history.AlertUpdate) error {
	if err := s.prepare(ctx, r, rules); err != nil {
		return err
	}
	stored, err := s.openFirings(ctx)
	if err != nil {
		return err
	}
	d := decision{box: newMailbox(r.At, s.o.URL, s.o.Cluster), leads: s.Tells(), told: s.told(), update: u}
	for i := range rules {
		if j := s.folds[rules[i].ID]; j != nil {
			j.fold.Step(r)
			if stored, err = d.open(&rules[i], j.fold.Open(), stored); err != nil {
				return err
			}
		}
	}
	for _, o := range stored { // which no rule says are open
		d.end(rules, o)
	}
	u.Commands, err = d.box.commands(s.o.Receivers)
	return err
}

// prepare makes the folds of rules that are new or were changed, from the log, and drops others.
func (s *Service) prepare(ctx context.Context, r *alert.Record, rules []Rule) error {
	folds, fresh := map[int64]*judging{}, []*judging{}
	for i := range rules {
		rule := &rules[i]
		if !rule.Enabled || rule.Invalid != "" {
			continue
		}
		j := s.folds[rule.ID]
		if definition := string(rule.Definition); j == nil || j.definition != definition {
			fold, err := alert.NewFold(rule.Rule)
			if err != nil {
				return err
			}
			j = &judging{definition, fold}
			fresh = append(fresh, j)
		}
		folds[rule.ID] = j
	}
	s.folds = folds
	if len(fresh) == 0 {
		return nil
	}
	return s.read(ctx, time.UnixMicro(r.At).Add(-alert.Lookback), func(logged *alert.Record) error {
		for _, j := range fresh {
			if logged.At <= r.At {
				j.fold.Step(logged)
			}
		}
		return nil
	})
}

// read calls f with every record of the log from a time on. Records that cannot be read are left out.
func (s *Service) read(ctx context.Context, from time.Time, f func(*alert.Record) error) error {
	var d alert.Decoder
	return s.o.Store.AlertRecords(ctx, from, func(b []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := d.Decode(b)
		if err != nil {
			return nil //nolint:nilerr // of another version
		}
		return f(r)
	})
}

// openFirings returns all firings of the store that have not ended.
func (s *Service) openFirings(ctx context.Context) ([]history.AlertFiring, error) {
	var all []history.AlertFiring
	for f := (history.AlertFilter{Open: true, Limit: pageSize}); ; {
		list, next, err := s.o.Store.AlertFirings(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if f.Before = next; next == 0 {
			return all, nil
		}
	}
}

// refresh reads what pages show, and wakes those who wait on Changed if it has changed.
func (s *Service) refresh(ctx context.Context) error {
	rules, err := s.Rules(ctx)
	if err != nil {
		return err
	}
	open, err := s.openFirings(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.rules = open, rules
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}
