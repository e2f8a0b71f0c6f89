package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// kept is a still life whose history is in a real store, which may break.
type savedBackend struct {
	*backend
	history *sqlite.DB
}

func (b savedBackend) History() view.History { return b.history }

func newSavedBackend(t *testing.T, dir string, rules history.RetentionRules) savedBackend {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{
		Dir: dir, Rules: rules, Now: func() time.Time { return time.UnixMicro(noon).Add(time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c := state.New(state.Options{Track: true})
	for _, e := range paintedEvents() {
		e.ReceivedMicros = e.Micros
		c.Apply(e)
	}
	var batch history.Batch
	for _, u := range c.TakeUnsaved(100) {
		batch.Tasks = append(batch.Tasks, history.Task(u))
	}
	if _, err := db.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return savedBackend{newBackend(t, state.Options{}), db}
}

func TestSettingsSayWhatWouldGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newSavedBackend(t, dir, history.RetentionRules{Succeeded: 10 * time.Second, MaxSize: 2 << 30})
	h, err := web.New(web.Options{Backend: b, Prefix: "/ops", Version: "v1", Limits: state.Options{MaxTasks: 200_000, MaxText: 1 << 29}})
	if err != nil {
		t.Fatal(err)
	}
	w := visit(t, h, "/ops/settings")
	page := w.Body.String()
	if w.Code != http.StatusOK {
		t.Fatalf("status = %d", w.Code)
	}
	// Ten of thirty tasks succeeded, one every 9 s, the first at 12:00:02. The newest is of 12:01:28.
	for _, want := range []string{
		dir + "/history.db", ">30</dd>", "10\u202fs", "forever", "up to 2\u202fGiB", "--keep-succeeded", "--keep-workers", "9 tasks", "nothing",
		"200\u202f000 tasks", "512\u202fMiB", `data-topic="/settings"`, "2026-11-21 12:00:02",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %q", want)
		}
	}
}

func TestTroubleOfTheStoreIsOnEveryPage(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.health.Store = view.StoreHealth{
		LastError: "write history: the disk is full: free some space", Since: time.UnixMicro(noon), PendingEvents: 31, Backpressure: true,
	}
	b.health.Notices = []string{"A file was set aside as <x>."}
	h := dashboard(t, b)
	for _, path := range []string{"/", "/tasks", "/tasks/task-01", "/workers", "/failures", "/settings", "/nowhere"} {
		w := visit(t, h, "/ops"+path)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s: status = %d", path, w.Code)
		}
		for _, want := range []string{
			"Cannot write history.", "the disk is full", "31 events are waiting", "receives no more",
			"Check the history.</strong> A file was set aside as &lt;x&gt;.",
		} {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: page lacks %q", path, want)
			}
		}
	}
}

func TestPagesServeWithoutTheirHistory(t *testing.T) {
	t.Parallel()
	b := newSavedBackend(t, t.TempDir(), history.RetentionRules{})
	h := dashboard(t, b)
	if err := b.history.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/": "Overview", "/settings": "The history is unavailable", "/workers": "celery@a", "/tasks": "task-01",
	} {
		if w := visit(t, h, "/ops"+path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status = %d, want 200 and %q", path, w.Code, want)
		}
	}
	if w := visit(t, h, "/ops/failures"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "<main") {
		t.Errorf("/failures: status = %d, want a page with status 503", w.Code)
	}
}
