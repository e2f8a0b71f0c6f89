package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
)

// recordQueues logs two minutes of a queue: 40 messages waited at noon and 10 a minute later, and 90 were received between.
func recordQueues(t *testing.T, store history.Alerts) {
	t.Helper()
	for i, depth := range []int64{40, 10} {
		at := time.UnixMicro(noon).Add(time.Duration(i) * time.Minute)
		r := alert.Record{
			From: at.Add(-time.Minute).UnixMicro(), At: at.UnixMicro(), Connected: true, QueuesKnown: true,
			Queues:  []alert.Queue{{Name: "mail", Ready: depth}},
			Workers: []alert.Worker{{Name: "celery@a", Alive: true, Queues: []string{"mail"}}},
			Cells:   []history.Rollup{{Name: "mail.send", Worker: "celery@a", Queue: "mail", Received: 90}},
		}
		if err := store.UpdateAlerts(t.Context(), history.AlertUpdate{At: at, Record: r.Encode()}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueuesShowTimesPast(t *testing.T) {
	t.Parallel()
	o := web.Options{Prefix: "/ops"}
	withPast(t, &o)
	startWorkers(t, &o, &fakeResults{records: map[string]results.Result{}})
	h := newWeb(t, o)
	for path, want := range map[string][]string{
		"/ops/queues?" + after(75*time.Second):      {"As of <time", "1 queue, 10 messages waiting", `data-label="Waiting">10`, "What is known", "Not kept"},
		"/ops/queues/mail?" + after(75*time.Second): {"As of <time", "1.5<small>/s", "1<small>/s", "Waiting over the hour before", "Sent, not received", "celery@a"},
		"/ops/queues/mail?" + after(time.Second):    {"40"},
		"/ops/queues?" + after(10*time.Minute):      {`href="/ops/queues/mail?at=`, "Umbel kept no depths in the minutes before"},
	} {
		w := visit(t, h, path)
		for _, text := range want {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s lacks %q", path, text)
			}
		}
		if body := w.Body.String(); w.Code != http.StatusOK || strings.Contains(body, "Purge") || strings.Contains(body, "data-topic") {
			t.Errorf("%s: status %d, or something can be done", path, w.Code)
		}
	}
	if w := visit(t, h, "/ops/queues/nothing?"+after(time.Minute)); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "was known then") {
		t.Errorf("a queue that there was not: %d", w.Code)
	}
	if !strings.Contains(visit(t, h, "/ops/queues").Body.String(), `id="look-back"`) {
		t.Error("the page of now does not offer to look back")
	}
	for path, want := range map[string]string{
		"/ops/api/v1/queues?" + after(75*time.Second):             `"ready":10,"unacked":null`,
		"/ops/api/v1/queues/mail?" + after(75*time.Second):        `"depths":[{"at":"2026-11-21T12:00:00.000000Z","ready":40}`,
		"/ops/api/v1/queues/mail?peek=3&" + after(75*time.Second): `"waiting_error":"Contents of queues are not kept."`,
		"/ops/api/v1/queues?" + after(10*time.Minute):             `"at":null`,
	} {
		if w := visit(t, h, path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
}

// TestEveryPageShowsAnInstantOrSaysWhyNot walks the table of pages.
func TestEveryPageShowsAnInstantOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, "", func(o *web.Options) { withPast(t, o) })
	lasting := 0
	for pattern := range h.Topics() {
		path := guardedAddress{pattern: pattern}.path() + "?" + after(time.Minute)
		w := visitAs(t, h, path)
		_, why, _ := strings.Cut(w.Body.String(), "Known only as it is now")
		switch {
		case w.Code == http.StatusOK || w.Code == http.StatusNotFound:
			lasting++
			if !strings.Contains(w.Body.String(), "As of <time") {
				t.Errorf("%s: %d without an instant", path, w.Code)
			}
		case w.Code != http.StatusBadRequest || strings.Count(why[:min(len(why), 400)], ".") == 0:
			t.Errorf("%s: %d without a sentence that says why", path, w.Code)
		}
	}
	if lasting < 15 {
		t.Errorf("%d pages show an instant", lasting)
	}
}

// TestEveryResourceAnswersForAnInstantOrSaysWhyNot walks what the OpenAPI document lists.
func TestEveryResourceAnswersForAnInstantOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, "", func(o *web.Options) { withPast(t, o) })
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
		}
	}
	if err := json.Unmarshal(visitAs(t, h, "/api/v1/openapi.json").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	lasting := 0
	for path, operations := range document.Paths {
		get, reads := operations["get"]
		if !reads || path == "/suggest" { // where at is a place in a text
			continue
		}
		w := visitAs(t, h, strings.Replace(guardedAddress{pattern: "/api/v1" + path}.path(), "/commands/no-such-thing", "/commands/7", 1)+"?"+after(time.Minute))
		var problem struct{ Detail string }
		_ = json.Unmarshal(w.Body.Bytes(), &problem) // exports are none
		refused := strings.HasSuffix(problem.Detail, "Leave out at.")
		if slices.ContainsFunc(get.Parameters, func(p struct{ Name string }) bool { return p.Name == "at" }) {
			lasting++
			if refused || w.Code >= http.StatusInternalServerError {
				t.Errorf("%s: %d %s, although it is said to answer", path, w.Code, w.Body)
			}
		} else if !refused || w.Code != http.StatusBadRequest || len(problem.Detail) < len("Leave out at.")+10 {
			t.Errorf("%s: %d %s, want a sentence that says why not", path, w.Code, w.Body)
		}
	}
	if lasting < 20 {
		t.Errorf("%d resources answer for an instant", lasting)
	}
}

// visitAs requests a page as one who may do everything.
func visitAs(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header = everyAudience()[auth.Everything].Clone()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
