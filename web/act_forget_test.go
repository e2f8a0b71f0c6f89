package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// ofLeft is an event of a worker about itself.
func workerLeft(kind state.Kind, clock int64) *state.Event {
	return &state.Event{
		Kind: kind, Hostname: "celery@left", PID: 50, Clock: clock, Micros: noon, ReceivedMicros: noon,
		Present: state.FieldClock | state.FieldPID | state.FieldTimestamp,
	}
}

func TestOfflineWorkerKeepsItsPoolAndQueues(t *testing.T) {
	t.Parallel()
	b := &workersBackend{backend: newBackend(t, state.Options{})}
	b.Apply(workerLeft(state.WorkerHeartbeat, 1))
	b.workers = newWorkers(t, b.backend, true)
	b.workers.mu.Lock()
	b.workers.answers["celery@left"] = answers("letters")
	b.workers.mu.Unlock()
	eventually(t, "a control connection", func() bool { return b.workers.commands.Client.Connected() })
	eventually(t, "what the worker tells", func() bool {
		b.workers.commands.Inspector.Topology(t.Context())
		known := false
		b.View(func(c state.View) {
			w, ok := c.Worker("celery@left")
			known = ok && w.LastReport != nil
		})
		return known
	})
	b.workers.mu.Lock()
	delete(b.workers.answers, "celery@left")
	b.workers.mu.Unlock()
	b.View(func(c state.View) { c.(*state.Cluster).Apply(workerLeft(state.WorkerOffline, 2)) })
	eventually(t, "a round without it", func() bool {
		return len(b.workers.commands.Inspector.Topology(t.Context()).Expected) == 2
	})
	h := newWeb(t, web.Options{Backend: b, Commands: b.workers.commands, Prefix: "/ops"})
	for path, want := range map[string][]string{
		"/ops/workers":                    {"offline", "prefork × 2", "letters as of"},
		"/ops/workers/celery@left":        {"Pool prefork × 2, queues letters, as of"},
		"/ops/api/v1/workers/celery@left": {`"queues":["letters"]`, `"pool":"prefork"`, `"reported_at":"`},
	} {
		page := words(visit(t, h, path).Body.String())
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s has no %q: %s", path, w, page)
			}
		}
	}
}

func TestOfflineWorkerIsForgottenFromItsPage(t *testing.T) {
	t.Parallel()
	b := &workersBackend{backend: newBackend(t, state.Options{})}
	b.Apply(workerLeft(state.WorkerHeartbeat, 1))
	b.Apply(workerLeft(state.WorkerOffline, 2))
	b.workers = newWorkers(t, b.backend, false)
	h := newWeb(t, web.Options{Backend: b, Commands: b.workers.commands, Prefix: "/ops"})
	const form = "/ops/act/forget?worker=celery%40left"
	if page := visit(t, h, "/ops/workers/celery@left").Body.String(); !strings.Contains(page, `href="`+form+`"`) {
		t.Fatal("the page of an offline worker does not offer to forget it")
	}
	if page := visit(t, h, "/ops/workers/celery@a").Body.String(); strings.Contains(page, "/act/forget") {
		t.Error("the page of a worker that is online offers to forget it")
	}
	page := visit(t, h, form).Body.String()
	if !strings.Contains(words(page), "Forget celery@left") {
		t.Fatalf("nothing asks before it is forgotten: %s", words(page))
	}
	status, location, _ := post(t, h, "/ops/act/forget", hiddenFields(page, "/ops/act/forget"))
	if status != http.StatusSeeOther || location != "/ops/workers" {
		t.Errorf("forgetting = %d to %q, want 303 to the list", status, location)
	}
	if w := visit(t, h, "/ops/workers/celery@left"); w.Code != http.StatusNotFound {
		t.Errorf("page of a forgotten worker = %d, want 404", w.Code)
	}
	if page := words(visit(t, h, "/ops/outbox/audit").Body.String()); !strings.Contains(page, "forget") || !strings.Contains(page, "celery@left") {
		t.Errorf("the audit log does not tell: %s", page)
	}
	for worker, want := range map[string]int{"celery@a": http.StatusConflict, "celery@left": http.StatusNotFound} {
		w := visit(t, h, "/ops/act/forget?"+url.Values{"worker": {worker}}.Encode())
		if w.Code != want || strings.Contains(w.Body.String(), `method="post" action="/ops/act/forget"`) {
			t.Errorf("asking to forget %s = %d, want %d and no button", worker, w.Code, want)
		}
		if status, _, _ := post(t, h, "/ops/act/forget", url.Values{"worker": {worker}}); status != want {
			t.Errorf("forgetting %s = %d, want %d", worker, status, want)
		}
	}
}
