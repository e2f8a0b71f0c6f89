package amqp_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/transport"
	"github.com/umbelhq/umbel/monitor/transport/amqp"
)

// openLine opens a line that ends with the test.
func openLine(tb testing.TB, b *amqp.Broker) transport.Line {
	tb.Helper()
	l, err := b.Open(tb.Context())
	if err != nil {
		tb.Fatalf("open line: %v", err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Errorf("close line: %v", err)
		}
	})
	return l
}

func soon(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// until calls try until it is content.
func until(tb testing.TB, what string, try func() bool) {
	tb.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	end := time.After(patience)
	for !try() {
		select {
		case <-again.C:
		case <-end:
			tb.Fatalf("%s within %v", what, patience)
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

func TestBlockedBrokerIsToldAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, plain)
	o.URL = p.url(t, "amqp")
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	l := openLine(t, openLines(t, o))
	publish := func() error { return l.Publish(soon(t), queue, transport.Publishing{}) }
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
	for _, wrong := range []error{transport.ErrRefused, transport.ErrClosed, transport.ErrNoQueue, context.DeadlineExceeded} {
		if errors.Is(err, wrong) {
			t.Errorf("error %q is %v", err, wrong)
		}
	}
	if _, err := l.Request(soon(t), transport.Publishing{}); err == nil {
		t.Error("request to a blocked broker: no error")
	}
	s, err := l.Survey(soon(t), []string{queue})
	if err != nil || len(s.Queues) != 1 || *s.Queues[0].Ready == 0 {
		t.Errorf("survey of a blocked broker = %v, error %v, want what was published", s.Queues, err)
	}
	expectWarning(t, s, "takes no messages for now: low on memory")
	if n, err := l.Purge(soon(t), queue); err != nil || n == 0 {
		t.Errorf("purge while the broker is blocked = %d, error %v, want what was published", n, err)
	}

	p.inject(t, 61, "")
	until(t, "the broker is not noticed to be free again", func() bool { return publish() == nil })
}

// expectWarning fails the test unless a survey warns with a text.
func expectWarning(tb testing.TB, s transport.Survey, text string) {
	tb.Helper()
	if all := strings.Join(s.Broker.Warnings, "\n"); !strings.Contains(all, text) {
		tb.Errorf("warnings %q do not contain %q", all, text)
	}
}

func TestPublishWaitsForItsContextOnly(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, plain)
	o.URL = p.url(t, "amqp")
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	l := openLine(t, openLines(t, o))
	release := p.hold(t)
	large := transport.Publishing{Body: bytes.Repeat([]byte("x"), 4<<20)} // more than fits into the socket
	var wg sync.WaitGroup
	for range 20 { // more than are on their way at once
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := l.Publish(ctx, queue, large)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no confirmation from the broker") {
				t.Errorf("publish through a slow network: error %v, want %v", err, context.DeadlineExceeded)
			}
		})
	}
	wg.Wait()
	release()
	if err := l.Publish(soon(t), queue, transport.Publishing{}); err != nil {
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
	l, err := openLines(t, o).Open(t.Context())
	if err != nil {
		t.Fatalf("open line: %v", err)
	}
	p.hold(t)
	done := make(chan error, 2)
	go func() {
		done <- l.Publish(soon(t), queue, transport.Publishing{Body: bytes.Repeat([]byte("x"), 8<<20)})
	}()
	go func() {
		_, err := l.Purge(soon(t), queue)
		done <- err
	}()
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("a call that Close ends: error %v, want %v", err, transport.ErrClosed)
		}
	}
}

// TestLinePermissions takes a user from none of the permissions that a line needs to all, by doing what each error
// asks for.
func TestLinePermissions(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	openLine(t, openLines(t, o)) // declares the exchanges
	user, password := o.Version, "se/cr@t"
	rabbitmqctl(t, "add_user", user, password)
	t.Cleanup(func() { rabbitmqctl(t, "delete_user", user) })
	u, err := url.Parse(o.URL)
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	u.User = url.UserPassword(user, password)
	o.URL = u.String()
	b, err := amqp.New(o)
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	const ours = "^(reply\\.)?umbel"
	for _, step := range []struct{ configure, write, read, want string }{
		{"^$", "^$", "^$", "needs configure permission on it"},
		{"pidbox$", "^$", "^$", "declare queue"},
		{ours, "^$", "^$", "needs write permission on the queue and read permission on the exchange"},
		{ours, "^umbel.reply", "pidbox$", "needs read permission on it"},
	} {
		rabbitmqctl(t, "set_permissions", user, step.configure, step.write, step.read)
		_, err := b.Open(t.Context())
		expectError(t, err, password, step.want)
	}
	rabbitmqctl(t, "set_permissions", user, ours, "^umbel.reply", "(pidbox$|^umbel.reply)")
	l := openLine(t, b)
	for range 3 { // each refusal closes a channel, and the line goes on
		err = l.Publish(soon(t), queue, transport.Publishing{})
		expectError(t, err, password, "publish to queue", "refused by the broker", "exchange 'amq.default'", user,
			"needs write permission on it")
		if !errors.Is(err, transport.ErrRefused) || errors.Is(err, transport.ErrClosed) {
			t.Errorf("error %q is not %v alone", err, transport.ErrRefused)
		}
		_, err = l.Request(soon(t), transport.Publishing{})
		expectError(t, err, password, "refused by the broker", "pidbox'", "needs write permission on it")
		_, err = l.Purge(soon(t), queue)
		expectError(t, err, password, "refused by the broker", "needs read permission on it")
	}
	rabbitmqctl(t, "set_permissions", user, ours, "(^umbel|^amq.default$)", "(pidbox$|^umbel)")
	// What the broker has remembered of a user's permissions, it remembers for each channel.
	again := openLine(t, b)
	if err := again.Publish(soon(t), queue, transport.Publishing{}); err != nil {
		t.Errorf("publish with all permissions: %v", err)
	}
	if _, err := again.Request(soon(t), transport.Publishing{}); err != nil {
		t.Errorf("request with all permissions: %v", err)
	}
	if n, err := again.Purge(soon(t), queue); n != 1 || err != nil {
		t.Errorf("purge with all permissions = %d, error %v, want 1", n, err)
	}
}

// TestRefusalsTouchNobodyElse publishes what the broker refuses beside what it takes.
func TestRefusalsTouchNobodyElse(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	l := openLine(t, openLines(t, o))
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for i := range 20 {
				m := transport.Publishing{Body: []byte(strconv.Itoa(i))}
				if p%2 == 0 {
					m.Expiration = "never"
				}
				err := l.Publish(soon(t), queue, m)
				if p%2 == 1 && err != nil {
					t.Errorf("publish beside what is refused: %v", err)
				}
				if p%2 == 0 && (!errors.Is(err, transport.ErrRefused) || !strings.Contains(err.Error(), "expiration")) {
					t.Errorf("publish with a bad expiration: error %v, want %v", err, transport.ErrRefused)
				}
			}
		})
	}
	wg.Wait()
	if n, err := l.Purge(soon(t), queue); n != 80 || err != nil {
		t.Errorf("purge = %d, error %v, want the 80 that were taken", n, err)
	}
}

func TestFullQueueIsNoRefusal(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, amqp091.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	l := openLine(t, openLines(t, o))
	if err := l.Publish(soon(t), queue, transport.Publishing{}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	err := l.Publish(soon(t), queue, transport.Publishing{})
	expectError(t, err, "", "the broker could not take the message")
	if errors.Is(err, transport.ErrRefused) || errors.Is(err, transport.ErrClosed) {
		t.Errorf("error %q says that trying again is of no use", err)
	}
}

func TestDeletedExchangeEndsTheLine(t *testing.T) {
	t.Parallel()
	o := options(t)
	b := openLines(t, o)
	l := openLine(t, b)
	if err := channel(t).ExchangeDelete(o.ControlExchange+".pidbox", false, false); err != nil {
		t.Fatalf("delete exchange: %v", err)
	}
	_, err := l.Request(soon(t), transport.Publishing{})
	if !errors.Is(err, transport.ErrClosed) {
		t.Errorf("request to an exchange that was deleted: error %v, want %v", err, transport.ErrClosed)
	}
	if _, err := l.Reply(soon(t)); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("reply after that: error %v, want %v", err, transport.ErrClosed)
	}
	if _, err := openLine(t, b).Request(soon(t), transport.Publishing{}); err != nil {
		t.Errorf("request of the next line: %v", err)
	}
}

func TestUnsendable(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	l := openLine(t, openLines(t, o))
	long := strings.Repeat("x", 256)
	for name, test := range map[string]struct {
		queue   string
		message transport.Publishing
		want    string
	}{
		"queue":          {queue: long, want: "name of the queue is longer than 255 bytes"},
		"content type":   {message: transport.Publishing{ContentType: long}, want: "content type is longer"},
		"encoding":       {message: transport.Publishing{ContentEncoding: long}, want: "content encoding is longer"},
		"correlation id": {message: transport.Publishing{CorrelationID: long}, want: "correlation id is longer"},
		"reply to":       {message: transport.Publishing{ReplyTo: long}, want: "queue for replies is longer"},
		"expiration":     {message: transport.Publishing{Expiration: long}, want: "expiration is longer"},
		"header name":    {message: transport.Publishing{Headers: map[string]any{long: 1}}, want: "is longer than 255 bytes"},
		"header":         {message: transport.Publishing{Headers: map[string]any{"n": 1}}, want: `"n": is of type int`},
		"deep header": {
			message: transport.Publishing{Headers: map[string]any{"a": []any{map[string]any{"b": struct{}{}}}}},
			want:    `"a": element 0: "b": is of type struct`,
		},
	} {
		if test.queue == "" {
			test.queue = queue
		}
		err := l.Publish(soon(t), test.queue, test.message)
		expectError(t, err, "", test.want)
		if !errors.Is(err, transport.ErrRefused) {
			t.Errorf("%s: error %v, want %v", name, err, transport.ErrRefused)
		}
	}
	if err := l.Publish(soon(t), queue, transport.Publishing{}); err != nil {
		t.Errorf("publish after all that: %v", err)
	}
}

// TestRepliesOfEveryType has a worker's headers hold what AMQP can hold and the seam does not name.
func TestRepliesOfEveryType(t *testing.T) {
	t.Parallel()
	o := options(t)
	l := openLine(t, openLines(t, o))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	to := l.ReplyTo()
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
	m, err := l.Reply(soon(t))
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

func TestLineClosedByTheOperator(t *testing.T) {
	t.Parallel()
	o := options(t)
	l := openLine(t, openLines(t, o))
	const why = "maintenance at noon"
	for line := range strings.Lines(rabbitmqctl(t, "-q", "list_connections", "pid", "client_properties")) {
		if pid, properties, _ := strings.Cut(line, "\t"); strings.Contains(properties, "umbel "+o.Version) {
			rabbitmqctl(t, "close_connection", pid, why)
			break // the loss of one of the two is that of the line
		}
	}
	_, err := l.Reply(soon(t))
	expectError(t, err, "guest", "connection lost: ", why)
	if !errors.Is(err, transport.ErrClosed) {
		t.Errorf("error %v is not %v", err, transport.ErrClosed)
	}
}

func TestSurveyTellsOfSingleQueues(t *testing.T) {
	t.Parallel()
	o := options(t)
	locked := o.ControlExchange + ".locked"
	declareQueue(t, locked, true, nil)
	l := openLine(t, openLines(t, o))
	long := strings.Repeat("y", 300)
	s, err := l.Survey(soon(t), []string{locked, long})
	if err != nil {
		t.Fatalf("survey: %v", err)
	}
	if len(s.Queues) != 2 || !strings.Contains(s.Queues[0].Error, "one connection alone") || !s.Queues[1].Missing {
		t.Errorf("survey = %+v, want an error and a missing queue", s.Queues)
	}
	if _, err := l.Purge(soon(t), locked); !errors.Is(err, transport.ErrRefused) {
		t.Errorf("purge another connection's queue: error %v, want %v", err, transport.ErrRefused)
	}
}

func TestSurveyIsBounded(t *testing.T) {
	t.Parallel()
	o := options(t)
	l := openLine(t, openLines(t, o))
	names := make([]string, 700)
	for i := range names {
		names[i] = o.ControlExchange + "." + strconv.Itoa(i)
	}
	s, err := l.Survey(soon(t), names)
	if err != nil {
		t.Fatalf("survey: %v", err)
	}
	if got, want := len(s.Queues), 500; got != want {
		t.Errorf("survey has %d queues, want %d", got, want)
	}
	for _, q := range s.Queues {
		if !q.Missing {
			t.Errorf("queue %s is not missing: %s", q.Name, q.Error)
		}
	}
	expectWarning(t, s, "700 queues are too many to look at: 200 are left out.")
}
