package main_test

import (
	"context"
	"errors"
	"html"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// dial opens a live socket, as soon as the server lets it, and subscribes to a topic.
func dial(tb testing.TB, d *dashboard, topic string) *websocket.Conn {
	tb.Helper()
	var conn *websocket.Conn
	eventually(tb, timeout, func() (err error) {
		var res *http.Response
		conn, res, err = websocket.Dial(tb.Context(), "ws"+strings.TrimPrefix(d.url, "http")+"ws?topic="+url.QueryEscape(topic), nil)
		if res != nil && res.Body != nil {
			_ = res.Body.Close()
		}
		return err
	})
	tb.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(16 << 20)
	return conn
}

func TestStopWhileSocketsAreOpen(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo")
	ends := make(chan error)
	const sockets = 5
	for range sockets {
		conn := dial(t, d, "/tasks")
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			var err error
			for err == nil {
				_, _, err = conn.Read(ctx)
			}
			ends <- err
		}()
	}
	begin := time.Now()
	if status := d.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("stopped after %v", took)
	}
	for range sockets {
		if err := <-ends; websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("socket ended with %v, want %v", err, websocket.StatusGoingAway)
		}
	}
	if text, _ := d.lines.read(); !strings.Contains(text, `"msg":"stopped"`) || strings.Contains(text, "umbel: ") {
		t.Errorf("log does not tell of an orderly stop:\n%s", text)
	}
}

// stuck opens a connection whose request does not end, and waits until it is being served.
func stuck(tb testing.TB, d *dashboard) {
	tb.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), "/")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	request := "POST /theme HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/x-www-form-urlencoded\r\n" +
		"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"
	if _, err := conn.Write([]byte(request)); err != nil {
		tb.Fatalf("send request: %v", err)
	}
	answer := make([]byte, 12)
	if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 100" {
		tb.Fatalf("server answered %q, %v, want it to ask for the body", answer, err)
	}
}

func TestStopWithoutWaitingForEver(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo")
	stuck(t, d)
	if status := d.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
}

func TestSecondSignalKills(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo")
	stuck(t, d)
	begin := time.Now()
	eventually(t, timeout, func() error {
		d.signal(syscall.SIGTERM)
		select {
		case <-d.exited:
			return nil
		default:
			return errors.New("it still runs")
		}
	})
	if status := d.cmd.ProcessState.ExitCode(); status != -1 || time.Since(begin) > 5*time.Second {
		t.Errorf("exit status %d after %v, want an end by the signal at once", status, time.Since(begin))
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo")
	address := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), "/")
	status, _, text := once(t, nil, nil, "demo", "--listen", address)
	if want := "umbel: --listen " + address + ": "; status != 1 || !strings.HasPrefix(text, want) || strings.Count(text, "\n") != 1 {
		t.Errorf("status %d and %q, want 1 and one line that begins with %q", status, text, want)
	}
}

func TestBrokerURLFromTheEnvironment(t *testing.T) {
	t.Parallel()
	umbelURL, celeryURL := "UMBEL_BROKER_URL=amqp://umbel@127.0.0.1:1/", "CELERY_BROKER_URL=amqp://celery@127.0.0.1:1/"
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"Umbel's own": {[]string{umbelURL}, nil, "amqp://umbel:***@127.0.0.1:1/"},
		"Celery's":    {[]string{celeryURL}, nil, "amqp://celery:***@127.0.0.1:1/"},
		"both":        {[]string{celeryURL, umbelURL}, nil, "amqp://umbel:***@127.0.0.1:1/"},
		"and a flag":  {[]string{celeryURL, umbelURL}, []string{"--broker-url", "amqp://flag@127.0.0.1:1/"}, "amqp://flag:***@127.0.0.1:1/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, tc.env, tc.args...)
			if got := d.overview(t).Health.Broker.URL; got != tc.want {
				t.Errorf("broker = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	addresses := regexp.MustCompile(`(href|src|action)="(/[^"]*)"`)
	for prefix, want := range map[string]string{"/": "/", "umbel/": "/umbel/", "/ops/celery/": "/ops/celery/"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			d := start(t, nil, "demo", "--prefix", prefix)
			origin := strings.TrimSuffix(d.url, want)
			if strings.Count(origin, "/") != 2 {
				t.Fatalf("dashboard is at %s, want the prefix %s", d.url, want)
			}
			status, page := d.fetch(t, "")
			found := addresses.FindAllStringSubmatch(string(page), -1)
			if status != http.StatusOK || len(found) < 10 {
				t.Fatalf("overview answered %d with %d links", status, len(found))
			}
			for _, m := range found {
				address, _, _ := strings.Cut(html.UnescapeString(m[2]), "#")
				if !strings.HasPrefix(address, want) {
					t.Errorf("link %s is outside the prefix", address)
					continue
				}
				if m[1] == "action" {
					continue // most are for POST only
				}
				status, _, err := fetch(t.Context(), origin+address)
				for err == nil && status == http.StatusServiceUnavailable { // a busy machine
					status, _, err = fetch(t.Context(), origin+address)
				}
				if err != nil || status != http.StatusOK {
					t.Errorf("%s answered %d, %v", address, status, err)
				}
			}
			// Behind a proxy that strips the prefix, and on the way to a forgotten slash.
			for _, path := range []string{"/tasks", "/api/v1/overview", "/readyz", strings.TrimSuffix(want, "/")} {
				if status, _, err := fetch(t.Context(), origin+path); err != nil || status != http.StatusOK {
					t.Errorf("%s answered %d, %v", path, status, err)
				}
			}
			_ = dial(t, d, "/")
		})
	}
}
