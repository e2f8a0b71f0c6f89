package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
)

// Trace shows what a trace holds: a cluster that does not change, whose clock stands at the end of the trace. It is safe for
// concurrent use.
type Trace struct {
	history *sqlite.DB
	signIn  *auth.Service // nil if nobody signs in
	web     *web.Handler
}

// NewTrace reads a trace, of which o says who may see it and where it is served. Close must follow. Its error is that of the
// trace, a *SignInError, or says what is wrong with o.
func NewTrace(ctx context.Context, o Options, r io.Reader) (*Trace, error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	read, err := trace.NewReader(r)
	if err != nil {
		return nil, &TraceError{err}
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: sqlite.Memory, Logger: o.Logger, Now: func() time.Time { return read.Header().Until }})
	if err != nil {
		return nil, &HistoryError{err}
	}
	t := &Trace{history: db}
	if err := t.assemble(ctx, o, read); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// TraceError reports that a file is no trace that can be shown.
type TraceError struct{ err error }

// Error returns the cause as text.
func (e *TraceError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *TraceError) Unwrap() error { return e.err }

func (t *Trace) assemble(ctx context.Context, o Options, read *trace.Reader) error {
	redactor, err := redact.New(o.Redact)
	if err != nil {
		return err
	}
	s := &still{cluster: state.New(state.Options{MaxTasks: o.MaxTasks, MaxText: o.MaxText, Track: true}), changed: make(chan struct{})}
	p := player{db: t.history, cluster: s.cluster}
	err = p.play(ctx, read)
	cut := errors.Is(err, trace.ErrCutOff)
	if err != nil && !cut {
		return &TraceError{err}
	}
	h, end := read.Header(), read.End()
	s.health = view.Health{Ready: true, Broker: view.BrokerHealth{URL: h.Cluster, Connected: true}}
	now := func() time.Time { return end }
	reader, err := view.New(s, t.history, now)
	if err != nil {
		return err
	}
	then, err := reader.At(ctx, end)
	if err != nil {
		return fmt.Errorf("read trace: %w", err)
	}
	s.rates = then.Rates()
	if o.Auth == nil && o.SignIn != nil {
		signIn := *o.SignIn
		signIn.Store, signIn.Prefix, signIn.Logger = t.history, o.Prefix, o.Logger
		if t.signIn, err = auth.New(ctx, signIn); err != nil {
			return &SignInError{err}
		}
		o.Auth = t.signIn
	}
	t.web, err = web.New(web.Options{ //nolint:contextcheck // requests have contexts of their own
		Backend: reader, Past: reader.At, ReadOnly: true, Trace: &templates.Trace{Header: h, End: end, Cut: cut},
		Auth: o.Auth, Routes: o.Routes, OpenMetrics: o.OpenMetrics, Prefix: o.Prefix, Version: o.Version, Logger: o.Logger,
		Hosts: o.Hosts, Origins: o.Origins, Redactor: redactor, Flower: o.Flower, Now: now,
	})
	return err
}

// Run serves until ctx ends.
func (t *Trace) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.web.Run(ctx) })
	if t.signIn != nil {
		g.Go(func() error { return t.signIn.Run(ctx) })
	}
	return g.Wait()
}

// Close forgets the trace, after Run has returned and the last request was answered.
func (t *Trace) Close() error { return t.history.Close() }

// ServeHTTP shows the pages and API under the prefix.
func (t *Trace) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.web.ServeHTTP(w, r) }

// still is a cluster that does not change.
type still struct {
	cluster *state.Cluster
	health  view.Health
	rates   view.Rates
	changed chan struct{}
}

func (s *still) View(f func(c state.View)) { f(s.cluster) }
func (s *still) Changed() <-chan struct{}  { return s.changed }
func (s *still) Notify()                   {}
func (s *still) Restored() bool            { return true }
func (s *still) Health() view.Health       { return s.health }
func (s *still) Rates() view.Rates         { return s.rates }

const (
	playedTasks   = 1_000              // changed, that are saved at once
	playedMinutes = 7 * 24 * time.Hour // before the end that charts show as watched
)

// player folds a trace into a cluster and saves what it changes, as the Umbel did that received it.
type player struct {
	db      *sqlite.DB
	cluster *state.Cluster
	minutes rollup.Recorder
	watched time.Time       // up to here
	workers map[string]bool // names of those that the store has
}

// play reads a trace to its end, or its cut.
func (p *player) play(ctx context.Context, r *trace.Reader) error {
	h := r.Header()
	if p.watched = h.First; h.Until.Sub(h.First) > playedMinutes {
		p.watched = h.Until.Add(-playedMinutes)
	}
	for {
		e, err := r.Next()
		cut := errors.Is(err, trace.ErrCutOff)
		if cut || errors.Is(err, io.EOF) {
			end := r.End()
			p.watch(end)
			p.cluster.Expire(end.UnixMicro())
			if e := p.save(ctx, end.UnixMicro(), nil); e != nil || !cut {
				return e
			}
			return err
		}
		if err == nil {
			p.watch(time.UnixMicro(e.At()))
			err = e.Apply(p.cluster, p.minutes.Add)
		}
		if err == nil && (e.Workers != nil || p.cluster.Unsaved() >= playedTasks) {
			err = p.save(ctx, e.At(), e.Workers)
		}
		if err != nil {
			return err
		}
	}
}

// watch marks the minutes up to a time as watched: charts show no gaps in them.
func (p *player) watch(until time.Time) {
	for ; !p.watched.After(until); p.watched = p.watched.Add(time.Minute).Truncate(time.Minute) {
		p.minutes.MarkObserved(p.watched)
	}
}

// save saves what has changed, with the workers if there is a list of all of them.
func (p *player) save(ctx context.Context, at int64, all *trace.Workers) error {
	c := &history.Checkpoint{Clock: p.cluster.Clock(), Workers: map[string][]byte{}, Rollups: p.minutes.Take(), Counts: p.cluster.Counts()}
	err := p.cluster.SaveWorkers(nil, func(name string, saved []byte) { c.Workers[name] = saved })
	if err != nil {
		return err
	}
	if all != nil {
		if err := p.replaceWorkers(c.Workers, all); err != nil {
			return err
		}
	}
	for first := true; first || p.cluster.Unsaved() > 0; first = false {
		b := history.Batch{At: at}
		for _, u := range p.cluster.TakeUnsaved(playedTasks) {
			b.Tasks = append(b.Tasks, history.Task(u))
		}
		if p.cluster.Unsaved() == len(b.Tasks) { // the last batch
			b.Checkpoint = c
		}
		written, err := p.db.Write(ctx, b)
		if err == nil {
			err = p.cluster.Saved(true, written.Existing)
		}
		if err != nil {
			return fmt.Errorf("keep trace: %w", err)
		}
	}
	return nil
}

// replaceWorkers adds to what is saved that the workers are all there are.
func (p *player) replaceWorkers(saved map[string][]byte, all *trace.Workers) error {
	named := map[string]bool{}
	for _, w := range all.Saved {
		var worker struct{ Name string }
		if err := json.Unmarshal([]byte(w), &worker); err != nil {
			return fmt.Errorf("read worker: %w", err)
		}
		saved[worker.Name], named[worker.Name] = []byte(w), true
	}
	for name := range p.workers {
		if !named[name] && p.cluster.ForgetWorker(name) {
			saved[name] = nil
		}
	}
	p.workers = named
	return nil
}
