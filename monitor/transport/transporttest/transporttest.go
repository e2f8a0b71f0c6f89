// Package transporttest is the conformance suite of transport: every Broker passes the same tests. It
// knows no broker; an adapter's test hands it one in a Fixture. An adapter's TestMain should run
// goleak, which then covers the suite too.
package transporttest

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/transport"
)

// patience bounds every wait for something that should happen at once.
const patience = 10 * time.Second

// Fixture is a Broker under test, and a hand on its other side. Every call of the function given to
// Run makes a fresh one, whose messages and commands no other fixture sees.
type Fixture struct {
	Broker transport.Broker
	// Publish sends a message to where Broker's sessions receive from. Redelivered and Tag mean nothing.
	Publish func(ctx context.Context, m transport.Message) error
	// Break makes Broker's current session lose its connection.
	Break func(t *testing.T)
	// Listen returns the commands broadcast from now on, as a worker reads them.
	Listen func(t *testing.T) <-chan transport.Command
	// Redelivers says that messages never acknowledged reach the next session.
	Redelivers bool
}

// Run runs the suite, each test on its own fixture.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	tests := map[string]func(*testing.T, Fixture){
		"Receive keeps order and numbers messages":        receiveInOrder,
		"Receive passes on properties and bodies":         receiveProperties,
		"Receive returns at most MaxBatch":                receiveBatches,
		"Receive does not hold a lone message back":       receiveLone,
		"Receive honours its context":                     receiveContext,
		"Ack ignores old tags and refuses future ones":    ackBounds,
		"Ack covers every message up to its tag":          ackUpTo,
		"Broadcast reaches workers":                       broadcast,
		"Broadcast honours its context":                   broadcastContext,
		"Close ends the session for every method":         closeEnds,
		"Close wakes Receive":                             closeWakes,
		"a lost connection ends the session":              lostConnection,
		"Connect honours its context":                     connectContext,
		"a session may be used from several goroutines":   concurrent,
		"a broker may be connected to again after a loss": reconnect,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// connect opens a session that ends with the test. It tries more than once, since a broker may need
// a moment to notice that an earlier session is gone.
func connect(t *testing.T, f Fixture) transport.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	s, err := f.Broker.Connect(ctx)
	for ; err != nil; s, err = f.Broker.Connect(ctx) {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("connect to %s: %v", f.Broker, err)
		}
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close session: %v", err)
		}
	})
	return s
}

// publish sends n messages with the bodies first, first+1, ….
func publish(t *testing.T, f Fixture, first, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := first; i < first+n; i++ {
		if err := f.Publish(ctx, message(i)); err != nil {
			t.Fatalf("publish message %d: %v", i, err)
		}
	}
}

func message(i int) transport.Message {
	return transport.Message{
		Body:            []byte(strconv.Itoa(i)),
		ContentType:     "application/json",
		ContentEncoding: "utf-8",
		RoutingKey:      "task.received",
	}
}

// receive waits for n messages.
func receive(t *testing.T, s transport.Session, n int) []transport.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []transport.Message
	for len(all) < n {
		batch, err := s.Receive(ctx)
		if err != nil {
			t.Fatalf("receive after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, batch...)
	}
	if len(all) > n {
		t.Fatalf("received %d messages, want %d", len(all), n)
	}
	return all
}

// expectNothing fails the test if a message arrives soon.
func expectNothing(t *testing.T, s transport.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if batch, err := s.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("receive with nothing to come = %d messages, error %v, want %v",
			len(batch), err, context.DeadlineExceeded)
	}
}

// expectClosed fails the test if err is not that of an ended session.
func expectClosed(t *testing.T, call string, err error) {
	t.Helper()
	if !errors.Is(err, transport.ErrClosed) {
		t.Errorf("%s after the end of the session: error %v, want %v", call, err, transport.ErrClosed)
	}
}

// expectMessages compares got with the messages first, first+1, … as a session numbers them.
func expectMessages(t *testing.T, got []transport.Message, first int, redelivered bool) {
	t.Helper()
	want := make([]transport.Message, len(got))
	for i := range want {
		want[i] = message(first + i)
		want[i].Redelivered = redelivered
		want[i].Tag = uint64(i + 1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("received messages (-want +got):\n%s", diff)
	}
}

// within returns what f returns, or fails the test if it takes too long.
func within(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatalf("%s did not return within %v", what, patience)
		return nil
	}
}
