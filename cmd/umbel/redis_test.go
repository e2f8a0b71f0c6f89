package main_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// brokers are the kinds that Celery and Umbel meet at. Each returns the URL of one that no other test uses.
var brokers = map[string]func(testing.TB) string{"RabbitMQ": testenv.VirtualHost, "Redis": ownRedis}

// ownRedis starts a Redis of the test's own, since channels are shared by all its databases.
func ownRedis(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = l.Close()
	spawn(tb, command(nil, testenv.RedisServer(tb),
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", tb.TempDir()))
	url := "redis://" + address + "/3"
	c := redisClient(tb, url)
	eventually(tb, timeout, func() error { return c.Ping(tb.Context()).Err() })
	return url
}

func redisClient(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		tb.Fatalf("parse the broker's URL: %v", err)
	}
	o.MaxRetries = -1
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// redisBus publishes to the channels of events of a database.
type redisBus struct {
	client  *redis.Client
	channel string
}

func newRedisBus(tb testing.TB, url string) *redisBus {
	tb.Helper()
	c := redisClient(tb, url)
	return &redisBus{client: c, channel: fmt.Sprintf("/%d.celeryev/", c.Options().DB)}
}

func (b *redisBus) publish(ctx context.Context, key string, body []byte) error {
	text, err := b.envelope(key, body)
	if err != nil {
		return err
	}
	return b.client.Publish(ctx, b.channel+key, text).Err()
}

func (b *redisBus) publishAll(tb testing.TB, bodies [][]byte) {
	tb.Helper()
	const chunk = 500
	for done := 0; done < len(bodies); done += chunk {
		_, err := b.client.Pipelined(tb.Context(), func(p redis.Pipeliner) error {
			for _, body := range bodies[done:min(done+chunk, len(bodies))] {
				key := routingKey(tb, body)
				text, err := b.envelope(key, body)
				if err != nil {
					return err
				}
				p.Publish(tb.Context(), b.channel+key, text)
			}
			return nil
		})
		if err != nil {
			tb.Fatalf("publish: %v", err)
		}
	}
}

func (b *redisBus) envelope(key string, body []byte) ([]byte, error) {
	return celery.Envelope{
		Publishing: broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8", Headers: map[string]any{"hostname": "w1@test"}, Body: body,
		},
		Exchange: "celeryev", RoutingKey: key, DeliveryTag: "82ed66ec-6f61-4a64-9e1f-0d4ccd1f9b7a",
	}.Append(nil)
}

// newRedisTap listens to the channels of events of a database until the test ends.
func newRedisTap(tb testing.TB, url string) *tap {
	tb.Helper()
	b := newRedisBus(tb, url)
	events := b.client.PSubscribe(tb.Context(), b.channel+"*")
	if _, err := events.Receive(tb.Context()); err != nil {
		tb.Fatalf("subscribe: %v", err)
	}
	t := &tap{seen: map[event]time.Time{}}
	go func() {
		var o celery.EnvelopeParser
		for {
			m, err := events.ReceiveMessage(context.Background())
			if err != nil {
				return
			}
			if e, err := o.Parse([]byte(m.Payload)); err == nil {
				t.note(e.Body, time.Now())
			}
		}
	}()
	tb.Cleanup(func() { _ = events.Close() })
	return t
}

// TestEndToEndGapsOnRedis cuts the connection while events are published, which nobody keeps.
func TestEndToEndGapsOnRedis(t *testing.T) {
	t.Parallel()
	broker := ownRedis(t)
	b := newBus(t, broker)
	p := newProxy(t, broker)
	d := start(t, nil, "serve", "--broker-url", p.broker)
	d.connected(t)
	page := openTab(t, testbrowser.Open(t), d.url)
	page.until(t, `document.querySelector("#ingest").textContent.includes("none since the start")`)

	bodies := simulate.Typical(3000, 1)
	b.publishAll(t, bodies[:1500])
	d.folded(t, 1500)
	p.cut()
	page.until(t, `document.querySelector("#banner").textContent.includes("Events sent in the meantime are lost")`)
	if loss := d.overview(t).Health.Broker.Loss; !loss.Forgets || loss.Gaps != 0 {
		t.Errorf("loss is %+v while the gap lasts, want none that is over", loss)
	}
	b.publishAll(t, bodies[1500:2400])
	p.restore(t)
	d.connected(t)
	b.publishAll(t, bodies[2400:])
	d.folded(t, 2100)
	if loss := d.overview(t).Health.Broker.Loss; loss.Gaps != 1 || loss.GapSeconds <= 0 || loss.Dropped != 0 {
		t.Errorf("loss is %+v, want one gap", loss)
	}
	page.until(t, `document.querySelector("#banner").hidden`)
	page.until(t, `document.querySelector("#broker").textContent.includes("events may be missing")`)
	page.until(t, `document.querySelector("#ingest").textContent.includes("disconnected 1 time")`)
}
