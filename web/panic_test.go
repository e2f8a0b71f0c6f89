package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// broken is a backend whose cluster cannot be read.
type broken struct{ *backend }

func (broken) View(func(c state.View)) { panic("secret of the cluster") }

func TestPanicIsAPageWithAnID(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := newWeb(t, web.Options{Backend: broken{newBackend(t, state.Options{})}, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	w := request(t, h, http.MethodGet, "/tasks", "", "Accept-Encoding", "gzip")
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status = %d, want 500", w.Code)
	}
	page := w.Body.String()
	if strings.Contains(page, "secret") {
		t.Error("the page tells the cause")
	}
	ids := find(`"request_id":"([A-Z0-9]+)"`, log.String())
	if len(ids) != 1 || !strings.Contains(page, ids[0]) {
		t.Errorf("the page does not show the request id %v of the log:\n%s", ids, page)
	}
	if !strings.Contains(log.String(), "secret of the cluster") {
		t.Errorf("the log does not tell the cause: %s", &log)
	}
}
