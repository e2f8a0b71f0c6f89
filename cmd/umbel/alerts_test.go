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

// A task fails on a worker: an alert fires, its webhook is told once although it is away at first, and once more when it ends.
func TestEndToEndAlertTellsAWebhook(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	h := &hook{keys: map[string]bool{}}
	receiver := httptest.NewServer(h)
	defer receiver.Close()
	d, err := parts.New(parts.Options{
		BrokerURL: c.broker, AlertInterval: time.Second, Logger: slog.New(slog.DiscardHandler),
		Alerts: receivers.Config{Receivers: []receivers.Receiver{{Name: "ops", Webhook: receiver.URL, Secret: "key"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := errors.Join(<-ended, d.Close()); err != nil {
			t.Error(err)
		}
	}()
	ask := func(method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/api/v1"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	rule := `{"name":"Failures","enabled":true,"receivers":["ops"],"rule":{"kind":"threshold","measure":"failed","query":"name:tasks.boom","window_seconds":3}}`
	if status, body := ask(http.MethodPost, "/alerts/rules", rule); status != http.StatusCreated {
		t.Fatalf("add rule: %d %s", status, body)
	}
	c.work(t, "alert@test", "celery", "-P", "solo", "-E")
	eventually(t, timeout, func() error {
		if _, body := ask(http.MethodGet, "/workers", ""); !strings.Contains(body, "alert@test") {
			return fmt.Errorf("workers = %s", body)
		}
		return nil
	})
	c.call(t, "boom", "x")
	want := []string{"Firing: Failures", "Resolved: Failures"}
	eventually(t, timeout, func() error {
		if got := h.got(); len(got) < len(want) {
			return fmt.Errorf("told %v", got)
		}
		return nil
	})
	if diff := cmp.Diff(want, h.got()); diff != "" || len(h.keys) != 2 {
		t.Errorf("%d keys; told (-want +got):\n%s", len(h.keys), diff)
	}
	if _, body := ask(http.MethodGet, "/alerts", ""); strings.Count(body, `"start"`) != 1 || !strings.Contains(body, "1 failure in 3 s, above 0.") || strings.Contains(body, `"end":null`) {
		t.Errorf("alerts = %s, want one that has ended", body)
	}
}
