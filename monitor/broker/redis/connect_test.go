package redis_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

func TestConnectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(testenv.Redis(t))
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	guarded := "127.0.0.1:" + freePort(t)
	_, port, _ := net.SplitHostPort(guarded)
	runServer(t, "tcp", guarded, "bind 127.0.0.1\nport "+port+"\nrequirepass right\n")
	silent := serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	hangsUp := serve(t, func(net.Conn) {})
	web := serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	closed := "127.0.0.1:" + freePort(t)
	tests := map[string]struct {
		url  string
		want []string
		is   error
	}{
		"wrong password":   {"redis://:secret@" + guarded, []string{`user "default" or its password was refused`}, nil},
		"unknown user":     {"redis://no%20body:secret@" + guarded, []string{"no%20body:***@", `user "no body"`, "check both"}, nil},
		"no password":      {"redis://" + guarded, []string{"the broker wants a password"}, nil},
		"unknown database": {"redis://" + u.Host + "/99", []string{"has no database 99"}, nil},
		"nobody listens": {
			"redis://bob:secret@" + closed,
			[]string{"connect to redis://bob:***@127.0.0.1:", "refused; check the host and the port"},
			syscall.ECONNREFUSED,
		},
		"unknown host":     {"redis://bob:secret@no..such", []string{`host "no..such" cannot be looked up`}, nil},
		"no answer":        {"redis://bob:secret@" + silent, []string{"no answer in time"}, context.DeadlineExceeded},
		"no answer to TLS": {"rediss://bob:secret@" + silent, []string{"no answer in time"}, context.DeadlineExceeded},
		"hangs up":         {"redis://bob:secret@" + hangsUp, []string{"the handshake broke off", "use rediss://"}, nil},
		"not Redis":        {"redis://bob:secret@" + web, []string{"does not speak the protocol of Redis"}, nil},
		"not TLS":          {"rediss://bob:secret@" + web, []string{"does not speak TLS"}, nil},
		"no such socket": {
			"redis+socket://:secret@" + filepath.Join(t.TempDir(), "none"), []string{"there is no such socket"}, syscall.ENOENT,
		},
		"no such sentinel": {
			"sentinel://:secret@" + closed, []string{"ask sentinel " + closed, "refused"}, syscall.ECONNREFUSED,
		},
		"two addresses": {
			"redis://bob:secret@" + closed + ";redis://bob:secret@" + web,
			[]string{"connection refused", "; connect to redis://bob:***@" + web},
			syscall.ECONNREFUSED,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := redis.Options{URL: test.url, MasterName: "main"}
			if errors.Is(test.is, context.DeadlineExceeded) {
				o.DialTimeout = 100 * time.Millisecond
			}
			b := newBroker(t, o)
			_, err := b.Subscribe(t.Context())
			expectError(t, err, "secret", test.want...)
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %q is not %v", err, test.is)
			}
			_, err = b.OpenControl(t.Context())
			expectError(t, err, "secret", test.want...)
		})
	}
}

func TestConnectTriesAddressesInTurn(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := dial(t, o)
	o.URL = "redis://:secret@127.0.0.1:" + freePort(t) + ";" + o.URL
	s := connect(t, newBroker(t, o))
	if err := publisher(c, o.KeyPrefix+"/0.celeryev")(t.Context(), broker.Message{Body: []byte("1")}); err != nil {
		t.Fatalf("publish: %v", err)
	}
	receive(t, s, 1)
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	accepted := make(chan struct{}, 2)
	address := serve(t, func(c net.Conn) {
		accepted <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	})
	b := newBroker(t, redis.Options{URL: "redis://" + address + ";redis://" + address})
	for name, use := range map[string]func(context.Context) error{
		"Connect": func(ctx context.Context) error { _, err := b.Subscribe(ctx); return err },
		"Open":    func(ctx context.Context) error { _, err := b.OpenControl(ctx); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-accepted
			cancel()
		}()
		if err := use(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: error %v, want %v", name, err, context.Canceled)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.sock")
	runServer(t, "unix", path, "port 0\nunixsocket "+path+"\nrequirepass p@ss\n")
	b := newBroker(t, redis.Options{URL: "redis+socket://:p%40ss@" + path + "?virtual_host=3"})
	connect(t, b)
	l, err := b.OpenControl(t.Context())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer func() { _ = l.Close() }()
	if err := l.Publish(t.Context(), "q", broker.Publishing{Body: []byte("1")}); err != nil {
		t.Errorf("publish: %v", err)
	}
}
