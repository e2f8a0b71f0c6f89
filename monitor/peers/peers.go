// Package peers decides which of several Umbels on one broker asks the workers: the one that has a lock which they share by Lamport's
// algorithm (package clock/mutex). Asking twice is harmless, so whenever it is not known who has the lock, each of them asks.
// The package does not know what is asked.
package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	// DefaultLease is how long a peer may be silent before the others ask themselves.
	DefaultLease = 10 * time.Second

	minRedial     = 500 * time.Millisecond
	maxRedial     = 30 * time.Second
	refusedRedial = time.Minute // after the broker has refused
	sendTimeout   = 5 * time.Second
	maxUnsent     = 256 // messages
)

// Options of Peers.
type Options struct {
	Broker broker.Broker // of which broker.PeerBroker is used; without that, the process asks alone
	Off    string        // if not empty, ask whoever else does; a sentence that says why
	Host   string        // the host's name if empty
	Lease  time.Duration // DefaultLease if zero; a fifth of it is between announcements, three of it until a peer is forgotten
	Listen time.Duration // before the lock is requested, 1 s if zero
	Logger *slog.Logger  // nil discards
}

// Peers is this process among those that watch the same cluster. It is safe for concurrent use.
type Peers struct {
	broker broker.PeerBroker // nil if there is nobody to talk to
	times  times
	host   string
	log    *slog.Logger

	mu      sync.Mutex // guards what follows
	status  Status
	note    string        // for those that may lead after this process
	noted   string        // by the last that led before it
	changed chan struct{} // closed at the next change of status

	tell chan struct{} // holds a token when the note has changed
}

// New starts nothing.
func New(o Options) *Peers {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	lease := cmp.Or(o.Lease, DefaultLease)
	p := &Peers{
		times:   times{announce: lease / 5, lease: lease, forget: 3 * lease, listen: cmp.Or(o.Listen, time.Second)},
		host:    o.Host,
		log:     o.Logger,
		changed: make(chan struct{}),
		tell:    make(chan struct{}, 1),
	}
	if p.host == "" {
		p.host, _ = os.Hostname()
	}
	p.host = p.host[:min(len(p.host), maxName)]
	p.status = Status{State: Joining, Host: p.host, PID: os.Getpid(), Since: time.Now()}
	able, ok := o.Broker.(broker.PeerBroker)
	switch {
	case o.Off != "":
		p.status.State, p.status.Reason = Off, o.Off
	case !ok:
		p.status.State, p.status.Reason = Off, "This kind of broker passes no messages between Umbels, so this one asks the workers."
	default:
		p.broker = able
	}
	return p
}

// Leads reports whether this process asks the workers.
func (p *Peers) Leads() bool { return p.Status().Asks() }

// Note sets what this process, while it leads, tells the others for when one of them leads, and tells it at once. Longer than
// MaxNote it tells nothing.
func (p *Peers) Note(note string) {
	if len(note) > MaxNote {
		note = ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if note == p.note {
		return
	}
	p.note = note
	select {
	case p.tell <- struct{}{}:
	default: // it will be told anyway
	}
}

// Noted returns the last note of another process that led, empty if none is known.
func (p *Peers) Noted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noted
}

// Status returns a copy of what is known now.
func (p *Peers) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	s.Peers = slices.Clone(s.Peers)
	return s
}

// Changed returns a channel that is closed at the next change of Status, but for the times at which peers were heard.
func (p *Peers) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Run takes part until ctx ends, and then releases the lock. It returns nil.
func (p *Peers) Run(ctx context.Context) error {
	if p.broker == nil {
		return nil
	}
	g := newGroup(p.host, os.Getpid(), p.times, time.Now())
	g.note = func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.note
	}
	failures := 0
	for ctx.Err() == nil {
		conn, err := p.broker.OpenPeers(ctx)
		if err == nil {
			opened := time.Now()
			err = p.talk(ctx, g, conn)
			if time.Since(opened) >= p.times.announce {
				failures = 0
			}
		}
		if ctx.Err() != nil {
			break
		}
		failures++
		wait := retry.After(failures, minRedial, maxRedial)
		if errors.Is(err, broker.ErrRefused) {
			wait = refusedRedial
		}
		p.log.Warn("not connected to other Umbels", "error", err, "retry_in_ms", wait.Milliseconds())
		p.wait(ctx, err, wait, g)
	}
	return nil
}

// wait waits to connect again. If the broker refuses, or nobody was known to lead for longer than a lease, the process asks alone.
func (p *Peers) wait(ctx context.Context, err error, wait time.Duration, g *group) {
	patience := p.times.lease - time.Since(g.led)
	if errors.Is(err, broker.ErrRefused) {
		patience = 0
	}
	again, alone := time.After(wait), time.After(patience)
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			return
		case <-alone:
			s := p.Status()
			s.State, s.Peers, s.ID = Fallback, nil, ""
			s.Reason = fmt.Sprintf("Umbel cannot talk to others on the broker, so it asks the workers itself: %v.", err)
			p.set(s, g.noted)
		}
	}
}

// talk takes part over a connection until it or ctx ends. Goroutines receive and send, so that a broker that stops taking messages
// does not keep this process from noticing the silence of others.
func (p *Peers) talk(ctx context.Context, g *group, conn broker.PeerConn) error {
	running, cancel := context.WithCancelCause(ctx)
	received, unsent := make(chan message), make(chan message, maxUnsent)
	var wg sync.WaitGroup
	wg.Go(func() { cancel(p.receive(running, conn, received)) })
	wg.Go(func() { cancel(send(running, conn, unsent)) })
	defer wg.Wait()
	defer func() { _ = conn.Close() }() // ends a message that the broker does not take
	defer cancel(nil)

	ticker := time.NewTicker(p.times.announce / 8)
	defer ticker.Stop()
	g.join(time.Now())
	for {
		for _, m := range g.take() {
			select {
			case unsent <- m:
			default:
				cancel(errors.New("the broker takes no messages"))
			}
		}
		p.set(p.describe(g, time.Now()), g.noted)
		select {
		case <-ctx.Done():
			return p.goodbye(ctx, g, conn)
		case <-running.Done():
			if ctx.Err() != nil { // which both cases are ready for
				return p.goodbye(ctx, g, conn)
			}
			return context.Cause(running)
		case m := <-received:
			g.receive(m, time.Now())
		case <-p.tell:
			if g.process.Held() {
				g.send(time.Now(), nil)
			}
		case now := <-ticker.C:
			g.tick(now)
		}
	}
}

// goodbye tells the others that the lock is free.
func (p *Peers) goodbye(ctx context.Context, g *group, conn broker.PeerConn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // if Publish does not end by itself
	g.leave()
	for _, m := range g.take() {
		if err := publish(ctx, conn, m); err != nil {
			return err
		}
	}
	return nil
}

func (p *Peers) receive(ctx context.Context, conn broker.PeerConn, to chan<- message) error {
	for {
		body, err := conn.Receive(ctx)
		if err != nil {
			return err
		}
		m, err := decode(body)
		if err != nil {
			p.log.Debug("message of a peer ignored", "error", err)
			continue
		}
		select {
		case to <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func send(ctx context.Context, conn broker.PeerConn, from <-chan message) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-from:
			if err := publish(ctx, conn, m); err != nil {
				return err
			}
		}
	}
}

func publish(ctx context.Context, conn broker.PeerConn, m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message to peers: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return conn.Publish(ctx, body)
}

// describe returns the status by what g knows.
func (p *Peers) describe(g *group, now time.Time) Status {
	s := Status{State: Follows, ID: g.id, Host: p.host, PID: g.pid}
	for _, id := range g.ids() {
		m := g.members[id]
		s.Peers = append(s.Peers, Peer{ID: id, Host: m.host, PID: m.pid, Leads: m.leads, Silent: m.silent, Since: m.joined, HeardAt: m.heard})
	}
	slices.SortStableFunc(s.Peers, func(a, b Peer) int { return cmp.Compare(a.Host, b.Host) })
	silent := g.silent()
	switch {
	case g.process.Held():
		s.State = Leads
	case silent != nil:
		s.State = Fallback
		s.Reason = fmt.Sprintf("Umbel on %s is silent and may have led, so each Umbel asks the workers itself for now.", cmp.Or(silent.host, "another host"))
	case g.crowded(now):
		s.State = Fallback
		s.Reason = fmt.Sprintf("More than %d Umbels are on the broker, so this one asks the workers itself.", maxMembers)
	case now.Sub(g.led) >= p.times.lease:
		s.State = Fallback
		s.Reason = "No Umbel is known to lead, so each asks the workers itself for now."
	case !g.requested:
		s.State = Joining
	}
	return s
}

// set replaces the status, and wakes those who wait if more has changed than when peers were heard.
func (p *Peers) set(s Status, noted string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noted = noted
	s.Since = p.status.Since
	same := s.State == p.status.State && s.Reason == p.status.Reason && s.ID == p.status.ID &&
		slices.EqualFunc(s.Peers, p.status.Peers, func(a, b Peer) bool {
			a.HeardAt = b.HeardAt
			return a == b
		})
	if s.State != p.status.State {
		s.Since = time.Now()
		p.log.Info("part among peers", "state", string(s.State), "reason", s.Reason, "peers", len(s.Peers))
	}
	p.status = s
	if !same {
		close(p.changed)
		p.changed = make(chan struct{})
	}
}
