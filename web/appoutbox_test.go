package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// shopOutbox is an application's outbox with a row, or more, and a dead letter.
type shopOutbox struct {
	lettersOutbox

	mu    sync.Mutex
	now   time.Time // of its clock
	rows  int
	lists int // how often rows were listed for a page
	err   error
}

func newShopOutbox() *shopOutbox { return &shopOutbox{now: time.Now(), rows: 1} }

func (s *shopOutbox) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shopOutbox) Stats(context.Context) (outboxwatch.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.now.Add(-time.Hour)
	states := map[outboxwatch.State]history.Count{}
	for _, state := range outboxwatch.States() {
		states[state] = history.Count{Exact: true}
	}
	states[outboxwatch.Pending], states[outboxwatch.InFlight] = history.Count{N: s.rows, Exact: true}, history.Count{N: 100_000}
	return outboxwatch.Stats{
		Now: s.now, FirstReady: 1, ReadySince: since, OldestReady: since, DeadLetters: history.Count{N: 2, Exact: true},
		States:        states,
		MissingGrants: []string{`GRANT INSERT ON "celery_outbox" TO "reader"`},
	}, s.err
}

func (s *shopOutbox) Rows(ctx context.Context, r outboxwatch.RowRequest) (page outboxwatch.RowPage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Payload { // the watcher reads rows without it
		s.lists++
	}
	if ctx.Err() != nil {
		return page, &outboxwatch.Error{Fault: outboxwatch.FaultAway, Text: "Away.", Err: ctx.Err()}
	}
	for id := range s.rows {
		if r.State == "" || r.State == outboxwatch.Pending {
			page.Rows = append(page.Rows, outboxwatch.Row{
				ID: int64(id + 1), TaskID: "task-01", TaskName: "shop.<b>pay</b>", State: outboxwatch.Pending, CreatedAt: s.now, SchemaVersion: 1,
				Payload: outboxwatch.Payload{Args: json.RawMessage(`[1]`), Kwargs: json.RawMessage(`{"password":"s3cret"}`)},
			})
		}
	}
	if r.Limit == 1 {
		page.Next = "~1"
	}
	return page, s.err
}

// ByTask returns the rows of tasks.
func (s *shopOutbox) ByTask(ctx context.Context, ids []string) ([]outboxwatch.Row, []outboxwatch.DeadLetter, error) {
	page, err := s.Rows(ctx, outboxwatch.RowRequest{})
	rows := slices.DeleteFunc(page.Rows, func(r outboxwatch.Row) bool { return !slices.Contains(ids, r.TaskID) })
	return rows, nil, err
}

// watched is a watcher of s that has read it.
func watched(t testing.TB, s outboxwatch.Source) *outboxwatch.Watcher {
	t.Helper()
	w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{s}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	reread(t, w)
	return w
}

// reread waits until w has read its source.
func reread(t testing.TB, w *outboxwatch.Watcher) {
	t.Helper()
	for range 2 { // the first one may have begun before
		changed := w.Changed()
		w.Refresh("shop")
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("the outbox is not read")
		}
	}
}

func TestAppOutboxPages(t *testing.T) {
	t.Parallel()
	s := newShopOutbox()
	w := watched(t, s)
	h := newWeb(t, web.Options{AppOutboxes: w, Prefix: "/ops"})
	says := func(target string, status int, words ...string) {
		t.Helper()
		got := visit(t, h, target)
		page := strings.ReplaceAll(got.Body.String(), "\u202f", " ")
		if got.Code != status {
			t.Errorf("GET %s = %d, want %d", target, got.Code, status)
		}
		for _, word := range append(words, "Outbox") {
			if word != "Outbox" && !strings.Contains(page, word) {
				t.Errorf("%s does not say %q:\n%s", target, word, page)
			}
		}
		if strings.Contains(page, "s3cret") {
			t.Errorf("%s shows a secret", target)
		}
	}
	says("/ops/outbox/app", http.StatusOK, `data-topic="/outbox/app"`, "shop.&lt;b&gt;pay&lt;/b&gt;", "100 000+", "oldest for 1 h", "Umbel’s commands", "********")
	says("/ops/outbox/app?state=due", http.StatusOK, "No matching rows.")
	says("/ops/outbox/app?limit=1", http.StatusOK, `href="/ops/outbox/app?cursor=~1&amp;limit=1"`)
	says("/ops/outbox/app?chart=24h,age", http.StatusOK, "Age of the oldest waiting task", `href="/ops/outbox/app?chart=7d%2Cage"`)
	says("/ops/outbox/app/dead", http.StatusOK, "Dead letters can only be read.", "GRANT INSERT ON &#34;celery_outbox&#34;")
	says("/ops/outbox/app?outbox=none", http.StatusNotFound, "watches no outbox of this name")
	says("/ops/outbox/app?state=sent", http.StatusBadRequest, "state must be pending")
	says("/ops/outbox/app?chart=30d", http.StatusBadRequest, "has a part")

	left, leave := context.WithCancel(t.Context()) // a visitor who leaves at once spoils nothing for the next one
	leave()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(left, http.MethodGet, "/ops/outbox/app?limit=7", nil))
	says("/ops/outbox/app?limit=7", http.StatusOK, "shop.&lt;b&gt;pay&lt;/b&gt;")

	var before, after int
	s.change(func() { before = s.lists })
	begin := time.Now()
	for range 20 {
		says("/ops/outbox/app", http.StatusOK)
	}
	readings := 1 + int(time.Since(begin)/(5*time.Second))
	s.change(func() { after = s.lists })
	if after > before+readings+1 {
		t.Errorf("rows were listed %d times for 20 visits, want once for each of %d readings", after-before, readings)
	}

	s.change(func() { s.now = s.now.Add(outboxwatch.StoppedAfter) })
	reread(t, w)
	says("/ops/", http.StatusOK, "The relay of the outbox shop has stopped.", "1 task waits to be sent;", "has stopped: 1 task waits to be sent, and none was taken for 2 min.")
	says("/ops/metrics", http.StatusOK, `umbel_app_outbox_relay_stopped{outbox="shop"} 1`, `umbel_app_outbox_ready{outbox="shop"} 1`, `umbel_app_outbox_oldest_ready_seconds{outbox="shop"} 3600`)

	s.change(func() {
		s.err = &outboxwatch.Error{Fault: outboxwatch.FaultNoTable, Text: "The database has no table celery_outbox."}
	})
	reread(t, w)
	says("/ops/outbox/app", http.StatusServiceUnavailable, "The database has no table celery_outbox.", "The numbers are from")
	says("/ops/tasks", http.StatusOK, "task-29")
	says("/ops/metrics", http.StatusOK, `umbel_app_outbox_up{outbox="shop"} 0`)
}

// TestBrowserAppOutbox follows an outbox in an open page.
func TestBrowserAppOutbox(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	app := newShopOutbox()
	w := watched(t, app)
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.options = func(o *web.Options) { o.AppOutboxes = w }
	s.start()
	t.Cleanup(func() { s.stop() })
	tb := newTab(t, b, s, "/outbox/app")
	tb.until(live)
	tb.until(`document.querySelectorAll("#app-rows tr").length === 1`)
	app.change(func() { app.rows = 3; app.now = app.now.Add(outboxwatch.StoppedAfter) })
	reread(t, w)
	tb.until(`document.querySelectorAll("#app-rows tr").length === 3`)
	tb.until(`document.querySelector("#app-outbox-alert").textContent.includes("has stopped")`)
	tb.want(`document.querySelector("#app-outbox-tiles .figure").textContent.trim()`, "3")
	tb.eval(`void document.querySelector('.chip[href*="state=due"]').click()`)
	tb.until(`location.search === "?state=due" && document.querySelectorAll("#app-rows tr").length === 0`)
}
