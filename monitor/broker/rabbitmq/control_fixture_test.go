package rabbitmq_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/brokertest"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

func TestControlConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunControl(t, func(t *testing.T) brokertest.ControlFixture {
		t.Helper()
		return controlFixture(t, options(t))
	})
}

func TestControlConformanceWithManagement(t *testing.T) {
	t.Parallel()
	management := testenv.Management(t)
	brokertest.RunControl(t, func(t *testing.T) brokertest.ControlFixture {
		t.Helper()
		o := options(t)
		o.ManagementURL = management
		return controlFixture(t, o)
	})
}

// controlFixture is a broker behind a proxy that can lose its connections.
func controlFixture(t *testing.T, o rabbitmq.Options) brokertest.ControlFixture {
	t.Helper()
	p := newProxy(t, plain)
	o.URL = p.url(t, "amqp")
	far := far{t, channel(t), channel(t), o.ControlExchange, new(sync.Mutex)}
	return brokertest.ControlFixture{
		Broker:        controlBroker(t, o),
		Break:         func(*testing.T) { p.cut() },
		Listen:        far.listen,
		Answer:        far.answer,
		Queue:         far.queue,
		Take:          far.take,
		Hold:          far.hold,
		Consume:       far.consume,
		MissesQueues:  true,
		CountsUnacked: o.ManagementURL != "",
	}
}

// controlBroker makes a Broker of which only control connections are opened, and removes what they will declare when the test ends.
func controlBroker(tb testing.TB, o rabbitmq.Options) *rabbitmq.Broker {
	tb.Helper()
	b, err := rabbitmq.New(o)
	if err != nil {
		tb.Fatalf("new broker: %v", err)
	}
	ch := channel(tb)
	tb.Cleanup(func() {
		for _, exchange := range []string{o.ControlExchange + ".pidbox", "reply." + o.ControlExchange + ".pidbox"} {
			if err := ch.ExchangeDelete(exchange, false, false); err != nil {
				tb.Errorf("delete exchange %s: %v", exchange, err)
			}
		}
	})
	return b
}

// far is the other side of a control connection.
type far struct {
	tb        testing.TB
	worker    *amqp091.Channel // declares and consumes
	publisher *amqp091.Channel
	control   string
	mu        *sync.Mutex // guards worker and publisher
}

func (f far) listen(t *testing.T, hear func(broker.Publishing)) {
	t.Helper()
	exchange, queue := f.control+".pidbox", rand.Text()+".pidbox"
	ch := channel(t)
	err := errors.Join(
		ch.ExchangeDeclare(exchange, amqp091.ExchangeFanout, false, false, false, false, nil),
		second(ch.QueueDeclare(queue, false, true, true, false, nil)),
		ch.QueueBind(queue, "", exchange, false, nil))
	if err != nil {
		t.Fatalf("declare mailbox: %v", err)
	}
	deliveries, err := ch.Consume(queue, "", true, true, false, false, nil)
	if err != nil {
		t.Fatalf("read mailbox: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for d := range deliveries {
			hear(publishing(d))
		}
	}()
	t.Cleanup(func() {
		if err := ch.Close(); err != nil {
			t.Errorf("close mailbox: %v", err)
		}
		<-done
	})
}

func second[T any](_ T, err error) error { return err }

func (f far) answer(ctx context.Context, to broker.ReplyTo, m broker.Publishing) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.publisher.PublishWithContext(ctx, to.Exchange, to.RoutingKey, false, false, amqp091.Publishing{
		Headers: m.Headers, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding,
		DeliveryMode: amqp091.Transient, Body: m.Body,
	})
}

func (f far) queue(t *testing.T, suffix string) string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	name := f.control + "." + suffix
	if _, err := f.worker.QueueDeclare(name, true, false, false, false, nil); err != nil {
		t.Fatalf("declare queue: %v", err)
	}
	f.tb.Cleanup(func() {
		if _, err := f.worker.QueueDelete(name, false, false, false); err != nil {
			f.tb.Errorf("delete queue: %v", err)
		}
	})
	return name
}

func (f far) take(ctx context.Context, queue string) (broker.Publishing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tag := rand.Text()
	if err := f.worker.Qos(1, 0, false); err != nil {
		return broker.Publishing{}, err
	}
	deliveries, err := f.worker.Consume(queue, tag, false, false, false, false, nil)
	if err != nil {
		return broker.Publishing{}, err
	}
	select {
	case d := <-deliveries:
		return publishing(d), errors.Join(f.worker.Cancel(tag, false), d.Ack(false))
	case <-ctx.Done():
		return broker.Publishing{}, errors.Join(f.worker.Cancel(tag, false), ctx.Err())
	}
}

func (f far) hold(t *testing.T, queue string) {
	t.Helper()
	if _, ok, err := channel(t).Get(queue, false); !ok || err != nil {
		t.Errorf("get a message: %t, error %v", ok, err)
	}
}

func (f far) consume(t *testing.T, queue string) {
	t.Helper()
	if _, err := channel(t).Consume(queue, "", false, false, false, false, nil); err != nil {
		t.Errorf("consume: %v", err)
	}
}

// publishing is what a delivery of the fixture's own says, of the types that the suite sends.
func publishing(d amqp091.Delivery) broker.Publishing {
	return broker.Publishing{
		Headers: plainTable(d.Headers), ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		Persistent: d.DeliveryMode == amqp091.Persistent, Priority: d.Priority, CorrelationID: d.CorrelationId,
		ReplyTo: d.ReplyTo, Expiration: d.Expiration, Body: d.Body,
	}
}

func plainTable(t amqp091.Table) map[string]any {
	m := make(map[string]any)
	for name, value := range t {
		m[name] = plainValue(value)
	}
	return m
}

func plainValue(value any) any {
	switch v := value.(type) {
	case amqp091.Table:
		return plainTable(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plainValue(v[i])
		}
		return list
	}
	return value
}
