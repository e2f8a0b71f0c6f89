package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/brokertest"
	"github.com/umbelhq/umbel/monitor/celery"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, fixture)
}

// fixture is a broker behind a proxy that can lose its connections.
func fixture(t *testing.T) brokertest.Fixture {
	t.Helper()
	o := options(t)
	c := dial(t, o)
	p := newProxy(t, plain)
	o.URL = p.url(t, "redis")
	return brokertest.Fixture{
		Broker:  newBroker(t, o),
		Publish: publisher(c, o.KeyPrefix+"/0.celeryev"),
		Break:   func(*testing.T) { p.cut() },
	}
}

func TestControlConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunControl(t, func(t *testing.T) brokertest.ControlFixture {
		t.Helper()
		o := options(t)
		w := worker{prefix: o.KeyPrefix, client: dial(t, o)}
		p := newProxy(t, plain)
		o.URL = p.url(t, "redis")
		return brokertest.ControlFixture{
			Broker:          newBroker(t, o),
			Break:           func(*testing.T) { p.cut() },
			Listen:          w.listen,
			Answer:          w.answer,
			CountsMailboxes: true,
			Queue:           func(_ *testing.T, suffix string) string { return "queue." + suffix },
			Take:            w.take,
			Hold:            w.hold,
			Browses:         true,
			CountsUnacked:   true,
		}
	})
}

// worker does by hand what Kombu does for a worker.
type worker struct {
	prefix string
	client *client.Client
}

func (w worker) listen(t *testing.T, hear func(broker.Publishing)) {
	t.Helper()
	mailbox := w.client.PSubscribe(t.Context(), w.prefix+"/0.celery.pidbox")
	if _, err := mailbox.Receive(t.Context()); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m, err := mailbox.ReceiveMessage(context.WithoutCancel(t.Context()))
			if err != nil {
				return
			}
			e, err := celery.ParseEnvelope([]byte(m.Payload))
			if err != nil || e.Exchange != "celery.pidbox" || e.RoutingKey != "" || e.DeliveryTag == "" {
				t.Errorf("request %s: %v", m.Payload, err)
			}
			hear(e.Publishing)
		}
	}()
	t.Cleanup(func() {
		if err := mailbox.Close(); err != nil {
			t.Errorf("unsubscribe: %v", err)
		}
		<-done
	})
}

// answer pushes to the queues that are bound to the exchange of replies.
func (w worker) answer(ctx context.Context, to broker.ReplyTo, m broker.Publishing) error {
	text, err := celery.Envelope{
		Publishing: m, Exchange: to.Exchange, RoutingKey: to.RoutingKey, DeliveryTag: "0",
	}.Append(nil)
	if err != nil {
		return err
	}
	members, err := w.client.SMembers(ctx, w.prefix+"_kombu.binding."+to.Exchange).Result()
	for _, member := range members {
		if queue, ok := bound(member, to.RoutingKey); ok {
			err = errors.Join(err, w.client.LPush(ctx, w.prefix+queue, text).Err())
		}
	}
	return err
}

// take pops from the lists of a queue as a worker with the default priority steps does.
func (w worker) take(ctx context.Context, queue string) (broker.Publishing, error) {
	found, err := w.client.BRPop(ctx, 5*time.Second, lists(w.prefix+queue)...).Result()
	if err != nil {
		return broker.Publishing{}, err
	}
	e, err := celery.ParseEnvelope([]byte(found[1]))
	if e.RoutingKey != queue || e.DeliveryTag == "" {
		err = errors.Join(err, errors.New("envelope of another queue, or without a tag: "+found[1]))
	}
	return e.Publishing, err
}

func lists(key string) []string {
	return []string{key, key + "\x06\x163", key + "\x06\x166", key + "\x06\x169"}
}

// hold moves the next message to where Kombu keeps what is not acknowledged.
func (w worker) hold(t *testing.T, queue string) {
	t.Helper()
	w.holdSince(t, queue, time.Now())
}

func (w worker) holdSince(t *testing.T, queue string, at time.Time) {
	t.Helper()
	found, err := w.client.BRPop(t.Context(), 5*time.Second, lists(w.prefix+queue)...).Result()
	if err != nil {
		t.Fatalf("take from %q: %v", queue, err)
	}
	e, err := celery.ParseEnvelope([]byte(found[1]))
	if err != nil {
		t.Fatalf("parse envelope: %v", err)
	}
	held := `[` + found[1] + `, "", "` + queue + `"]`
	_, err = w.client.Pipelined(t.Context(), func(p client.Pipeliner) error {
		p.HSet(t.Context(), w.prefix+"unacked", e.DeliveryTag, held)
		p.ZAdd(t.Context(), w.prefix+"unacked_index", client.Z{Score: float64(at.UnixMicro()) / 1e6, Member: e.DeliveryTag})
		return nil
	})
	if err != nil {
		t.Fatalf("hold: %v", err)
	}
}
