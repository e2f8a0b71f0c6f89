package amqp_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/transport"
	"github.com/umbelhq/umbel/monitor/transport/amqp"
)

// patience bounds every wait for something that should happen at once.
const patience = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are those of a broker whose exchanges no other test uses.
func options(t testing.TB) amqp.Options {
	t.Helper()
	name := "umbel-test." + rand.Text()
	return amqp.Options{URL: testenv.AMQP(t), Exchange: name + ".ev", ControlExchange: name, Version: "test " + name}
}

// open makes a Broker and removes what it will declare when the test ends.
func open(t testing.TB, o amqp.Options) *amqp.Broker {
	t.Helper()
	b, err := amqp.New(o)
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	ch := channel(t)
	t.Cleanup(func() {
		if err := ch.ExchangeDelete(o.Exchange, false, false); err != nil {
			t.Errorf("delete event exchange: %v", err)
		}
		if err := ch.ExchangeDelete(o.ControlExchange+".pidbox", false, false); err != nil {
			t.Errorf("delete control exchange: %v", err)
		}
		if _, err := ch.QueueDelete(o.Queue, false, false, false); o.Queue != "" && err != nil {
			t.Errorf("delete queue: %v", err)
		}
	})
	return b
}

// connect opens a session that ends with the test.
func connect(t testing.TB, b *amqp.Broker) transport.Session {
	t.Helper()
	s, err := b.Connect(t.Context())
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close session: %v", err)
		}
	})
	return s
}

// receive waits for n messages.
func receive(t testing.TB, s transport.Session, n int) []transport.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []transport.Message
	for len(all) < n {
		batch, err := s.Receive(ctx)
		if err != nil {
			t.Fatalf("receive after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, batch...)
	}
	return all
}

// channel opens a channel of a connection that is not under test.
func channel(t testing.TB) *amqp091.Channel {
	t.Helper()
	conn, err := amqp091.Dial(testenv.AMQP(t))
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close connection: %v", err)
		}
	})
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("open channel: %v", err)
	}
	return ch
}

// publisher sends events to exchange as a worker does, but waits until the broker has each.
func publisher(t testing.TB, exchange string) func(context.Context, transport.Message) error {
	t.Helper()
	ch := channel(t)
	if err := ch.Confirm(false); err != nil {
		t.Fatalf("ask for confirmation: %v", err)
	}
	var mu sync.Mutex
	return func(ctx context.Context, m transport.Message) error {
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

// mailbox binds a queue to the control exchange, as a worker does, and reads it.
func mailbox(t testing.TB, controlExchange string) <-chan amqp091.Delivery {
	t.Helper()
	ch := channel(t)
	exchange := controlExchange + ".pidbox"
	if err := ch.ExchangeDeclare(exchange, "fanout", false, false, false, false, nil); err != nil {
		t.Fatalf("declare control exchange: %v", err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatalf("declare mailbox: %v", err)
	}
	if err := ch.QueueBind(q.Name, "", exchange, false, nil); err != nil {
		t.Fatalf("bind mailbox: %v", err)
	}
	deliveries, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatalf("read mailbox: %v", err)
	}
	return deliveries
}

// listen decodes what arrives in a mailbox.
func listen(t testing.TB, controlExchange string) <-chan transport.Command {
	t.Helper()
	deliveries := mailbox(t, controlExchange)
	commands := make(chan transport.Command, 100)
	go func() {
		for d := range deliveries {
			var c transport.Command
			if err := json.Unmarshal(d.Body, &c); err != nil {
				t.Errorf("decode command: %v", err)
			}
			commands <- c
		}
	}()
	return commands
}

// proxy passes connections on to the broker, until it cuts them.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

// newProxy listens on a free port in front of the broker.
func newProxy(t testing.TB, wrap func(net.Listener) net.Listener) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	u, err := url.Parse(testenv.AMQP(t))
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	p := &proxy{listener: wrap(l), target: u.Host}
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close listener: %v", err)
		}
		p.cut()
		p.wg.Wait()
	})
	return p
}

// url is that of the broker behind the proxy.
func (p *proxy) url(t testing.TB, scheme string) string {
	t.Helper()
	u, err := url.Parse(testenv.AMQP(t))
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
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
		p.wg.Go(func() { pass(near, far) })
		p.wg.Go(func() { pass(far, near) })
	}
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
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

func plain(l net.Listener) net.Listener { return l }

// expectError fails the test if err does not hold every text, or holds a secret.
func expectError(t testing.TB, err error, secret string, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not contain %q", err, text)
		}
	}
	if secret != "" && strings.Contains(err.Error(), secret) {
		t.Errorf("error %q contains the password", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is more than one line", err)
	}
}
