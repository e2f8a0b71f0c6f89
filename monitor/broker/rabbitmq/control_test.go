package rabbitmq_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

// openControl opens a control connection that ends with the test.
func openControl(tb testing.TB, b *rabbitmq.Broker) broker.ControlConn {
	tb.Helper()
	c, err := b.OpenControl(tb.Context())
	if err != nil {
		tb.Fatalf("open control connection: %v", err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("close line: %v", err)
		}
	})
	return c
}

func soon(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), timeout)
	tb.Cleanup(cancel)
	return ctx
}

// until calls try until it is content.
func until(tb testing.TB, what string, try func() bool) {
	tb.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	end := time.After(timeout)
	for !try() {
		select {
		case <-again.C:
		case <-end:
			tb.Fatalf("%s within %v", what, timeout)
		}
	}
}

// deleteLater deletes a queue when the test ends.
func deleteLater(tb testing.TB, ch *amqp091.Channel, queue string) {
	tb.Helper()
	tb.Cleanup(func() {
		if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
			tb.Errorf("delete queue: %v", err)
		}
	})
}

func declareQueue(tb testing.TB, queue string, exclusive bool, arguments amqp091.Table) *amqp091.Channel {
	tb.Helper()
	ch := channel(tb)
	if _, err := ch.QueueDeclare(queue, !exclusive, false, exclusive, false, arguments); err != nil {
		tb.Fatalf("declare queue: %v", err)
	}
	deleteLater(tb, ch, queue)
	return ch
}

func TestBlockedBrokerIsReportedWithoutWaiting(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, plain)
	o.URL = p.url(t, "amqp")
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	c := openControl(t, controlBroker(t, o))
	publish := func() error { return c.Publish(soon(t), queue, broker.Publishing{}) }
	if err := publish(); err != nil {
		t.Fatalf("publish: %v", err)
	}

	p.inject(t, 60, "\x0dlow on memory")
	var err error
	until(t, "the broker is not noticed to be blocked", func() bool {
		err = publish()
		return err != nil
	})
	expectError(t, err, "guest", "the broker takes no messages for now: low on memory")
	for _, wrong := range []error{broker.ErrRefused, broker.ErrClosed, broker.ErrNoQueue, context.DeadlineExceeded} {
		if errors.Is(err, wrong) {
			t.Errorf("error %q is %v", err, wrong)
		}
	}
	if _, err := c.Request(soon(t), broker.Publishing{}); err == nil {
		t.Error("request to a blocked broker: no error")
	}
	s, err := c.QueueStats(soon(t), []string{queue})
	if err != nil || len(s.Queues) != 1 || *s.Queues[0].Ready == 0 {
		t.Errorf("stats of a blocked broker = %v, error %v, want what was published", s.Queues, err)
	}
	expectWarning(t, s, "takes no messages for now: low on memory")
	if n, err := c.Purge(soon(t), queue); err != nil || n == 0 {
		t.Errorf("purge while the broker is blocked = %d, error %v, want what was published", n, err)
	}

	p.inject(t, 61, "")
	until(t, "the broker is not noticed to be free again", func() bool { return publish() == nil })
}

// expectWarning fails the test unless a QueueStats call warns with a text.
func TestPublishWaitsForItsContextOnly(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, plain)
	o.URL = p.url(t, "amqp")
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	c := openControl(t, controlBroker(t, o))
	release := p.hold(t)
	large := broker.Publishing{Body: bytes.Repeat([]byte("x"), 4<<20)} // more than fits into the socket
	var wg sync.WaitGroup
	for range 20 { // more than are on their way at once
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in which even a busy machine begins
			defer cancel()
			err := c.Publish(ctx, queue, large)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no confirmation from the broker") {
				t.Errorf("publish through a slow network: error %v, want %v", err, context.DeadlineExceeded)
			}
		})
	}
	wg.Wait()
	release()
	if err := c.Publish(soon(t), queue, broker.Publishing{}); err != nil {
		t.Errorf("publish once the network is well again: %v", err)
	}
}

func TestCloseEndsWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, plain)
	o.URL = p.url(t, "amqp")
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	c, err := controlBroker(t, o).OpenControl(t.Context())
	if err != nil {
		t.Fatalf("open control connection: %v", err)
	}
	p.hold(t)
	done := make(chan error, 2)
	go func() {
		done <- c.Publish(soon(t), queue, broker.Publishing{Body: bytes.Repeat([]byte("x"), 8<<20)})
	}()
	go func() {
		_, err := c.Purge(soon(t), queue)
		done <- err
	}()
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, broker.ErrClosed) {
			t.Errorf("a call that Close ends: error %v, want %v", err, broker.ErrClosed)
		}
	}
}

// TestControlPermissions takes a user from none of the permissions that a control connection needs to all, by doing what each error
// asks for.
// TestRefusalsTouchNobodyElse publishes what the broker refuses beside what it takes.
func TestDeletedExchangeEndsTheControlConn(t *testing.T) {
	t.Parallel()
	o := options(t)
	b := controlBroker(t, o)
	c := openControl(t, b)
	if err := channel(t).ExchangeDelete(o.ControlExchange+".pidbox", false, false); err != nil {
		t.Fatalf("delete exchange: %v", err)
	}
	_, err := c.Request(soon(t), broker.Publishing{})
	if !errors.Is(err, broker.ErrClosed) {
		t.Errorf("request to an exchange that was deleted: error %v, want %v", err, broker.ErrClosed)
	}
	if _, err := c.ReceiveReply(soon(t)); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("reply after that: error %v, want %v", err, broker.ErrClosed)
	}
	if _, err := openControl(t, b).Request(soon(t), broker.Publishing{}); err != nil {
		t.Errorf("request of the next line: %v", err)
	}
}

// TestRepliesOfEveryType has a worker's headers hold what AMQP can hold and the seam does not name.
func TestRepliesOfEveryType(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := openControl(t, controlBroker(t, o))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	to := c.ReplyTo()
	err := channel(t).PublishWithContext(t.Context(), to.Exchange, to.RoutingKey, false, false, amqp091.Publishing{
		Headers: amqp091.Table{
			"byte": byte(1), "int8": int8(-2), "int16": int16(-3), "uint16": uint16(4), "int32": int32(-5), "uint32": uint32(6),
			"float32": float32(1.5), "bytes": []byte("b"), "time": at, "decimal": amqp091.Decimal{Scale: 2, Value: 314},
			"nested": []any{amqp091.Table{"n": int32(7)}},
		},
		Body: []byte("{}"),
	})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	m, err := c.ReceiveReply(soon(t))
	if err != nil {
		t.Fatalf("reply: %v", err)
	}
	want := map[string]any{
		"byte": int64(1), "int8": int64(-2), "int16": int64(-3), "uint16": int64(4), "int32": int64(-5), "uint32": int64(6),
		"float32": 1.5, "bytes": "b", "time": "2026-01-02T03:04:05Z", "decimal": 3.14,
		"nested": []any{map[string]any{"n": int64(7)}},
	}
	expectEqual(t, "headers", m.Headers, want)
}

func TestControlConnClosedByTheOperator(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := openControl(t, controlBroker(t, o))
	const why = "maintenance at noon"
	closeConnection(t, o.Version, why) // the loss of one of the two is that of the control connection
	_, err := c.ReceiveReply(soon(t))
	expectError(t, err, "guest", "connection lost: ", why)
	if !errors.Is(err, broker.ErrClosed) {
		t.Errorf("error %v is not %v", err, broker.ErrClosed)
	}
}
