package rabbitmq_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

// timeout bounds every wait for something that should happen at once.
const timeout = 3 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are those of a broker whose exchanges no other test uses.
func options(tb testing.TB) rabbitmq.Options {
	tb.Helper()
	name := "umbel-test." + rand.Text()
	return rabbitmq.Options{URL: testenv.AMQP(tb), Exchange: name + ".ev", ControlExchange: name, Version: "test " + name}
}

// open makes a Broker and removes what it will declare when the test ends.
func open(tb testing.TB, o rabbitmq.Options) *rabbitmq.Broker {
	tb.Helper()
	b, err := rabbitmq.New(o)
	if err != nil {
		tb.Fatalf("new broker: %v", err)
	}
	ch := channel(tb)
	tb.Cleanup(func() {
		if err := ch.ExchangeDelete(o.Exchange, false, false); err != nil {
			tb.Errorf("delete event exchange: %v", err)
		}
		if err := ch.ExchangeDelete(o.ControlExchange+".pidbox", false, false); err != nil {
			tb.Errorf("delete control exchange: %v", err)
		}
		if _, err := ch.QueueDelete(o.Queue, false, false, false); o.Queue != "" && err != nil {
			tb.Errorf("delete queue: %v", err)
		}
	})
	return b
}

// connect opens an event stream that ends with the test.
func connect(tb testing.TB, b *rabbitmq.Broker) broker.EventStream {
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

// channel opens a channel of a connection that is not under test.
func channel(tb testing.TB) *amqp091.Channel {
	tb.Helper()
	conn, err := amqp091.Dial(testenv.AMQP(tb))
	if err != nil {
		tb.Fatalf("dial: %v", err)
	}
	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Errorf("close connection: %v", err)
		}
	})
	ch, err := conn.Channel()
	if err != nil {
		tb.Fatalf("open channel: %v", err)
	}
	return ch
}

// publisher sends events to exchange as a worker does, but waits until the broker has each.
func publisher(tb testing.TB, exchange string) func(context.Context, broker.Message) error {
	tb.Helper()
	ch := channel(tb)
	if err := ch.Confirm(false); err != nil {
		tb.Fatalf("ask for confirmation: %v", err)
	}
	var mu sync.Mutex
	return func(ctx context.Context, m broker.Message) error {
		mu.Lock()
		defer mu.Unlock()
		confirmation, err := ch.PublishWithDeferredConfirm(exchange, m.RoutingKey, false, false, amqp091.Publishing{
			Headers:         amqp091.Table{"hostname": "w1@test"},
			ContentType:     m.ContentType,
			ContentEncoding: m.ContentEncoding,
			DeliveryMode:    amqp091.Transient,
			Body:            m.Body,
		})
		if err != nil {
			return err
		}
		if ok, err := confirmation.WaitContext(ctx); err != nil || !ok {
			return errors.Join(errors.New("not confirmed"), err)
		}
		return nil
	}
}

// proxy passes connections on to the broker, until it cuts them.
type proxy struct {
	listener net.Listener
	target   string

	still sync.Mutex // held while something passes

	mu    sync.Mutex
	conns []net.Conn // of clients, each followed by that to the broker
	wg    sync.WaitGroup
}

// newProxy listens on a free port in front of the broker.
func newProxy(tb testing.TB, wrap func(net.Listener) net.Listener) *proxy {
	tb.Helper()
	c, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	u, err := url.Parse(testenv.AMQP(tb))
	if err != nil {
		tb.Fatalf("parse the URL of the broker: %v", err)
	}
	p := &proxy{listener: wrap(c), target: u.Host}
	p.wg.Go(p.serve)
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("close listener: %v", err)
		}
		p.cut()
		p.wg.Wait()
	})
	return p
}

// url is that of the broker behind the proxy.
func (p *proxy) url(tb testing.TB, scheme string) string {
	tb.Helper()
	u, err := url.Parse(testenv.AMQP(tb))
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
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			break
		}
		p.still.Lock()
		_, err = to.Write(buffer[:n])
		p.still.Unlock()
		if err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}

// hold lets nothing pass until release is called.
func (p *proxy) hold(tb testing.TB) (release func()) {
	tb.Helper()
	p.still.Lock()
	release = sync.OnceFunc(p.still.Unlock)
	tb.Cleanup(release)
	return release
}

// inject sends a method of the connection to all clients as if the broker had.
func (p *proxy) inject(tb testing.TB, method byte, arguments string) {
	tb.Helper()
	payload := "\x00\x0a\x00" + string(method) + arguments
	frame := "\x01\x00\x00\x00\x00\x00" + string(byte(len(payload))) + payload + "\xce"
	p.still.Lock()
	defer p.still.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := 0; i < len(p.conns); i += 2 {
		if _, err := io.WriteString(p.conns[i], frame); err != nil {
			tb.Errorf("inject a frame: %v", err)
		}
	}
}

// cut ends all connections without a word.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func plain(c net.Listener) net.Listener { return c }

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

func expectEqual(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
