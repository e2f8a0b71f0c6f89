package redis_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

// timeout bounds every wait for something that should happen at once.
const timeout = 3 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are those of a broker whose keys and channels no other test uses.
func options(tb testing.TB) redis.Options {
	tb.Helper()
	name := "umbel-test-" + rand.Text()
	return redis.Options{URL: testenv.Redis(tb), KeyPrefix: name + ":", Version: name}
}

// newBroker makes a Broker and removes all keys with its prefix when the test ends.
func newBroker(tb testing.TB, o redis.Options) *redis.Broker {
	tb.Helper()
	b, err := redis.New(o)
	if err != nil {
		tb.Fatalf("new broker: %v", err)
	}
	return b
}

// dial returns a client that is not under test, and removes the keys of o when the test ends.
func dial(tb testing.TB, o redis.Options) *client.Client {
	tb.Helper()
	parsed, err := client.ParseURL(o.URL)
	if err != nil {
		tb.Fatalf("parse the URL of the broker: %v", err)
	}
	parsed.Protocol = 2
	c := client.NewClient(parsed)
	tb.Cleanup(func() {
		if o.KeyPrefix != "" {
			sweep(tb, c, o.KeyPrefix)
		}
		if err := c.Close(); err != nil {
			tb.Errorf("close client: %v", err)
		}
	})
	return c
}

func sweep(tb testing.TB, c *client.Client, prefix string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	keys, err := c.Keys(ctx, prefix+"*").Result()
	if err != nil {
		tb.Errorf("list keys: %v", err)
	}
	if len(keys) > 0 {
		if err := c.Del(ctx, keys...).Err(); err != nil {
			tb.Errorf("delete keys: %v", err)
		}
	}
}

// connect opens an event stream that ends with the test.
func connect(tb testing.TB, b *redis.Broker) broker.EventStream {
	tb.Helper()
	s, err := b.Subscribe(tb.Context())
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close session: %v", err)
		}
	})
	return s
}

// receive waits for n messages.
func receive(tb testing.TB, s broker.EventStream, n int) []broker.Message {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), timeout)
	defer cancel()
	var all []broker.Message
	for len(all) < n {
		batch, err := s.Receive(ctx)
		if err != nil {
			tb.Fatalf("receive after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, batch...)
	}
	return all
}

// wrap puts an event into an envelope as Kombu does.
func wrap(m broker.Message) string {
	envelope := map[string]any{
		"body":    base64.StdEncoding.EncodeToString(m.Body),
		"headers": map[string]any{"hostname": "w1@test"},
		"properties": map[string]any{
			"delivery_mode": 1, "delivery_info": map[string]any{"exchange": "celeryev", "routing_key": m.RoutingKey},
			"priority": 0, "body_encoding": "base64", "delivery_tag": "7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11",
		},
		"content-type": m.ContentType, "content-encoding": m.ContentEncoding,
	}
	text, err := json.Marshal(envelope)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// publisher sends events as a worker does, and makes sure that somebody hears them.
func publisher(c *client.Client, channel string) func(context.Context, broker.Message) error {
	return func(ctx context.Context, m broker.Message) error {
		n, err := c.Publish(ctx, channel+"/"+m.RoutingKey, wrap(m)).Result()
		if err == nil && n != 1 {
			err = fmt.Errorf("%d connections have heard it, want 1", n)
		}
		return err
	}
}

// proxy passes connections on to the broker, until it cuts them.
type proxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	conns  []net.Conn
	frozen bool
	wg     sync.WaitGroup
}

// newProxy listens on a free port in front of the broker.
func newProxy(tb testing.TB, listen func(net.Listener) net.Listener) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	u, err := url.Parse(testenv.Redis(tb))
	if err != nil {
		tb.Fatalf("parse the URL of the broker: %v", err)
	}
	p := &proxy{listener: listen(l), target: u.Host}
	p.wg.Go(p.serve)
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Errorf("close listener: %v", err)
		}
		p.cut()
		p.wg.Wait()
	})
	return p
}

func plain(l net.Listener) net.Listener { return l }

// url is that of the broker behind the proxy.
func (p *proxy) url(tb testing.TB, scheme string) string {
	tb.Helper()
	u, err := url.Parse(testenv.Redis(tb))
	if err != nil {
		tb.Fatalf("parse the URL of the broker: %v", err)
	}
	u.Scheme, u.Host = scheme, p.listener.Addr().String()
	return u.String()
}

func (p *proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		p.wg.Go(func() { p.pass(near, far) })
		p.wg.Go(func() { p.pass(far, near) })
	}
}

func (p *proxy) pass(to, from net.Conn) {
	_, _ = io.Copy(gate{to, p}, from)
	_ = to.Close()
	_ = from.Close()
}

// gate swallows what is written to it while the proxy is frozen.
type gate struct {
	io.Writer
	proxy *proxy
}

// Write implements io.Writer.
func (g gate) Write(b []byte) (int, error) {
	g.proxy.mu.Lock()
	frozen := g.proxy.frozen
	g.proxy.mu.Unlock()
	if frozen {
		return len(b), nil
	}
	return g.Writer.Write(b)
}

// cut ends all connections without a word.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// expectError fails the test if err does not hold every text, or holds a secret.
func expectError(tb testing.TB, err error, secret string, texts ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error, want one with %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("error %q does not contain %q", err, text)
		}
	}
	if secret != "" && strings.Contains(err.Error(), secret) {
		tb.Errorf("error %q contains the password", err)
	}
	if strings.Contains(err.Error(), "\n") {
		tb.Errorf("error %q is more than one line", err)
	}
}

// bound returns the queue of a member of a binding set, if it is bound by a routing key.
func bound(member, routingKey string) (queue string, ok bool) {
	parts := strings.Split(member, "\x06\x16")
	return parts[len(parts)-1], len(parts) == 3 && parts[0] == routingKey
}

// freeze passes nothing on any more, and closes nothing.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}
