// Package brokertest is the conformance suite of broker: every Broker passes the same tests. It
// knows no broker; an adapter's test hands it one in a Fixture. An adapter's TestMain should run
// goleak, which then covers the suite too.
package brokertest

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
)

// timeout bounds every wait for something that should happen at once.
const timeout = 3 * time.Minute

// Fixture is a Broker under test, and a hand on its other side. Every call of the function given to
// Run makes a fresh one, whose messages no other fixture sees.
type Fixture struct {
	Broker broker.Broker
	// Publish sends a message to where Broker's event streams receive from. Redelivered and Tag mean nothing.
	Publish func(ctx context.Context, m broker.Message) error
	// Break makes Broker's current event stream lose its connection.
	Break func(t *testing.T)
	// Redelivers says that messages never acknowledged reach the next event stream.
	Redelivers bool
}

// Run runs the suite, each test on its own fixture.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	tests := map[string]func(streamTest){
		"Receive keeps order and numbers messages":        streamTest.receiveInOrder,
		"Receive passes on properties and bodies":         streamTest.receiveProperties,
		"Receive returns at most MaxBatch":                streamTest.receiveBatches,
		"Receive does not hold a lone message back":       streamTest.receiveLone,
		"Receive honours its context":                     streamTest.receiveContext,
		"Ack ignores old tags and refuses future ones":    streamTest.ackBounds,
		"Ack covers every message up to its tag":          streamTest.ackUpTo,
		"Close ends the stream for every method":          streamTest.closeEnds,
		"Close wakes Receive":                             streamTest.closeWakes,
		"a lost connection ends the stream":               streamTest.lostConnection,
		"an unread stream reports its end":                streamTest.lostUnread,
		"Connect honours its context":                     streamTest.connectContext,
		"a stream may be used from several goroutines":    streamTest.concurrent,
		"a broker may be connected to again after a loss": streamTest.reconnect,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(streamTest{T: t, Fixture: open(t)})
		})
	}
}

// streamTest is one test of the suite, on its own fixture.
type streamTest struct {
	*testing.T
	Fixture
}

// connect opens an event stream that ends with the test. It tries more than once, since a broker may need
// a moment to notice that an earlier event stream is gone.
func (c streamTest) connect() broker.EventStream {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	s, err := c.Broker.Subscribe(ctx)
	for ; err != nil; s, err = c.Broker.Subscribe(ctx) {
		select {
		case <-again.C:
		case <-ctx.Done():
			c.Fatalf("connect to %s: %v", c.Broker, err)
		}
	}
	c.Cleanup(func() {
		if err := s.Close(); err != nil {
			c.Errorf("close stream: %v", err)
		}
	})
	return s
}

// publish sends n messages with the bodies first, first+1, ….
func (c streamTest) publish(first, n int) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	for i := first; i < first+n; i++ {
		if err := c.Publish(ctx, message(i)); err != nil {
			c.Fatalf("publish message %d: %v", i, err)
		}
	}
}

func message(i int) broker.Message {
	return broker.Message{
		Body:            []byte(strconv.Itoa(i)),
		ContentType:     "application/json",
		ContentEncoding: "utf-8",
		RoutingKey:      "task.received",
	}
}

// receive waits for n messages.
func (c streamTest) receive(s broker.EventStream, n int) []broker.Message {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	var all []broker.Message
	for len(all) < n {
		batch, err := s.Receive(ctx)
		if err != nil {
			c.Fatalf("receive after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, batch...)
	}
	if len(all) > n {
		c.Fatalf("received %d messages, want %d", len(all), n)
	}
	return all
}

// expectNothing fails the test if a message arrives soon.
func (c streamTest) expectNothing(s broker.EventStream) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 50*time.Millisecond)
	defer cancel()
	if batch, err := s.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		c.Errorf("receive with nothing to come = %d messages, error %v, want %v",
			len(batch), err, context.DeadlineExceeded)
	}
}

// expectClosed fails the test if err is not that of an ended event stream.
func (c streamTest) expectClosed(call string, err error) {
	c.Helper()
	if !errors.Is(err, broker.ErrClosed) {
		c.Errorf("%s after the end of the stream: error %v, want %v", call, err, broker.ErrClosed)
	}
}

// expectMessages compares got with the messages first, first+1, … as an event stream numbers them.
func (c streamTest) expectMessages(got []broker.Message, first int, redelivered bool) {
	c.Helper()
	want := make([]broker.Message, len(got))
	for i := range want {
		want[i] = message(first + i)
		want[i].Redelivered = redelivered
		want[i].Tag = uint64(i + 1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("received messages (-want +got):\n%s", diff)
	}
}

// within returns what call returns, or fails the test if it takes too long.
func (c streamTest) within(what string, call func() error) error {
	c.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(timeout):
		c.Fatalf("%s did not return within %v", what, timeout)
		return nil
	}
}
