package rabbitmq_test

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

func TestControlPermissions(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	openControl(t, controlBroker(t, o)) // declares the exchanges
	user, password := o.Version, "se/cr@t"
	addUser(t, user, password)
	u, err := url.Parse(o.URL)
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	u.User = url.UserPassword(user, password)
	o.URL = u.String()
	b, err := rabbitmq.New(o)
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	const ours = "^(reply\\.)?umbel"
	for _, step := range []struct{ configure, write, read, want string }{
		{"^$", "^$", "^$", "needs configure permission on it"},
		{"pidbox$", "^$", "^$", "declare exchange"},
		{"(pidbox|[.]ev)$", "^$", "^$", "declare queue"},
		{ours, "^$", "^$", "needs write permission on the queue and read permission on the exchange"},
		{ours, "^umbel.reply", "pidbox$", "needs read permission on it"},
	} {
		setPermissions(t, user, step.configure, step.write, step.read)
		_, err := b.OpenControl(t.Context())
		expectError(t, err, password, step.want)
	}
	setPermissions(t, user, ours, "^umbel.reply", "(pidbox$|^umbel.reply)")
	c := openControl(t, b)
	for range 3 { // each refusal closes a channel, and the control connection goes on
		err = c.Publish(soon(t), queue, broker.Publishing{})
		expectError(t, err, password, "publish to queue", "refused by the broker", "exchange 'amq.default'", user,
			"needs write permission on it")
		if !errors.Is(err, broker.ErrRefused) || errors.Is(err, broker.ErrClosed) {
			t.Errorf("error %q is not %v alone", err, broker.ErrRefused)
		}
		_, err = c.Request(soon(t), broker.Publishing{})
		expectError(t, err, password, "refused by the broker", "pidbox'", "needs write permission on it")
		_, err = c.Purge(soon(t), queue)
		expectError(t, err, password, "refused by the broker", "needs read permission on it")
	}
	setPermissions(t, user, ours, "(^umbel|^amq.default$)", "(pidbox$|^umbel)")
	// What the broker has remembered of a user's permissions, it remembers for each channel.
	again := openControl(t, b)
	if err := again.Publish(soon(t), queue, broker.Publishing{}); err != nil {
		t.Errorf("publish with all permissions: %v", err)
	}
	if _, err := again.Request(soon(t), broker.Publishing{}); err != nil {
		t.Errorf("request with all permissions: %v", err)
	}
	if n, err := again.Purge(soon(t), queue); n != 1 || err != nil {
		t.Errorf("purge with all permissions = %d, error %v, want 1", n, err)
	}
}

func TestRefusalsTouchNobodyElse(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	c := openControl(t, controlBroker(t, o))
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for i := range 20 {
				m := broker.Publishing{Body: []byte(strconv.Itoa(i))}
				if p%2 == 0 {
					m.Expiration = "never"
				}
				err := c.Publish(soon(t), queue, m)
				if p%2 == 1 && err != nil {
					t.Errorf("publish beside what is refused: %v", err)
				}
				if p%2 == 0 && (!errors.Is(err, broker.ErrRefused) || !strings.Contains(err.Error(), "expiration")) {
					t.Errorf("publish with a bad expiration: error %v, want %v", err, broker.ErrRefused)
				}
			}
		})
	}
	wg.Wait()
	if n, err := c.Purge(soon(t), queue); n != 80 || err != nil {
		t.Errorf("purge = %d, error %v, want the 80 that were taken", n, err)
	}
}

func TestFullQueueIsNoRefusal(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, amqp091.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
	c := openControl(t, controlBroker(t, o))
	if err := c.Publish(soon(t), queue, broker.Publishing{}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	err := c.Publish(soon(t), queue, broker.Publishing{})
	expectError(t, err, "", "the broker could not take the message")
	if errors.Is(err, broker.ErrRefused) || errors.Is(err, broker.ErrClosed) {
		t.Errorf("error %q says that trying again is of no use", err)
	}
}

func TestUnsendable(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	c := openControl(t, controlBroker(t, o))
	long := strings.Repeat("x", 256)
	for name, test := range map[string]struct {
		queue   string
		message broker.Publishing
		want    string
	}{
		"queue":          {queue: long, want: "name of the queue is longer than 255 bytes"},
		"content type":   {message: broker.Publishing{ContentType: long}, want: "content type is longer"},
		"encoding":       {message: broker.Publishing{ContentEncoding: long}, want: "content encoding is longer"},
		"correlation id": {message: broker.Publishing{CorrelationID: long}, want: "correlation id is longer"},
		"reply to":       {message: broker.Publishing{ReplyTo: long}, want: "queue for replies is longer"},
		"expiration":     {message: broker.Publishing{Expiration: long}, want: "expiration is longer"},
		"header name":    {message: broker.Publishing{Headers: map[string]any{long: 1}}, want: "is longer than 255 bytes"},
		"header":         {message: broker.Publishing{Headers: map[string]any{"n": 1}}, want: `"n": is of type int`},
		"deep header": {
			message: broker.Publishing{Headers: map[string]any{"a": []any{map[string]any{"b": struct{}{}}}}},
			want:    `"a": element 0: "b": is of type struct`,
		},
	} {
		if test.queue == "" {
			test.queue = queue
		}
		err := c.Publish(soon(t), test.queue, test.message)
		expectError(t, err, "", test.want)
		if !errors.Is(err, broker.ErrRefused) {
			t.Errorf("%s: error %v, want %v", name, err, broker.ErrRefused)
		}
	}
	if err := c.Publish(soon(t), queue, broker.Publishing{}); err != nil {
		t.Errorf("publish after all that: %v", err)
	}
}
