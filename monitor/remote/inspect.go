package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state"
)

// MaxAge is how old an inspection may be before it is refreshed.
const MaxAge = 5 * time.Second

const (
	timeout    = 2 * time.Second  // of an inspection
	watchedFor = 15 * time.Second // how long after a call of Cached a worker is refreshed periodically
	keepFor    = 10 * time.Minute // how long after its last use an inspection is cached
	maxNodes   = 1_000            // cached workers
	maxRounds  = 64               // concurrent inspections of Run
)

// InspectorOptions of an Inspector. Client is required.
type InspectorOptions struct {
	Client *Client
	// Alive returns the names of the workers that are expected to reply.
	Alive func() []string
	// Record takes the pools and queues that workers reported in one round, by name. Nil drops them.
	Record func(reports map[string]state.LastReport)
	Now    func() time.Time
}

// Inspector inspects workers and caches their replies for MaxAge, whatever the number of callers. It is safe for
// concurrent use.
type Inspector struct {
	client *Client
	alive  func() []string
	record func(reports map[string]state.LastReport)
	now    func() time.Time
	wake   chan struct{} // wakes Run to check for due inspections

	mu            sync.Mutex // guards what follows
	nodes         map[string]*cacheEntry
	reports       map[string]*cacheEntry // by name
	topology      cacheEntry
	disconnected  bool // the last round of the topology began without a connection
	cached        Topology
	pending       []pendingConsumer
	firstSeen     map[string]time.Time // when each live worker was first seen alive
	running       int                  // rounds of Run
	settings      map[string]WorkerSettings
	settingsRound cacheEntry
	taskLists     map[[sha256.Size]byte][]RegisteredTask // of settings, by the digest of the reply
	changed       chan struct{}
}

// NewInspector validates o and starts nothing.
func NewInspector(o InspectorOptions) (*Inspector, error) {
	if o.Client == nil {
		return nil, errors.New("inspector needs a control client")
	}
	i := &Inspector{
		client:    o.Client,
		alive:     o.Alive,
		record:    o.Record,
		now:       o.Now,
		wake:      make(chan struct{}, 1),
		nodes:     make(map[string]*cacheEntry),
		reports:   make(map[string]*cacheEntry),
		firstSeen: make(map[string]time.Time),
		settings:  make(map[string]WorkerSettings),
		taskLists: make(map[[sha256.Size]byte][]RegisteredTask),
		changed:   make(chan struct{}),
	}
	if i.alive == nil {
		i.alive = func() []string { return nil }
	}
	if i.record == nil {
		i.record = func(map[string]state.LastReport) {}
	}
	if i.now == nil {
		i.now = time.Now
	}
	return i, nil
}

// Run refreshes what was used recently, until ctx ends. It returns nil.
func (i *Inspector) Run(ctx context.Context) error {
	var rounds sync.WaitGroup
	defer rounds.Wait()
	for {
		work, next := i.plan()
		for _, w := range work {
			rounds.Go(func() {
				w(ctx)
				i.mu.Lock()
				i.running--
				i.mu.Unlock()
				i.wakeRun()
			})
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-i.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// plan begins and returns the rounds that are due, and when the next will be. It drops entries that were not used
// for keepFor.
func (i *Inspector) plan() (work []func(context.Context), next time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	next = keepFor
	consider := func(s *cacheEntry, round func(context.Context)) {
		if now.Sub(s.wantedAt) >= watchedFor && !s.once || s.round != nil {
			return
		}
		switch {
		case !s.due(now):
			next = min(next, s.startedAt.Add(s.pause()).Sub(now))
		case i.running < maxRounds: // else when another round ends
			i.begin(s, now)
			i.running++
			work = append(work, round)
		}
	}
	for name, s := range i.nodes {
		consider(s, func(ctx context.Context) { i.inspect(ctx, name, s) })
	}
	consider(&i.topology, i.inspectAll)
	consider(&i.settingsRound, i.inspectSettings)
	for _, subjects := range []map[string]*cacheEntry{i.nodes, i.reports} {
		maps.DeleteFunc(subjects, func(_ string, s *cacheEntry) bool {
			return now.Sub(s.usedAt) >= keepFor
		})
	}
	return work, next
}

// Forget drops everything cached of a worker.
func (i *Inspector) Forget(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.nodes, name)
	delete(i.reports, name)
	delete(i.settings, name)
}

// Cached returns the cached inspection of a worker, and has it refreshed if it is older than MaxAge. It does not
// wait. Run keeps refreshing it while Cached is called now and then.
func (i *Inspector) Cached(name string) Inspection {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	s := i.entry(i.nodes, name, now)
	i.want(s, now)
	return i.shown(name, s)
}

// Peek returns the cached inspection of a worker without refreshing it.
func (i *Inspector) Peek(name string) Inspection {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.nodes[name]
	if s == nil {
		s = &cacheEntry{inspection: Inspection{Node: name}}
	}
	return i.shown(name, s)
}

// shown is what is known of a worker. Its parts are never changed, but replaced. The caller holds mu.
func (i *Inspector) shown(name string, s *cacheEntry) Inspection {
	shown := s.inspection
	shown.Refreshing = s.round != nil
	if r := i.reports[name]; r != nil {
		shown.Report = r.inspection.Report
		if wrong := r.inspection.Errors; len(wrong) > 0 {
			shown.Errors = maps.Clone(shown.Errors)
			if shown.Errors == nil {
				shown.Errors = make(map[string]string)
			}
			maps.Copy(shown.Errors, wrong)
		}
	}
	return shown
}

// Inspect returns the inspection of a worker, refreshed now if it is older than MaxAge.
func (i *Inspector) Inspect(ctx context.Context, name string) Inspection {
	return i.refresh(ctx, i.nodes, name, i.inspect)
}

// Report is Inspect for the text of celery report alone.
func (i *Inspector) Report(ctx context.Context, name string) Inspection {
	return i.refresh(ctx, i.reports, name, i.report)
}

// refresh runs a round, or waits for the one in progress.
func (i *Inspector) refresh(
	ctx context.Context, subjects map[string]*cacheEntry, name string, round func(context.Context, string, *cacheEntry),
) Inspection {
	i.mu.Lock()
	s := i.entry(subjects, name, i.now())
	i.mu.Unlock()
	i.once(ctx, s, func(ctx context.Context) { round(ctx, name, s) })
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.shown(name, i.entry(i.nodes, name, i.now()))
}

// once runs a round if one is due. One that goes on already is waited for, until ctx ends, and followed by another if something
// has changed meanwhile.
func (i *Inspector) once(ctx context.Context, s *cacheEntry, round func(context.Context)) {
	for range 2 {
		i.mu.Lock()
		now := i.now()
		ours := s.due(now)
		if ours {
			i.begin(s, now)
		}
		running := s.round
		i.mu.Unlock()
		switch {
		case ours: // others wait for it too, so it does not end with ctx
			round(context.WithoutCancel(ctx))
		case running != nil:
			select {
			case <-running:
			case <-ctx.Done():
				return
			}
		default:
			return
		}
	}
}

// inspect runs a round of requests to one worker. It ends what begin began.
func (i *Inspector) inspect(ctx context.Context, name string, s *cacheEntry) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	requests := inspections()
	results := make([]part, len(requests))
	var all sync.WaitGroup
	for n, q := range requests {
		all.Go(func() { results[n] = i.part(ctx, name, q) })
	}
	all.Wait()
	alive := slices.Contains(i.alive(), name)

	i.mu.Lock()
	defer i.mu.Unlock()
	if stats := s.inspection.Stats; alive && stats != nil && stats.Pool.Kind == "solo" {
		explainSolo(results)
	}
	s.inspection = merge(i.client.redact, s.inspection, results)
	s.inspection.RequestedAt = s.startedAt
	i.end(s)
}

// report asks one worker for its report. It ends what begin began.
func (i *Inspector) report(ctx context.Context, name string, s *cacheEntry) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := i.part(ctx, name, inspection{method: "report"})
	i.mu.Lock()
	defer i.mu.Unlock()
	s.inspection = merge(i.client.redact, s.inspection, []part{result})
	i.end(s)
}

// part is the reply to one of the requests of a round.
type part struct {
	inspection
	reply    Reply
	err      string // why there is none
	timedOut bool   // the worker did not reply in time
}

// excuse says why a worker of one process may not reply.
func explainSolo(parts []part) {
	for n := range parts {
		if parts[n].timedOut {
			parts[n].err += ": a solo worker replies only after its task"
		}
	}
}

// part asks one request.
func (i *Inspector) part(ctx context.Context, name string, q inspection) part {
	a, err := i.client.Call(ctx, Request{
		Method: q.method, Arguments: q.arguments, Destination: []string{name}, Timeout: timeout,
	})
	p := part{inspection: q}
	switch {
	case err != nil:
		p.err = i.client.redact.SettingsText(err.Error())
	case len(a.Items) == 0 && a.Disconnected:
		p.err = "connection to the broker lost before " + name + " replied"
	case len(a.Items) == 0:
		p.err, p.timedOut = fmt.Sprintf("no reply from %s in %s", name, seconds(timeout)), true
	default:
		p.reply = a.Items[0]
		p.err = problem(p.reply)
	}
	return p
}

// problem says why a reply is not data, empty if it is.
func problem(r Reply) string {
	if r.Undecodable != "" {
		return r.Undecodable
	}
	return r.Error
}

// seconds formats a whole number of seconds: 2 s.
func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int64(d/time.Second)) }

// merge puts replies in the place of older ones. What failed stays, with an error.
func merge(r *redact.Redactor, old Inspection, parts []part) Inspection {
	next := old
	next.Errors = make(map[string]string)
	next.Times, next.Totals = maps.Clone(old.Times), maps.Clone(old.Totals)
	if next.Times == nil {
		next.Times, next.Totals = make(map[string]time.Time), make(map[string]int)
	}
	for _, p := range parts {
		if p.err == "" && !next.decode(p.method, p.reply.Value) {
			p.err = "reply to " + p.method + " is not understood"
		}
		if p.err != "" {
			next.Errors[p.method] = p.err
			continue
		}
		next.redactTasks(r, p.method)
		next.Times[p.method] = p.reply.At
		if p.reply.At.After(next.At) {
			next.At = p.reply.At
		}
	}
	return next
}

// Changed returns a channel that is closed at the next change.
func (i *Inspector) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}
