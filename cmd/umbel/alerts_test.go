package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	parts "github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
)

// hook is a webhook that keeps what it gets, and is away at first.
type hook struct {
	mu        sync.Mutex
	refused   bool
	summaries []string
	keys      map[string]bool
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.refused {
		h.refused = true
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var n receivers.Notification
	_ = json.Unmarshal(body, &n)
	if r.Header.Get(receivers.SignatureHeader) != "sha256="+receivers.Sign("key", r.Header.Get(receivers.TimeHeader), body) {
		n.Summary = "wrong signature"
	}
	h.summaries = append(h.summaries, n.Summary)
	h.keys[r.Header.Get(receivers.KeyHeader)] = true
}

func (h *hook) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.summaries...)
}

// alerting is a dashboard that judges every second, and a webhook that it tells.
type alerting struct {
	t *testing.T
	h *hook
	d *parts.Dashboard
}

func newAlerting(t *testing.T, broker string) *alerting {
	t.Helper()
	h := &hook{keys: map[string]bool{}}
	receiver := httptest.NewServer(h)
	t.Cleanup(receiver.Close)
	d, err := parts.New(parts.Options{
		BrokerURL: broker, AlertInterval: time.Second, Logger: slog.New(slog.DiscardHandler),
		Alerts: receivers.Config{Receivers: []receivers.Receiver{{Name: "ops", Webhook: receiver.URL, Secret: "key"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, d.Close()); err != nil {
			t.Error(err)
		}
	})
	return &alerting{t, h, d}
}

// ask calls the API.
func (a *alerting) ask(method, path, body string) (int, string) {
	r := httptest.NewRequestWithContext(a.t.Context(), method, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	a.d.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (a *alerting) addRule(rule string) {
	a.t.Helper()
	if status, body := a.ask(http.MethodPost, "/alerts/rules", rule); status != http.StatusCreated {
		a.t.Fatalf("add rule: %d %s", status, body)
	}
}

// await waits until a resource holds every text.
func (a *alerting) await(path string, texts ...string) {
	a.t.Helper()
	eventually(a.t, timeout, func() error {
		_, body := a.ask(http.MethodGet, path, "")
		for _, text := range texts {
			if !strings.Contains(body, text) {
				return fmt.Errorf("%s = %s, want %s", path, body, text)
			}
		}
		return nil
	})
}

// expectTold waits until the webhook is told as often, and compares. Each notification has a key of its own.
func (a *alerting) expectTold(want ...string) {
	a.t.Helper()
	eventually(a.t, timeout, func() error {
		if got := a.h.got(); len(got) < len(want) {
			_, body := a.ask(http.MethodGet, "/alerts", "")
			return fmt.Errorf("told %v of %s", got, body)
		}
		return nil
	})
	a.h.mu.Lock()
	defer a.h.mu.Unlock()
	if diff := cmp.Diff(want, a.h.summaries); diff != "" || len(a.h.keys) != len(want) {
		a.t.Errorf("%d keys; told (-want +got):\n%s", len(a.h.keys), diff)
	}
}

// A task fails on a worker: an alert fires, its webhook is told once although it is away at first, and once more when it ends.
func TestEndToEndAlertTellsAWebhook(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	a := newAlerting(t, c.broker)
	a.addRule(`{"name":"Failures","enabled":true,"receivers":["ops"],"rule":{"kind":"threshold","measure":"failed","query":"name:tasks.boom","window_seconds":3}}`)
	c.work(t, "alert@test", "celery", "-P", "solo", "-E")
	a.await("/workers", "alert@test")
	c.call(t, "boom", "x")
	a.expectTold("Firing: Failures", "Resolved: Failures")
	if _, body := a.ask(http.MethodGet, "/alerts", ""); strings.Count(body, `"start"`) != 1 || !strings.Contains(body, "1 failure in 3 s, above 0.") || strings.Contains(body, `"end":null`) {
		t.Errorf("alerts = %s, want one that has ended", body)
	}
}

// A worker is killed. Its heartbeats are so rare that Celery, and Umbel, have it online for long; but a task waits, and it takes
// none. The webhook is told of that once, and that it ended when the worker is back.
func TestEndToEndAlertOfAKilledWorker(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	a := newAlerting(t, c.broker)
	a.addRule(`{"name":"Deaf","enabled":true,"receivers":["ops"],"rule":{"kind":"deaf_worker","for_seconds":1}}`)
	work := func() *process {
		return c.work(t, "deaf@test", "celery", "-P", "solo", "-E", "--heartbeat-interval=600")
	}
	killed := work()
	a.await("/queues", `"deaf@test"`) // which has reported its queues
	killed.end(t, syscall.SIGKILL)
	g := newGate(t)
	defer g.open(t)
	c.call(t, "hold", string(g))
	a.await("/queues") // polls more often while it is asked for
	a.await("/alerts", "deaf@test sends heartbeats and runs nothing, but received no task while 1 waits in queue celery.")
	a.expectTold("Firing: Deaf (deaf@test)")
	a.await("/workers/deaf@test", `"status":"online"`)
	work()
	a.expectTold("Firing: Deaf (deaf@test)", "Resolved: Deaf (deaf@test)")
}
