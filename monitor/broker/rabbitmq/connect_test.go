package rabbitmq_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

func TestConnectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	login := func(user, password, vhost string) string {
		u, err := url.Parse(testenv.AMQP(t))
		if err != nil {
			t.Fatalf("parse the URL of the broker: %v", err)
		}
		return "amqp://" + user + ":" + password + "@" + u.Host + "/" + vhost
	}
	silent := serve(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	hangsUp := serve(t, func(net.Conn) {})
	web := serve(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	tests := map[string]struct {
		url  string
		want []string
		is   error
	}{
		"wrong password": {
			url: login("guest", "secret", ""), want: []string{`user "guest" or its password was refused; check both`},
		},
		"unknown user": {
			url: login("no%20body", "secret", ""), want: []string{"no%20body:***@", `user "no body"`, "check both"},
		},
		"unknown vhost": {
			url:  login("guest", "guest", "no/where"),
			want: []string{`may not use vhost "no/where"`, "vhost no/where not found", "check that the vhost exists"},
		},
		"nobody listens": {
			url:  "amqp://bob:secret@" + closedPort(t),
			want: []string{"connect to amqp://bob:***@127.0.0.1:", "connection refused; check the host and the port"},
			is:   syscall.ECONNREFUSED,
		},
		"unknown host": {
			url: "amqp://bob:secret@no..such", want: []string{`host "no..such" cannot be looked up`, "check the name"},
		},
		"no answer": {
			url: "amqp://bob:secret@" + silent, want: []string{"no answer in time; check the host"}, is: context.DeadlineExceeded,
		},
		"no answer to TLS": {
			url: "amqps://bob:secret@" + silent, want: []string{"no answer in time"}, is: context.DeadlineExceeded,
		},
		"hangs up": {
			url: "amqp://bob:secret@" + hangsUp, want: []string{"the handshake broke off", "use amqps://"},
		},
		"not AMQP": {
			url: "amqp://bob:secret@" + web, want: []string{"the handshake broke off", "check that the port is the one for AMQP"},
		},
		"not TLS": {
			url: "amqps://bob:secret@" + web, want: []string{"does not speak TLS", "5671"},
		},
		"two addresses": {
			url:  "amqp://bob:secret@" + closedPort(t) + ";amqp://bob:secret@" + web,
			want: []string{"connection refused", "; connect to amqp://bob:***@" + web + "/: the handshake broke off"},
			is:   syscall.ECONNREFUSED,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := rabbitmq.Options{URL: test.url}
			if errors.Is(test.is, context.DeadlineExceeded) {
				o.DialTimeout = 100 * time.Millisecond
			}
			b, err := rabbitmq.New(o)
			if err != nil {
				t.Fatalf("new broker: %v", err)
			}
			_, err = b.Subscribe(t.Context())
			expectError(t, err, "secret", test.want...)
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %q is not %v", err, test.is)
			}
		})
	}
}

func TestConnectTriesAddressesInTurn(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.URL = "amqp://guest:guest@" + closedPort(t) + ";" + o.URL
	s := connect(t, open(t, o))
	if err := publisher(t, o.Exchange)(t.Context(), broker.Message{Body: []byte("1")}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	receive(t, s, 1)
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	accepted := make(chan struct{})
	address := serve(t, func(conn net.Conn) {
		close(accepted)
		_, _ = io.Copy(io.Discard, conn)
	})
	b, err := rabbitmq.New(rabbitmq.Options{URL: "amqp://" + address + ";amqp://" + address})
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-accepted
		cancel()
	}()
	if _, err := b.Subscribe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("connect with an ended context: error %v, want %v", err, context.Canceled)
	}
}

func TestClosedByTheOperator(t *testing.T) {
	t.Parallel()
	o := options(t)
	b := open(t, o)
	s := connect(t, b)
	const why = "maintenance at noon"
	closeConnection(t, o.Version, why)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	_, err := s.Receive(ctx)
	expectError(t, err, "", "connection closed: connection lost: ", why)
	if !errors.Is(err, broker.ErrClosed) {
		t.Errorf("error %v is not %v", err, broker.ErrClosed)
	}
	connect(t, b)
}

// TestPermissions takes a user whose name and password need encoding from no permissions to all
// that Umbel needs, by doing what each error asks for.
func TestPermissions(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Queue = o.Exchange + ".queue"
	b := open(t, o)
	if err := connect(t, b).Close(); err != nil {
		t.Fatalf("close session: %v", err)
	}

	user, password := o.Version+"@/%", "p@:/%;s"
	addUser(t, user, password)
	u, err := url.Parse(o.URL)
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	o.URL = "amqp://" + url.PathEscape(user) + ":" + strings.ReplaceAll(url.PathEscape(password), ":", "%3A") + "@" + u.Host
	b, err = rabbitmq.New(o)
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	_, err = b.Subscribe(t.Context())
	expectError(t, err, password, "may not use vhost", "has permissions on it")
	for _, step := range []struct{ configure, write, read, want string }{
		{"^$", "^$", "^$", "needs configure permission on it"},
		{"\\.ev$", "^$", "^$", "declare queue"},
		{"^umbel-test", "^$", "^$", "needs write permission on the queue and read permission on the exchange"},
		{"^umbel-test", "queue$", "\\.ev$", "needs read permission on it"},
	} {
		setPermissions(t, user, step.configure, step.write, step.read)
		_, err = b.Subscribe(t.Context())
		expectError(t, err, password, step.want)
	}
}

// serve runs a server that calls talk with every connection, and returns its address.
func serve(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	c, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := c.Accept()
			if err != nil {
				return
			}
			go func() {
				talk(conn)
				_ = conn.Close()
			}()
		}
	}()
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c.Addr().String()
}

// closedPort is an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	c, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatalf("close listener: %v", err)
	}
	return c.Addr().String()
}
