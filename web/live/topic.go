package live

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel/web/fair"
)

const (
	// interval is the least time between two renderings of a topic, maxInterval that after a large frame.
	interval    = 250 * time.Millisecond
	maxInterval = 500 * time.Millisecond
	// bytesPerSec is what a topic may send to each socket before its frames become fewer.
	bytesPerSec = 20_000
	// rest is how many times as long as it rendered a topic rests, so that a slow one does not keep the
	// program busy.
	rest = 9
	// renderTimeout is how long a rendering may take, the wait for its slot not counted.
	renderTimeout = 5 * time.Second
)

// topic renders one topic for all its subscribers. Its goroutine runs while it has any; without, the
// topic is kept for a while as it is, so that a client that comes back can resume.
type topic struct {
	key    key
	epoch  string
	source Source
	slots  *fair.Slots
	share  *atomic.Int64 // bytes of frames to keep
	pack   *compressor
	log    *slog.Logger
	idle   chan struct{} // wakes the goroutine when the last subscriber has left

	mu        sync.Mutex
	subs      map[*session]uint64 // the number of renderings that the session waits for
	running   bool
	idleSince time.Time
	stop      func()          // ends the rendering that is at work or waits, nil if there is none
	ticket    *fair.Ticket    // of that rendering
	rendering bool            // it is at work
	renders   uint64          // renderings done
	changed   <-chan struct{} // closed when the last rendering, or the one at work, is out of date
	err       error           // of the last rendering
	snap      Snapshot        // of the last good rendering
	seq       uint64          // of the last frame
	tail      []byte          // the last frames, to which the next one may refer
	full      []byte          // the message with everything at seq, nil until somebody needs it
	ring      ring
}

func newTopic(k key, h *Hub) *topic {
	return &topic{
		key:    k,
		epoch:  rand.Text()[:12],
		source: h.opt.Source,
		slots:  h.slots,
		share:  &h.share,
		pack:   &h.pack,
		log:    h.opt.Logger,
		idle:   make(chan struct{}, 1),
		subs:   map[*session]uint64{},
	}
}

// cursor is how far a session has read a topic.
type cursor struct {
	epoch string
	seq   uint64
	need  uint64    // renderings to wait for before a reset
	late  bool      // the client knows that the topic cannot be rendered now
	page  string    // name of the page that the client has and no frame yet, empty if it has none
	base  *Snapshot // what that page showed, nil if that is not known
}

// subscribe adds s, which has read as far as req says, and reports whether the caller must start run.
func (t *topic) subscribe(s *session, req request) (c cursor, start bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// The client has a page that may be newer than snap: a reset must not take it back in time.
	c = cursor{epoch: req.epoch, seq: req.seq, page: req.page, need: t.renders}
	if t.rendering {
		c.need++
	}
	if closed(t.changed) {
		c.need++
	}
	t.subs[s] = c.need
	if t.ticket != nil {
		t.ticket.Join(s.client)
	}
	start = !t.running
	t.running = true
	return c, start
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (t *topic) unsubscribe(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subs, s)
	if len(t.subs) == 0 {
		t.idleSince = time.Now()
		if t.stop != nil {
			t.stop()
		}
		select {
		case t.idle <- struct{}{}:
		default:
		}
	}
}

// run renders after every change, with a pause in between, until there are no subscribers.
func (t *topic) run() {
	for {
		r := t.enter()
		changed, pause := t.render(r)
		t.leave(r)
		if changed == nil { // nobody watched
			if t.park() {
				return
			}
			continue
		}
		if !wait(t, time.After(pause)) || !wait(t, changed) {
			return
		}
	}
}

// wait blocks until c is ready. It reports false as soon as the topic has no subscribers.
func wait[T any](t *topic, c <-chan T) bool {
	for {
		select {
		case <-c:
			return true
		case <-t.idle:
			if t.park() {
				return false
			}
		}
	}
}

// park reports whether the goroutine ends, having no subscribers.
func (t *topic) park() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = len(t.subs) > 0
	return !t.running
}

// rendering is one on its way. Any of the clients that watch pays for it.
type rendering struct {
	ctx    context.Context //nolint:containedctx // it ends when nobody watches
	stop   func()
	ticket *fair.Ticket
}

// enter asks for a slot.
func (t *topic) enter() rendering {
	t.mu.Lock()
	defer t.mu.Unlock()
	clients := make([]fair.Client, 0, len(t.subs))
	for s := range t.subs {
		clients = append(clients, s.client)
	}
	ctx, stop := context.WithCancel(context.Background())
	if len(clients) == 0 {
		stop()
	}
	t.stop, t.ticket = stop, t.slots.Enter(clients...)
	return rendering{ctx, stop, t.ticket}
}

func (t *topic) leave(r rendering) {
	r.ticket.Leave()
	r.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop, t.ticket = nil, nil
}

// render takes a snapshot, publishes what is new in it, and returns the channel that is closed when the snapshot is out
// of date, and the pause until the next one. The channel is nil if nobody watched to the end.
func (t *topic) render(r rendering) (<-chan struct{}, time.Duration) {
	select {
	case <-r.ticket.Ready():
	case <-r.ctx.Done():
		return nil, 0
	}
	start := time.Now()
	changed := t.source.Changed()
	t.mu.Lock()
	t.rendering = true
	t.changed = changed
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(fair.NewContext(r.ctx, r.ticket.By()), renderTimeout)
	s, err := t.snapshot(ctx)
	cancel()
	r.ticket.Leave() // the rest takes no time

	var text, f []byte
	if err == nil {
		text, err = t.frame(s)
	}
	took := time.Since(start)
	if text != nil {
		f = t.pack.compress(follows, t.tail, text)
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.rendering = false
	t.renders++
	if r.ctx.Err() != nil { // what came of it may be no fault of the topic
		return nil, 0
	}
	t.publish(s, f, err)
	if text != nil {
		t.tail = last(t.tail, text)
	}
	size := min(maxInterval, time.Duration(len(f))*time.Second/bytesPerSec)
	return changed, max(interval-took, size-took, rest*took)
}

// publish keeps what came of a rendering, and tells those who wait for it. The caller holds mu.
func (t *topic) publish(s Snapshot, f []byte, err error) {
	if err != nil && t.err == nil && !errors.Is(err, ErrNoTopic) {
		t.log.Warn("topic cannot be rendered", "topic", t.key.topic, "error", err)
	}
	recovered := t.err != nil && err == nil
	t.err = err
	if err == nil {
		t.snap = s
	}
	if f != nil {
		t.seq++
		t.full = nil
		t.ring.push(t.seq, f, time.Now(), int(t.share.Load()))
	}
	for sub, need := range t.subs {
		if f != nil || err != nil || recovered || need == t.renders {
			sub.notify()
		}
	}
}

// isLate reports whether the last rendering failed.
func (t *topic) isLate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil && !errors.Is(t.err, ErrNoTopic)
}

// snapshot renders the topic. A panic in a template must not end the program.
func (t *topic) snapshot(ctx context.Context) (s Snapshot, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("render topic: panic: %v", p)
		}
	}()
	return t.source.Snapshot(ctx, t.key.audience, t.key.topic)
}

// frame returns the frame that leads from snap to s, and a newline, nil if they look the same. Only the topic's goroutine
// writes what it reads, so it needs no lock.
func (t *topic) frame(s Snapshot) ([]byte, error) {
	ops, same := diff(t.snap, s)
	if len(ops) == 0 && same && t.seq > 0 {
		return nil, nil
	}
	text, err := encode(frame{Reset: !same || t.seq == 0, Ops: append([]op{}, ops...)})
	return append(text, '\n'), err
}

// next returns the message after c, one that leads from its page, one with everything if there is none for c, or nil if c
// has read all, and moves c. The error is that of a topic that cannot be shown.
func (t *topic) next(c *cursor) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renders >= c.need && errors.Is(t.err, ErrNoTopic) {
		return nil, t.err
	}
	if c.epoch == t.epoch && c.seq > 0 {
		if c.seq == t.seq {
			return nil, nil
		}
		if f, ok := t.ring.at(c.seq + 1); ok {
			c.seq++
			return f, nil
		}
	}
	if t.renders < c.need || t.seq == 0 {
		return nil, nil
	}
	base, f := Snapshot{}, frame{Epoch: t.epoch, Seq: t.seq, Reset: true}
	if c.base != nil {
		base, f.Reset, f.Page = *c.base, false, c.page
	}
	c.epoch, c.seq, c.base = t.epoch, t.seq, nil
	if f.Reset && t.full != nil {
		return t.full, nil
	}
	ops, _ := diff(base, t.snap)
	f.Ops = append([]op{}, ops...)
	text, err := encode(f)
	if err != nil {
		return nil, err
	}
	message := t.pack.compress(starts, nil, slices.Concat(t.tail, text))
	if f.Reset {
		t.full = message
	}
	return message, nil
}

// parkedSince returns when the last subscriber left, false if the topic is in use.
func (t *topic) parkedSince() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.idleSince, !t.running && len(t.subs) == 0
}
