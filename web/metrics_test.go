package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	o := web.Options{Backend: newBackend(t, state.Options{})}
	startWorkers(t, &o, nil)
	h, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("status %d, type %q: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	for _, want := range []string{
		`umbel_outbox_commands{state="pending"} 0`, "umbel_outbox_oldest_pending_seconds 0", "umbel_outbox_dead_letters 0",
		"umbel_outbox_breaker_open 0", "umbel_outbox_sent_total 0", "# TYPE umbel_events_total counter", "umbel_broker_connected ",
	} {
		if !strings.Contains(w.Body.String(), "\n"+want) {
			t.Errorf("no %q in:\n%s", want, w.Body)
		}
	}
}
