package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// bus is where workers publish events.
type bus interface {
	// publish sends a body as Celery does.
	publish(ctx context.Context, key string, body []byte) error
	// publishAll sends bodies as fast as the broker takes them, and returns when it has them all.
	publishAll(tb testing.TB, bodies [][]byte)
}

// newBus is that of the broker at a URL.
func newBus(tb testing.TB, url string) bus {
	tb.Helper()
	if strings.HasPrefix(url, "redis://") {
		return newRedisBus(tb, url)
	}
	return newRabbitBus(tb, url)
}

// rabbitBus is a channel to the event exchange of a virtual host.
type rabbitBus struct {
	*amqp091.Channel
}

func newRabbitBus(tb testing.TB, url string) *rabbitBus {
	tb.Helper()
	conn, err := amqp091.Dial(url)
	if err != nil {
		tb.Fatalf("dial: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		tb.Fatalf("open channel: %v", err)
	}
	if err := ch.ExchangeDeclare("celeryev", "topic", true, false, false, false, nil); err != nil {
		tb.Fatalf("declare exchange: %v", err)
	}
	return &rabbitBus{ch}
}

// event is what the tests look at in the events that they publish.
type event struct {
	Type string `json:"type"`
	UUID string `json:"uuid"`
}

// eventOf reads the body of a single event, written as Celery writes it.
func eventOf(tb testing.TB, body []byte) event {
	tb.Helper()
	e := event{Type: field(body, "type"), UUID: field(body, "uuid")}
	if e.Type == "" || e.UUID == "" {
		tb.Fatalf("no event: %s", body)
	}
	return e
}

func field(body []byte, name string) string {
	_, rest, _ := bytes.Cut(body, []byte(`"`+name+`": "`))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// routingKey is the one that Celery publishes a body with.
func routingKey(tb testing.TB, body []byte) string {
	tb.Helper()
	if body[0] == '[' {
		return "task.multi"
	}
	return strings.ReplaceAll(eventOf(tb, body).Type, "-", ".")
}

func (b *rabbitBus) publish(ctx context.Context, key string, body []byte) error {
	return b.PublishWithContext(ctx, "celeryev", key, false, false, message(body))
}

func message(body []byte) amqp091.Publishing {
	return amqp091.Publishing{
		Headers: amqp091.Table{"hostname": "w1@test"}, ContentType: "application/json", ContentEncoding: "utf-8",
		DeliveryMode: amqp091.Transient, Body: body,
	}
}

// publishAll returns when RabbitMQ has them all in its queues: it has the others, too, when it confirms the last one.
func (b *rabbitBus) publishAll(tb testing.TB, bodies [][]byte) {
	tb.Helper()
	keys := make([]string, len(bodies))
	for i, body := range bodies {
		keys[i] = routingKey(tb, body)
	}
	last := len(bodies) - 1
	for i, body := range bodies[:last] {
		if err := b.publish(tb.Context(), keys[i], body); err != nil {
			tb.Fatalf("publish event %d: %v", i, err)
		}
	}
	if err := b.Confirm(false); err != nil {
		tb.Fatalf("ask for confirmation: %v", err)
	}
	confirmation, err := b.PublishWithDeferredConfirm("celeryev", keys[last], false, false, message(bodies[last]))
	if err != nil {
		tb.Fatalf("publish the last event: %v", err)
	}
	if ok, err := confirmation.WaitContext(tb.Context()); !ok || err != nil {
		tb.Fatalf("broker did not take the last event: %v", err)
	}
}

// tap notes when events reach the broker.
type tap struct {
	mu   sync.Mutex
	seen map[event]time.Time
}

// newTap listens to the events of the broker at a URL until the test ends.
func newTap(tb testing.TB, url string) *tap {
	tb.Helper()
	if strings.HasPrefix(url, "redis://") {
		return newRedisTap(tb, url)
	}
	b := newRabbitBus(tb, url)
	q, err := b.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		tb.Fatalf("declare queue: %v", err)
	}
	if err := b.QueueBind(q.Name, "#", "celeryev", false, nil); err != nil {
		tb.Fatalf("bind queue: %v", err)
	}
	deliveries, err := b.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		tb.Fatalf("consume: %v", err)
	}
	t := &tap{seen: map[event]time.Time{}}
	go func() {
		for d := range deliveries {
			t.note(d.Body, time.Now())
		}
	}()
	return t
}

func (t *tap) note(body []byte, at time.Time) {
	var several []event
	if json.Unmarshal(body, &several) != nil {
		several = make([]event, 1)
		_ = json.Unmarshal(body, &several[0])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range several {
		if _, ok := t.seen[e]; !ok {
			t.seen[e] = at
		}
	}
}

// published returns when an event reached the broker, for the first time if it came again.
func (t *tap) published(tb testing.TB, e event) time.Time {
	tb.Helper()
	var at time.Time
	eventually(tb, timeout, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		var ok bool
		if at, ok = t.seen[e]; !ok {
			return fmt.Errorf("%s of task %s was not published", e.Type, e.UUID)
		}
		return nil
	})
	return at
}
