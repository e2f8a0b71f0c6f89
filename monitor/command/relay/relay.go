package relay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

const (
	finalWriteTimeout = 5 * time.Second  // for the store, once everything else has ended
	sendTimeout       = 10 * time.Second // for one command
	claimTimeout      = time.Minute      // after which a claim counts as abandoned
	maxInFlight       = 64               // commands at once
	maxWaiting        = 1024             // commands that wait for replies at once
)

// Relay sends what is in an outbox. It is safe for concurrent use.
type Relay struct {
	o    Options
	wake chan struct{} // holds a token when the store may have due commands

	slots   chan struct{} // holds a token for each group that is being sent
	senders sync.WaitGroup

	waiting chan struct{} // holds a token for each command that waits for replies
	replies sync.WaitGroup
	records *recordBuffer

	// mu guards what follows.
	mu          sync.Mutex
	changed     chan struct{}      // closed at the next change
	claimed     map[int64]struct{} // without a recorded outcome
	unreachable int                // sends in a row that found the broker unreachable
	status      Status
	lease       lease
}

// New validates o and starts nothing.
func New(o Options) (*Relay, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &Relay{
		o: o, wake: make(chan struct{}, 1), slots: make(chan struct{}, o.Parallel), records: newRecordBuffer(),
		waiting: make(chan struct{}, maxWaiting), changed: make(chan struct{}), claimed: make(map[int64]struct{}),
	}, nil
}

// Run relays until ctx ends, then waits for what is in flight, at most DrainTimeout, and records it. What was claimed and not
// sent becomes pending again. It is called once and returns nil.
func (r *Relay) Run(ctx context.Context) error {
	work, cut := context.WithCancel(context.WithoutCancel(ctx)) // of commands in flight
	defer cut()
	last, end := context.WithCancel(context.WithoutCancel(ctx)) // of recording
	defer end()
	var recorder sync.WaitGroup
	recorder.Go(func() { r.record(last) })
	var renewer sync.WaitGroup
	renewer.Go(func() { r.renew(last) })

	r.relay(ctx, work)

	over := time.AfterFunc(r.o.DrainTimeout, cut)
	defer over.Stop()
	r.senders.Wait()
	r.replies.Wait()
	r.records.close()
	late := time.AfterFunc(finalWriteTimeout, end)
	defer late.Stop()
	recorder.Wait()
	r.end(last)
	end()
	renewer.Wait()
	return nil
}

// relay claims and sends commands until ctx ends.
func (r *Relay) relay(ctx, work context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var reclaimed time.Time // zero before the first time
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		if r.held().left() <= time.Second && !r.begin(ctx) {
			timer.Reset(r.o.PollInterval)
			continue
		}
		now := r.o.Now()
		if reclaimed.IsZero() || now.Sub(reclaimed) >= r.reclaimInterval() {
			if !r.reclaim(ctx, now) {
				timer.Reset(r.o.PollInterval)
				continue
			}
			reclaimed = now
		}
		r.claim(ctx, work)
		timer.Reset(r.pause())
	}
}

// reclaim takes back what relays that are gone have left, and makes commands pending again that this one has claimed without having
// learned of it.
func (r *Relay) reclaim(ctx context.Context, now time.Time) bool {
	n, err := r.o.Store.Reclaim(ctx, r.held().name, now, now.Add(-claimTimeout), r.claimedIDs())
	if err != nil {
		if ctx.Err() == nil {
			r.o.Logger.WarnContext(ctx, "abandoned commands not reclaimed", "error", err)
		}
		return false
	}
	if n != (history.Reclaimed{}) {
		r.o.Logger.InfoContext(ctx, "abandoned commands reclaimed", "commands", n.Pending, "unanswered", n.Unanswered)
		r.change(func(s *Status) { s.Reclaimed += uint64(n.Pending) })
	}
	return true
}

// claim claims as many commands as may be in flight and starts sending them.
func (r *Relay) claim(ctx, work context.Context) {
	room := r.capacity()
	if room <= 0 {
		return
	}
	claimed, err := r.o.Store.Claim(ctx, r.held().name, r.o.Now(), room, maxInFlight/4)
	if err != nil {
		if ctx.Err() == nil {
			r.o.Logger.WarnContext(ctx, "commands not read", "error", err)
		}
		return
	}
	if len(claimed.Commands)+claimed.Expired == 0 {
		return
	}
	r.change(func(s *Status) {
		s.Expired += uint64(claimed.Expired)
		for i := range claimed.Commands {
			r.claimed[claimed.Commands[i].ID] = struct{}{}
		}
	})
	for rest := claimed.Commands; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(c history.Command) bool { return c.Group != rest[0].Group })
		if n < 0 {
			n = len(rest)
		}
		group := rest[:n]
		rest = rest[n:]
		r.senders.Go(func() { r.sendGroup(ctx, work, group) })
	}
}

// Wake makes Run check for due commands now, and wakes those who wait on Changed. Call it after changing commands.
func (r *Relay) Wake() {
	r.change(nil)
	r.poll()
}

// poll makes Run check for due commands now.
func (r *Relay) poll() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Changed returns a channel that is closed when a command changes.
func (r *Relay) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// change updates the status and wakes those who wait on Changed.
func (r *Relay) change(f func(s *Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f != nil {
		f(&r.status)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// claimedIDs returns the commands in flight without a recorded outcome.
func (r *Relay) claimedIDs() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]int64, 0, len(r.claimed))
	for id := range r.claimed {
		ids = append(ids, id)
	}
	return ids
}

// Status returns how the Relay is doing.
func (r *Relay) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.BreakerOpen = r.open()
	return s
}
