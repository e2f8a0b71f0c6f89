package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Fresh is how old an inspection may be before it is asked for again.
const MaxAge = 5 * time.Second

const (
	timeout    = 2 * time.Second  // for all answers of a round
	watchedFor = 15 * time.Second // how long after a call of Node a worker is asked again and again
	keepFor    = 10 * time.Minute // how long after the last call what it told is kept
	maxNodes   = 1_000            // workers whose answers are kept
	maxRounds  = 64               // that Run has go on at once
)

// InspectorOptions of an Inspector. Client is required.
type InspectorOptions struct {
	Client *Client
	// Alive returns the names of the workers that are expected to answer.
	Alive func() []string
	Now   func() time.Time
}

// Inspector asks workers what they are doing, at most once per worker and Fresh, however many want to know. It is safe
// for concurrent use.
type Inspector struct {
	client *Client
	alive  func() []string
	now    func() time.Time
	wake   chan struct{} // has Run look what is due

	mu           sync.Mutex // guards what follows
	nodes        map[string]*cacheEntry
	reports      map[string]*cacheEntry // the same for reports
	topology     cacheEntry
	disconnected bool // the last round of the topology began without a line
	cached       Topology
	lastKnown    map[string]LastKnown // pools and queues, of workers that have gone too
	pending      []pendingConsumer
	firstSeen    map[string]time.Time // when workers that are alive were first seen so
	running      int                  // rounds of Run
	changed      chan struct{}
}

// subject is something that is asked for in rounds, one at a time.
type cacheEntry struct {
	inspection Inspection
	wanted     time.Time     // last time that somebody asked without waiting
	once       bool          // somebody wants one round
	used       time.Time     // last time that somebody asked
	asked      time.Time     // when the last round began
	round      chan struct{} // closed when the round that goes on ends, nil if none does
	renewed    bool          // it has changed since the last round began
}

// due reports whether s may be asked.
func (s *cacheEntry) due(now time.Time) bool {
	return s.round == nil && now.Sub(s.asked) >= s.pause()
}

// pause is the least time from one round to the next.
func (s *cacheEntry) pause() time.Duration {
	if s.renewed {
		return minInterval
	}
	return MaxAge
}

// NewInspector validates o and starts nothing.
func NewInspector(o InspectorOptions) (*Inspector, error) {
	if o.Client == nil {
		return nil, errors.New("inspector needs a control client")
	}
	i := &Inspector{
		client:    o.Client,
		alive:     o.Alive,
		now:       o.Now,
		wake:      make(chan struct{}, 1),
		nodes:     make(map[string]*cacheEntry),
		reports:   make(map[string]*cacheEntry),
		firstSeen: make(map[string]time.Time),
		lastKnown: make(map[string]LastKnown),
		changed:   make(chan struct{}),
	}
	if i.alive == nil {
		i.alive = func() []string { return nil }
	}
	if i.now == nil {
		i.now = time.Now
	}
	return i, nil
}

// Run asks for what was wanted lately, until ctx ends. It returns nil.
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

// plan returns the rounds that are due, begun, and when the next will be. It forgets workers that nobody asks for.
func (i *Inspector) plan() (work []func(context.Context), next time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	next = keepFor
	consider := func(s *cacheEntry, round func(context.Context)) {
		if now.Sub(s.wanted) >= watchedFor && !s.once || s.round != nil {
			return
		}
		switch {
		case !s.due(now):
			next = min(next, s.asked.Add(s.pause()).Sub(now))
		case i.running < maxRounds: // else when another ends
			i.begin(s, now)
			i.running++
			work = append(work, round)
		}
	}
	for name, s := range i.nodes {
		consider(s, func(ctx context.Context) { i.inspect(ctx, name, s) })
	}
	consider(&i.topology, i.inspectAll)
	for _, subjects := range []map[string]*cacheEntry{i.nodes, i.reports} {
		maps.DeleteFunc(subjects, func(_ string, s *cacheEntry) bool {
			return now.Sub(s.used) >= keepFor
		})
	}
	return work, next
}

// begin marks the beginning of a round. The caller holds mu.
func (i *Inspector) begin(s *cacheEntry, now time.Time) {
	s.asked, s.round, s.once, s.renewed = now, make(chan struct{}), false, false
}

// end marks the end of a round, and tells everybody. The caller holds mu.
func (i *Inspector) end(s *cacheEntry) {
	close(s.round)
	s.round = nil
	close(i.changed)
	i.changed = make(chan struct{})
	i.wakeRun()
}

// want has s asked for now and then, from now on. The caller holds mu.
func (i *Inspector) want(s *cacheEntry, now time.Time) {
	if s.due(now) || now.Sub(s.wanted) >= watchedFor {
		i.wakeRun()
	}
	s.wanted = now
}

// stir has Run look what is due.
func (i *Inspector) wakeRun() {
	select {
	case i.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// subject returns what is known by that name. The caller holds mu.
func (i *Inspector) entry(subjects map[string]*cacheEntry, name string, now time.Time) *cacheEntry {
	s := subjects[name]
	if s == nil {
		if len(subjects) >= maxNodes {
			forget(subjects)
		}
		s = &cacheEntry{inspection: Inspection{Node: name}}
		subjects[name] = s
	}
	s.used = now
	return s
}

// forget drops the subject that was not used for longest.
func forget(subjects map[string]*cacheEntry) {
	oldest := ""
	for name, s := range subjects {
		if oldest == "" || s.used.Before(subjects[oldest].used) {
			oldest = name
		}
	}
	delete(subjects, oldest)
}

// Forget drops all that a worker has told.
func (i *Inspector) Forget(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.nodes, name)
	delete(i.reports, name)
	delete(i.lastKnown, name)
}

// Node returns what is known of a worker and has it asked again if that is not Fresh. It does not wait. While it is
// called now and then, Run keeps asking.
func (i *Inspector) Cached(name string) Inspection {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	s := i.entry(i.nodes, name, now)
	i.want(s, now)
	return i.shown(name, s)
}

// Last returns what is known of a worker, and does not have it asked.
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

// Ask returns what is known of a worker, asked now unless it is Fresh.
func (i *Inspector) Inspect(ctx context.Context, name string) Inspection {
	return i.refresh(ctx, i.nodes, name, i.inspect)
}

// AskReport is Ask for nothing but the Report.
func (i *Inspector) Report(ctx context.Context, name string) Inspection {
	return i.refresh(ctx, i.reports, name, i.report)
}

// ask asks, or waits until somebody else's round has ended.
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

// inspect is one round of questions to one worker. It ends what begin began.
func (i *Inspector) inspect(ctx context.Context, name string, s *cacheEntry) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	questions := inspections()
	results := make([]part, len(questions))
	var all sync.WaitGroup
	for n, q := range questions {
		all.Go(func() { results[n] = i.part(ctx, name, q) })
	}
	all.Wait()
	alive := slices.Contains(i.alive(), name)

	i.mu.Lock()
	defer i.mu.Unlock()
	if stats := s.inspection.Stats; alive && stats != nil && stats.Pool.Kind == "solo" {
		excuse(results)
	}
	s.inspection = merge(s.inspection, results)
	s.inspection.RequestedAt = s.asked
	i.end(s)
}

// report asks one worker for its report. It ends what begin began.
func (i *Inspector) report(ctx context.Context, name string, s *cacheEntry) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := i.part(ctx, name, inspection{method: "report", decode: decodeReport})
	i.mu.Lock()
	defer i.mu.Unlock()
	s.inspection = merge(s.inspection, []part{result})
	i.end(s)
}

// part is the answer to one of the questions of a round.
type part struct {
	inspection
	reply  Reply
	err    string // why there is none
	silent bool   // the worker did not answer in time
}

// excuse says why a worker of one process may not answer.
func excuse(parts []part) {
	for n := range parts {
		if parts[n].silent {
			parts[n].err += ": a solo worker answers only after its task"
		}
	}
}

// part asks one question.
func (i *Inspector) part(ctx context.Context, name string, q inspection) part {
	a, err := i.client.Call(ctx, Request{
		Method: q.method, Arguments: q.arguments, Destination: []string{name}, Timeout: timeout,
	})
	p := part{inspection: q}
	switch {
	case err != nil:
		p.err = i.client.mask.text(err.Error())
	case len(a.Items) == 0 && a.Disconnected:
		p.err = "connection to the broker lost before " + name + " answered"
	case len(a.Items) == 0:
		p.err, p.silent = fmt.Sprintf("no answer from %s in %s", name, seconds(timeout)), true
	default:
		p.reply = a.Items[0]
		p.err = problem(p.reply)
	}
	return p
}

// problem says why a reply is no data.
func problem(r Reply) string {
	if r.Undecodable != "" {
		return r.Undecodable
	}
	return r.Error
}

// seconds is a whole number of seconds as people write it.
func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int64(d/time.Second)) }

// merge puts answers in the place of older ones. What failed stays, with an error.
func merge(old Inspection, parts []part) Inspection {
	next := old
	next.Errors = make(map[string]string)
	next.Times, next.Totals = maps.Clone(old.Times), maps.Clone(old.Totals)
	if next.Times == nil {
		next.Times, next.Totals = make(map[string]time.Time), make(map[string]int)
	}
	for _, p := range parts {
		if p.err == "" && !p.decode(&next, p.reply.Value) {
			p.err = "answer to " + p.method + " is not understood"
		}
		if p.err != "" {
			next.Errors[p.method] = p.err
			continue
		}
		next.Times[p.method] = p.reply.At
		if p.reply.At.After(next.At) {
			next.At = p.reply.At
		}
	}
	return next
}

// Changed returns a channel that is closed when something new is known.
func (i *Inspector) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}
