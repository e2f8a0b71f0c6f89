package brokertest

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// ControlFixture is a Broker under test with the other side of its control connections. Every call of the function
// given to RunControl makes a fresh one, whose workers and queues no other fixture sees.
type ControlFixture struct {
	Broker broker.Broker
	// Break makes Broker's current control connections lose their connections.
	Break func(t *testing.T)

	// Listen attaches a worker's mailbox, which calls handle with every request, one at a time, until the test
	// ends. It returns when requests reach it.
	Listen func(t *testing.T, handle func(broker.Publishing))
	// Answer sends a reply as a worker does. It may be called from several goroutines.
	Answer func(ctx context.Context, to broker.ReplyTo, m broker.Publishing) error
	// CountsMailboxes says that Request reports how many mailboxes it reached.
	CountsMailboxes bool

	// Queue returns a name for a queue that exists until the test ends, as far as queues exist; suffix is part of
	// it.
	Queue func(t *testing.T, suffix string) string
	// Take consumes the message that is next in a queue, as a worker does, and acknowledges it.
	Take func(ctx context.Context, queue string) (broker.Publishing, error)
	// Hold consumes the message that is next in a queue and acknowledges it when the test ends. Nil where that
	// cannot be done.
	Hold func(t *testing.T, queue string)
	// Consume starts a consumer that takes nothing from a queue as long as nothing is published to it, until the
	// test ends. Nil where the broker knows no consumers.
	Consume func(t *testing.T, queue string)

	// MissesQueues says that the broker knows which queues exist.
	MissesQueues bool
	// Browses says that messages can be looked at where they wait.
	Browses bool
	// CountsUnacked says that QueueStats counts the unacknowledged messages of each queue.
	CountsUnacked bool
}

// RunControl runs the suite of control connections, each test on its own fixture.
func RunControl(t *testing.T, open func(t *testing.T) ControlFixture) {
	t.Helper()
	tests := map[string]func(controlTest){
		"Request reaches every mailbox":                           controlTest.requestReachesAll,
		"Request without workers is no error":                     controlTest.requestReachesNone,
		"Request passes on properties and bodies":                 controlTest.requestProperties,
		"ReceiveReply keeps order":                                controlTest.replyOrder,
		"ReceiveReply returns only replies to its connection":     controlTest.replyAddress,
		"ReceiveReply honours its context and loses nothing":      controlTest.replyContext,
		"Publish passes on properties and bodies":                 controlTest.publishProperties,
		"Publish keeps order":                                     controlTest.publishOrder,
		"Publish says that there is no such queue":                controlTest.publishMissing,
		"Publish to many queues at once tells them apart":         controlTest.publishConcurrent,
		"PublishEvent reaches the stream":                         controlTest.event,
		"methods honour their context":                            controlTest.contexts,
		"Purge removes what waits":                                controlTest.purge,
		"QueueStats counts ready messages":                        controlTest.queueStats,
		"QueueStats counts unacknowledged messages and consumers": controlTest.queueConsumers,
		"QueueStats describes the broker":                         controlTest.brokerInfo,
		"Peek shows what is next and leaves it":                   controlTest.peek,
		"Find finds a task that waits":                            controlTest.find,
		"Close ends the connection for every method":              controlTest.closeEnds,
		"Close wakes ReceiveReply":                                controlTest.closeWakes,
		"a lost connection ends every method":                     controlTest.lost,
		"Open honours its context":                                controlTest.openContext,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(controlTest{T: t, ControlFixture: open(t)})
		})
	}
}

// controlTest is one test of the suite, on its own fixture.
type controlTest struct {
	*testing.T
	ControlFixture
}

// open opens a control connection that ends with the test.
func (c controlTest) open() broker.ControlConn {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	l, err := c.Broker.OpenControl(ctx)
	if err != nil {
		c.Fatalf("open a control connection to %s: %v", c.Broker, err)
	}
	c.Cleanup(func() {
		if err := l.Close(); err != nil {
			c.Errorf("close control connection: %v", err)
		}
	})
	return l
}

// soon is a context for what should happen at once.
func (c controlTest) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context(), timeout)
}

// task is a message of a task, distinguished by its id.
func task(id string) broker.Publishing {
	return broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", CorrelationID: id, Persistent: true,
		Headers: map[string]any{"id": id, "task": "mail.send", "retries": int64(0)},
		Body:    []byte(`[[` + strconv.Quote(id) + `],{},{}]`),
	}
}

func (c controlTest) publish(l broker.ControlConn, queue string, m broker.Publishing) {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	if err := l.Publish(ctx, queue, m); err != nil {
		c.Fatalf("publish to %q: %v", queue, err)
	}
}

// publishTasks publishes n tasks with the ids 0, 1, ….
func (c controlTest) publishTasks(l broker.ControlConn, queue string, n int) {
	c.Helper()
	for i := range n {
		c.publish(l, queue, task(strconv.Itoa(i)))
	}
}

func (c controlTest) take(queue string) broker.Publishing {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	m, err := c.Take(ctx, queue)
	if err != nil {
		c.Fatalf("take from %q: %v", queue, err)
	}
	return m
}

func (c controlTest) answer(to broker.ReplyTo, m broker.Publishing) {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	if err := c.Answer(ctx, to, m); err != nil {
		c.Fatalf("answer to %v: %v", to, err)
	}
}

func (c controlTest) reply(l broker.ControlConn) broker.Publishing {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	m, err := l.ReceiveReply(ctx)
	if err != nil {
		c.Fatalf("wait for a reply: %v", err)
	}
	return m
}

func (c controlTest) request(l broker.ControlConn, m broker.Publishing) int {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	n, err := l.Request(ctx, m)
	if err != nil {
		c.Fatalf("request: %v", err)
	}
	return n
}

// call is a method of a control connection, named for messages.
type call struct {
	name string
	do   func(ctx context.Context) error
}

// calls are all methods that take a context.
func calls(l broker.ControlConn, queue string) []call {
	return []call{
		{"Request", func(ctx context.Context) error { _, err := l.Request(ctx, task("x")); return err }},
		{"Publish", func(ctx context.Context) error { return l.Publish(ctx, queue, task("x")) }},
		{"ReceiveReply", func(ctx context.Context) error { _, err := l.ReceiveReply(ctx); return err }},
		{"QueueStats", func(ctx context.Context) error { _, err := l.QueueStats(ctx, []string{queue}); return err }},
		{"PublishEvent", func(ctx context.Context) error { return l.PublishEvent(ctx, "task.sent", task("x")) }},
		{"Purge", func(ctx context.Context) error { _, err := l.Purge(ctx, queue); return err }},
	}
}

// contexts calls every method with a context that has ended.
func (c controlTest) contexts() {
	l, queue := c.open(), c.Queue(c.T, "contexts")
	ended, cancel := context.WithCancel(c.Context())
	cancel()
	for _, method := range calls(l, queue) {
		if err := method.do(ended); !errors.Is(err, context.Canceled) {
			c.Errorf("%s with an ended context: error %v, want %v", method.name, err, context.Canceled)
		}
	}
	c.publish(l, queue, task("after"))
	if got, want := c.take(queue).CorrelationID, "after"; got != want {
		c.Errorf("first message = %q, want %q: one was published with an ended context", got, want)
	}
}

func (c controlTest) openContext() {
	ended, cancel := context.WithCancel(c.Context())
	cancel()
	if _, err := c.Broker.OpenControl(ended); !errors.Is(err, context.Canceled) {
		c.Errorf("Open with an ended context: error %v, want %v", err, context.Canceled)
	}
}

func (c controlTest) closeEnds() {
	queue := c.Queue(c.T, "close")
	l := c.open()
	for range 2 {
		if err := l.Close(); err != nil {
			c.Errorf("close control connection: %v", err)
		}
	}
	c.expectEnded(l, queue)
	c.publish(c.open(), queue, task("later"))
}

func (c controlTest) closeWakes() {
	l := c.open()
	woken := c.waitForReply(l)
	if err := l.Close(); err != nil {
		c.Errorf("close control connection: %v", err)
	}
	c.expectWoken(woken)
}

func (c controlTest) lost() {
	queue := c.Queue(c.T, "lost")
	l := c.open()
	c.publish(l, queue, task("0"))
	woken := c.waitForReply(l)
	c.Break(c.T)
	c.expectWoken(woken)
	c.expectEnded(l, queue)
	again := c.open()
	c.publish(again, queue, task("1"))
	for _, want := range []string{"0", "1"} {
		if got := c.take(queue).CorrelationID; got != want {
			c.Errorf("message = %q, want %q", got, want)
		}
	}
}

// waitForReply returns a channel that gets the error of Reply.
func (c controlTest) waitForReply(l broker.ControlConn) <-chan error {
	c.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := l.ReceiveReply(context.WithoutCancel(c.Context()))
		ended <- err
	}()
	return ended
}

func (c controlTest) expectWoken(ended <-chan error) {
	c.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, broker.ErrClosed) {
			c.Errorf("ReceiveReply of a connection that ends: error %v, want %v", err, broker.ErrClosed)
		}
	case <-time.After(timeout):
		c.Fatalf("ReceiveReply did not return within %v of the end of the connection", timeout)
	}
}

// expectEnded fails the test if a method does anything but say that the control connection has ended.
func (c controlTest) expectEnded(l broker.ControlConn, queue string) {
	c.Helper()
	ctx, cancel := c.soon()
	defer cancel()
	for _, method := range calls(l, queue) {
		if err := method.do(ctx); !errors.Is(err, broker.ErrClosed) {
			c.Errorf("%s after the end of the connection: error %v, want %v", method.name, err, broker.ErrClosed)
		}
	}
	if c.Browses {
		if _, err := l.Peek(ctx, queue, 1); !errors.Is(err, broker.ErrClosed) {
			c.Errorf("Peek after the end of the connection: error %v, want %v", err, broker.ErrClosed)
		}
		if _, err := l.Find(ctx, []string{queue}, "0"); !errors.Is(err, broker.ErrClosed) {
			c.Errorf("Find after the end of the connection: error %v, want %v", err, broker.ErrClosed)
		}
	}
}

// byName returns the queue with a name.
func (c controlTest) byName(s broker.QueueStats, name string) broker.Queue {
	c.Helper()
	for _, q := range s.Queues {
		if q.Name == name {
			return q
		}
	}
	c.Fatalf("stats has no queue %q among %d", name, len(s.Queues))
	return broker.Queue{}
}

// shown is a number that may be unknown.
func shown(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(*n, 10)
}

// settle calls look until it returns want or timeout has passed, and returns the last result: a broker may need a
// moment to update its counts.
func settle[T cmp.Ordered](c controlTest, want T, look func() T) T {
	c.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	end := time.After(timeout)
	for {
		got := look()
		if got == want {
			return got
		}
		select {
		case <-again.C:
		case <-end:
			return got
		}
	}
}
