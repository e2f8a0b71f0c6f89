package redis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	client "github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

// channels are where Celery publishes with each of its transport options: to events with the routing key
// worker.heartbeat, and to mailboxes.
var channels = map[string]struct {
	options        redis.Options
	db             int
	events, pidbox string
	another        string // an application's whose options differ
}{
	"defaults": {redis.Options{}, 3, "/3.celeryev/worker.heartbeat", "/3.celery.pidbox", "/4.celeryev/worker.heartbeat"},
	"fanout_patterns False": {
		redis.Options{NoFanoutPatterns: true}, 3, "/3.celeryev", "/3.celery.pidbox", "/3.celeryev/x",
	},
	"fanout_patterns False, and nobody says so": {redis.Options{}, 3, "/3.celeryev", "/3.celery.pidbox", "/3.celeryevx"},
	"fanout_prefix False": {
		redis.Options{FanoutPrefix: redis.NoFanoutPrefix}, 3, "celeryev/worker.heartbeat", "celery.pidbox", "/3.celeryev/worker.heartbeat",
	},
	"fanout_prefix": {
		redis.Options{FanoutPrefix: "/x{db}."}, 3, "/x3.celeryev/worker.heartbeat", "/x3.celery.pidbox", "/x4.celeryev/x",
	},
	"global_keyprefix": {
		redis.Options{KeyPrefix: "pfx_"}, 3, "pfx_/3.celeryev/worker.heartbeat", "pfx_/3.celery.pidbox", "/3.celeryev/x",
	},
	"prefix that is a pattern": {
		redis.Options{KeyPrefix: `a*[b]?\`}, 0, `a*[b]?\/0.celeryev/worker.heartbeat`, `a*[b]?\/0.celery.pidbox`, `aXbX\/0.celeryev/x`,
	},
	"exchanges": {
		redis.Options{Exchange: "ev", ControlExchange: "ctl"}, 0, "/0.ev/worker.heartbeat", "/0.ctl.pidbox", "/0.celeryev/x",
	},
	"Kombu before 5.4 behind Sentinel": {
		redis.Options{FanoutPrefix: "/{{db}}."}, 0, "/{db}.celeryev/worker.heartbeat", "/{db}.celery.pidbox", "/0.celeryev/x",
	},
}

func TestChannels(t *testing.T) {
	t.Parallel()
	for name, test := range channels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := miniredis.RunT(t)
			o := test.options
			o.URL = fmt.Sprintf("redis://%s/%d", m.Addr(), test.db)
			b := newBroker(t, o)
			s := connect(t, b)
			for _, channel := range []string{test.another, test.events} {
				m.Publish(channel, wrap(broker.Message{Body: []byte(channel), RoutingKey: "worker.heartbeat"}))
			}
			want := []broker.Message{{Body: []byte(test.events), RoutingKey: "worker.heartbeat", Tag: 1}}
			if diff := cmp.Diff(want, receive(t, s, 1)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}

			c := client.NewClient(&client.Options{Addr: m.Addr(), Protocol: 2})
			mailbox := c.Subscribe(t.Context(), test.pidbox)
			defer func() {
				_ = mailbox.Close()
				_ = c.Close()
			}()
			if _, err := mailbox.Receive(t.Context()); err != nil {
				t.Fatalf("subscribe: %v", err)
			}
			l := open(t, b)
			if n, err := l.Request(t.Context(), broker.Publishing{Body: []byte("{}")}); err != nil || n != 1 {
				t.Errorf("request reached %d mailboxes, error %v, want 1 at %s", n, err, test.pidbox)
			}
		})
	}
}

// open opens a control connection that ends with the test.
func open(tb testing.TB, b *redis.Broker) broker.ControlConn {
	tb.Helper()
	l, err := b.OpenControl(tb.Context())
	if err != nil {
		tb.Fatalf("open control connection: %v", err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Errorf("close line: %v", err)
		}
	})
	return l
}

func TestPayloadsThatAreNoEnvelopes(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	s := connect(t, newBroker(t, redis.Options{URL: "redis://" + m.Addr()}))
	payloads := []string{"", "{", "null", "[]", `{"body": 7}`, `{"body": "!!", "properties": {"body_encoding": "base64"}}`, "\xff\x00"}
	for _, p := range payloads {
		m.Publish("/0.celeryev/task.sent", p)
	}
	for i, got := range receive(t, s, len(payloads)) {
		if string(got.Body) != payloads[i] || got.ContentType != "" {
			t.Errorf("message %d = %q of type %q, want the payload as it came: %q", i, got.Body, got.ContentType, payloads[i])
		}
	}
}

// lost waits until the event stream ends, and returns why.
func lost(t *testing.T, s broker.EventStream) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		if _, err := s.Receive(ctx); err != nil {
			if !errors.Is(err, broker.ErrClosed) {
				t.Errorf("error %v is not %v", err, broker.ErrClosed)
			}
			return err
		}
	}
}

func TestSilenceEndsTheStream(t *testing.T) {
	t.Parallel()
	o := options(t)
	p := newProxy(t, plain)
	o.URL, o.HealthCheck = p.url(t, "redis"), time.Second
	s := connect(t, newBroker(t, o))
	ctx, cancel := context.WithTimeout(t.Context(), 3*o.HealthCheck)
	defer cancel()
	if _, err := s.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("receive on a quiet connection: error %v, want pings to keep it", err)
	}
	p.freeze()
	expectError(t, lost(t, s), "", "connection closed: connection lost", "has not answered for a while")
}

func TestClosedByTheOperator(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := dial(t, o)
	b := newBroker(t, o)
	s := connect(t, b)
	l := open(t, b)
	names := 0
	for row := range strings.Lines(c.ClientList(t.Context()).Val()) {
		if !strings.Contains(row, "name=umbel-"+o.Version+" ") {
			continue
		}
		names++
		id, _, _ := strings.Cut(strings.TrimPrefix(row, "id="), " ")
		if err := c.ClientKillByFilter(t.Context(), "ID", id).Err(); err != nil {
			t.Fatalf("kill connection: %v", err)
		}
	}
	if names < 2 {
		t.Errorf("%d connections have the program's name, want one of the event stream and one of the control connection", names)
	}
	expectError(t, lost(t, s), "", "connection lost: the broker closed it")
	if _, err := l.ReceiveReply(t.Context()); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("reply: error %v, want %v", err, broker.ErrClosed)
	}
	connect(t, b)
}

func TestMoreThanFitsIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := dial(t, o)
	s := connect(t, newBroker(t, o))
	const total, size, fit = 80, 1 << 20, 63 // of 64 MiB, with what each takes beside its body
	body := []byte(strings.Repeat("x", size))
	publish := publisher(c, o.KeyPrefix+"/0.celeryev")
	for i := range total {
		if err := publish(t.Context(), broker.Message{Body: body}); err != nil {
			t.Fatalf("publish message %d: %v", i, err)
		}
	}
	dropped := func() uint64 { return s.(broker.DropCounter).Dropped() }
	eventually(t, "messages to be dropped", func() bool { return dropped() >= total-fit })
	receive(t, s, fit)
	if err := publish(t.Context(), broker.Message{Body: []byte("next")}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	if got := receive(t, s, 1)[0].Body; string(got) != "next" {
		t.Errorf("message after the flood has %d bytes, want the next one", len(got))
	}
}

// bulk is a string as Redis sends it.
func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func TestRESPReader(t *testing.T) {
	t.Parallel()
	event := "*4\r\n" + bulk("pmessage") + bulk("/0.celeryev/*") + bulk("/0.celeryev/task.sent") +
		bulk(wrap(broker.Message{Body: []byte("{}")}))
	tests := map[string]struct {
		pushes string
		events int
		want   string
	}{
		"events":                   {event + event, 2, "closed"},
		"answer to a ping":         {"*2\r\n" + bulk("pong") + bulk("") + event, 1, "closed"},
		"unknown push":             {"*3\r\n" + bulk("punsubscribe") + bulk("x") + ":1\r\n" + event, 1, "closed"},
		"null in place of a text":  {"*4\r\n" + bulk("pmessage") + "$-1\r\n$-1\r\n$-1\r\n" + event, 2, "closed"},
		"short message":            {"*1\r\n" + bulk("pmessage") + event, 1, "closed"},
		"large":                    {strings.Replace(event, bulk("/0.celeryev/*"), bulk(strings.Repeat("*", 200_000)), 1), 1, "closed"},
		"error":                    {event + "-ERR out of memory\r\n", 1, "ERR out of memory"},
		"no array":                 {"+OK\r\n", 0, "not the Redis protocol"},
		"empty array":              {"*0\r\n", 0, "not the Redis protocol"},
		"null array":               {"*-1\r\n", 0, "not the Redis protocol"},
		"endless array":            {"*1000000\r\n", 0, "not the Redis protocol"},
		"negative length":          {"*1\r\n$-7\r\n", 0, "not the Redis protocol"},
		"length beyond all bounds": {"*1\r\n$99999999999\r\n", 0, "not the Redis protocol"},
		"length that is none":      {"*1\r\n$x\r\n", 0, "not the Redis protocol"},
		"array inside":             {"*1\r\n*1\r\n", 0, "not the Redis protocol"},
		"line without an end":      {strings.Repeat("*", 200_000), 0, "not the Redis protocol"},
		"another protocol":         {"HTTP/1.1 400 Bad Request\r\n\r\n", 0, "not the Redis protocol"},
		"cut short":                {event[:len(event)/2], 0, "closed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := fake(t, func(c net.Conn) {
				_, _ = io.WriteString(c, test.pushes)
				_ = c.Close()
			})
			b := newBroker(t, redis.Options{URL: "redis://" + address})
			s := connect(t, b)
			n := 0
			for {
				batch, err := s.Receive(t.Context())
				n += len(batch)
				if err == nil {
					continue
				}
				if !errors.Is(err, broker.ErrClosed) {
					t.Errorf("error %v is not %v", err, broker.ErrClosed)
				}
				expectError(t, err, "", test.want)
				break
			}
			if n != test.events {
				t.Errorf("received %d events, want %d", n, test.events)
			}
		})
	}
}
