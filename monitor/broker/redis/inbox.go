package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// maxWaiting is how many bytes of messages may wait to be received. Redis disconnects a subscriber that reads too
// slowly, so reading goes on when they are full, and what does not fit is dropped and counted.
const maxWaiting = 64 << 20

const overhead = 128 // bytes of a message beside its body

// inbox holds messages between the goroutine that reads them and the one that receives them. It wakes the
// latter when a batch is there, or its timeout ends, rather than for every message.
type inbox struct {
	ready chan struct{} // holds one token; sent when wanted messages wait, and at the end
	ended chan struct{} // closed at the end

	mu      sync.Mutex       // guards what follows
	waiting []broker.Message // oldest first, from head on
	head    int
	bytes   int
	wanted  int    // messages the receiver waits for, 0 if it does not wait
	dropped uint64 // messages that did not fit
	err     error  // why nothing comes any more
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1), ended: make(chan struct{})} }

// put adds messages, and counts those that do not fit as dropped.
func (b *inbox) put(messages []broker.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		if b.bytes > 0 && b.bytes+size(m) > maxWaiting {
			b.dropped++
			continue
		}
		b.waiting = append(b.waiting, m)
		b.bytes += size(m)
	}
	if b.wanted > 0 && len(b.waiting)-b.head >= b.wanted {
		b.wake()
	}
}

// size is about how much memory a message takes.
func size(m broker.Message) int { return len(m.Body) + overhead }

// drop counts a message that was not even read.
func (b *inbox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped++
}

// end says that no more messages come, and why. Those that wait are still received, unless discard. The first
// reason counts.
func (b *inbox) end(err error, discard bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if discard {
		b.waiting, b.head, b.bytes = nil, 0, 0
	}
	if b.err == nil {
		b.err = err
		close(b.ended)
	}
	b.wake()
}

// wake makes the receiver check again. The caller holds mu.
func (b *inbox) wake() {
	b.wanted = 0
	select {
	case b.ready <- struct{}{}:
	default: // it will check again anyway
	}
}

// take waits for a message, gathers what follows it shortly, and returns at most MaxBatch. It returns ctx's error,
// or why no more come.
func (b *inbox) take(ctx context.Context) ([]broker.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := b.wait(ctx, 1, nil); err != nil {
		return nil, err
	}
	enough := time.NewTimer(broker.MaxBatchDelay)
	defer enough.Stop()
	// Whatever ends this wait, the first message is there to be returned, unless the event stream was closed.
	_ = b.wait(ctx, broker.MaxBatch, enough.C)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.head == len(b.waiting) {
		return nil, b.err
	}
	batch := slices.Clone(b.waiting[b.head:min(b.head+broker.MaxBatch, len(b.waiting))])
	clear(b.waiting[b.head : b.head+len(batch)])
	b.head += len(batch)
	for _, m := range batch {
		b.bytes -= size(m)
	}
	b.tidy()
	return batch, nil
}

// tidy gives back the room of what was taken. The caller holds mu.
func (b *inbox) tidy() {
	switch left := len(b.waiting) - b.head; {
	case left == 0 && cap(b.waiting) > 4096:
		b.waiting, b.head = nil, 0
	case b.head > left:
		copy(b.waiting, b.waiting[b.head:])
		clear(b.waiting[left:])
		b.waiting, b.head = b.waiting[:left], 0
	}
}

// wait returns nil when n messages wait, or enough fires.
func (b *inbox) wait(ctx context.Context, n int, enough <-chan time.Time) error {
	for {
		if done, err := b.poll(n); done {
			return err
		}
		select {
		case <-b.ready:
		case <-enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// poll says whether the wait for n messages is over, and asks to be woken if it is not.
func (b *inbox) poll(n int) (done bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted = 0
	switch left := len(b.waiting) - b.head; {
	case left >= n:
		return true, nil
	case b.err != nil && left == 0:
		return true, b.err
	case b.err != nil:
		return true, nil
	}
	b.wanted = n
	return false, nil
}

// lost is how many messages did not fit.
func (b *inbox) lost() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// failure is why no more messages come, nil while they do.
func (b *inbox) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
