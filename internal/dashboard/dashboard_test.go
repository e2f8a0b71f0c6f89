package dashboard_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/livetest"
	brokers "github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/history"
)

const prefix = "/ops/celery"

func embed(t *testing.T) *dashboard.Dashboard {
	t.Helper()
	u, err := dashboard.New(dashboard.Options{Broker: inproc.New(inproc.Options{}), Prefix: prefix, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return u
}

// run runs u until the test ends, and returns when it is ready.
func run(t *testing.T, u *dashboard.Dashboard) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ask(t, u, "/readyz") != http.StatusOK {
		<-tick.C
	}
}

// ask returns the status of the answer to a request below the prefix.
func ask(t *testing.T, u *dashboard.Dashboard, path string) int {
	t.Helper()
	w := httptest.NewRecorder()
	u.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, prefix+path, nil))
	return w.Code
}

func TestWorksUnderEveryRouter(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]func(u http.Handler) http.Handler{
		"alone": func(u http.Handler) http.Handler { return u },
		"ServeMux": func(u http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle(prefix+"/", u)
			return mux
		},
		"StripPrefix": func(u http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle(prefix+"/", http.StripPrefix(prefix, u))
			return mux
		},
		"chi Mount": func(u http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Mount(prefix, u)
			return r
		},
		"chi Mount in a Route": func(u http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Route("/ops", func(r chi.Router) { r.Mount("/celery", u) })
			return r
		},
		"chi Handle": func(u http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Handle(prefix+"/*", u)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := embed(t)
			run(t, u)
			server := httptest.NewServer(mount(u))
			t.Cleanup(server.Close)
			visitAll(t, server.URL)
		})
	}
}

// visitAll looks at each kind of address below the prefix.
func visitAll(t *testing.T, origin string) {
	t.Helper()
	status, page := get(origin + prefix + "/")
	if status != http.StatusOK || !strings.Contains(page, `data-topic="/"`) {
		t.Fatalf("overview answered %d", status)
	}
	links := regexp.MustCompile(`(?:href|src)="(/[^"#]+)`).FindAllStringSubmatch(page, -1)
	if len(links) < 8 {
		t.Errorf("overview has %d links", len(links))
	}
	for _, link := range links {
		want := http.StatusOK
		if strings.HasSuffix(link[1], "?at=now") {
			want = http.StatusNotFound // an empty history has no past
		}
		if status, _ := get(origin + link[1]); status != want || !strings.HasPrefix(link[1], prefix+"/") {
			t.Errorf("link %s answered %d, want %d", link[1], status, want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/workers", "/api/v1/tasks?limit=1", "/api/v1/openapi.json"} {
		if status, body := get(origin + prefix + path); status != http.StatusOK {
			t.Errorf("%s answered %d: %s", path, status, body)
		}
	}
	for path, want := range map[string]string{"/tasks/no%2Fsuch": "no/such", "/nothing": "This page does not exist"} {
		if status, body := get(origin + prefix + path); status != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s answered %d, want 404 and a page with %q", path, status, want)
		}
	}
	subscribe(t, origin+prefix+"/ws?topic=%2F")
}

// subscribe opens a socket and waits for the first frame.
func subscribe(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1), nil)
	if err != nil {
		t.Fatalf("open socket: %v", err)
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	var r livetest.Reader
	for m := (livetest.Message{}); !m.Frame; {
		if m, _, err = r.Read(ctx, conn); err != nil {
			t.Fatalf("read frame: %v", err)
		}
	}
}

func TestNothingRunsBeforeRunAndAfterClose(t *testing.T) {
	ignored := goleak.IgnoreCurrent()
	u, err := dashboard.New(dashboard.Options{Broker: inproc.New(inproc.Options{}), Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	// What waits to open connections is all that an open database runs.
	goleak.VerifyNone(t, ignored, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
	for path, want := range map[string]int{"/": http.StatusOK, "/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/ws": http.StatusServiceUnavailable} {
		if got := ask(t, u, path); got != want {
			t.Errorf("before Run, %s answered %d, want %d", path, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	if got := ask(t, u, "/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("after Run, /readyz answered %d", got)
	}
	if err := u.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	goleak.VerifyNone(t, ignored)
}

func TestOneUmbelUsesAHistory(t *testing.T) {
	t.Parallel()
	o := dashboard.Options{Broker: inproc.New(inproc.Options{}), DataDir: t.TempDir()}
	u, err := dashboard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dashboard.New(o)
	if _, isHistory := errors.AsType[*dashboard.HistoryError](err); !isHistory || !errors.Is(err, history.ErrLocked) {
		t.Errorf("a second one in %s: %v, want it to be told that the history is in use", o.DataDir, err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := dashboard.New(o)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestADamagedHistoryIsSetAsideAndToldOnEveryPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "history.db"), bytes.Repeat([]byte("garbage "), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := dashboard.New(dashboard.Options{Broker: inproc.New(inproc.Options{}), DataDir: dir, Prefix: prefix, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	run(t, u)
	for _, path := range []string{"/", "/tasks", "/workers", "/settings", "/api/v1/overview"} {
		w := httptest.NewRecorder()
		u.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, prefix+path, nil))
		for _, want := range []string{"history.damaged-", "umbel repair"} {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s answered %d, want 200 and %q", path, w.Code, want)
			}
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	broker := inproc.New(inproc.Options{})
	for name, tc := range map[string]struct {
		options dashboard.Options
		want    string
	}{
		"none":                     {dashboard.Options{}, "no broker URL"},
		"no scheme":                {dashboard.Options{BrokerURL: "localhost"}, "begins with amqp://"},
		"password before scheme":   {dashboard.Options{BrokerURL: "bob:secret://localhost"}, "begins with amqp://"},
		"another broker":           {dashboard.Options{BrokerURL: "sqs://:secret@localhost"}, "sqs:// are not supported"},
		"queue on Redis":           {dashboard.Options{BrokerURL: "redis://:secret@host", Queue: "q"}, "needs RabbitMQ"},
		"management API of Redis":  {dashboard.Options{BrokerURL: "redis://:secret@host", ManagementURL: "http://h:15672"}, "is RabbitMQ's"},
		"options of Redis":         {dashboard.Options{BrokerURL: "amqp://bob:secret@h", Redis: redis.Options{KeyPrefix: "x"}}, "need a URL of Redis"},
		"sentinels alone":          {dashboard.Options{BrokerURL: "sentinel://:secret@h"}, "needs the name of the master"},
		"bad URL":                  {dashboard.Options{BrokerURL: "amqp://bob:sec/ret@localhost"}, "percent-encoded"},
		"reserved queue":           {dashboard.Options{BrokerURL: "amqp://", Queue: "amq.x"}, "reserves"},
		"expiry too short":         {dashboard.Options{BrokerURL: "amqp://", Queue: "x", QueueExpires: 1}, "queue expiry"},
		"certificates without TLS": {dashboard.Options{BrokerURL: "amqp://bob:secret@host", TLS: brokers.TLS{CAFile: "ca.pem"}}, "amqps://"},
		"prefix":                   {dashboard.Options{Broker: broker, Prefix: "/a?b"}, "plain path"},
		"negative limit":           {dashboard.Options{Broker: broker, MaxTasks: -1}, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := dashboard.New(tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error = %v, want one with %q and without the password", err, tc.want)
			}
		})
	}
}

func get(url string) (int, string) {
	res, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}
