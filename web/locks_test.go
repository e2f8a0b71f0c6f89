package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// heldKey is the lock of a call of no task that is known.
const heldKey = "lock:celery:exec:billing.charge:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// watchLocks returns locks, two of which are held, and a watcher of them.
func watchLocks(t testing.TB, tasks locks.Tasks) (*locks.Memory, *locks.Watcher) {
	t.Helper()
	m := locks.NewMemory(locks.DefaultPatterns(), time.Now)
	m.Set(heldKey, "processing", time.Now().Add(time.Hour), true)
	m.Set("qo_stuck", "x", time.Time{}, true)
	w, err := locks.New(locks.Options{Source: m, Tasks: tasks, Every: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

func TestLocksAreListedFoundAndReleased(t *testing.T) {
	t.Parallel()
	b := &workersBackend{backend: newBackend(t, state.Options{})}
	b.workers = newWorkers(t, b.backend, false)
	h := newWeb(t, web.Options{Backend: b, Commands: b.workers.commands, Prefix: "/ops"})
	for path, want := range map[string]int{"/ops/locks": 2, "/ops/locks?find=BILLING": 1, "/ops/locks?show=celery-once": 1, "/ops/locks?show=stuck": 0} {
		page := visit(t, h, path).Body.String()
		if got := strings.Count(page, "/act/release?key="); got != want {
			t.Errorf("%s offers %d releases, want %d", path, got, want)
		}
	}
	if page := visit(t, h, "/ops/duplicates").Body.String(); !strings.Contains(page, `href="/ops/locks"`) {
		t.Error("the page of duplicates has no link to the locks")
	}
	const form = "/ops/act/release?key=qo_stuck"
	page := visit(t, h, form).Body.String()
	fields := hiddenFields(page, "/ops/act/release")
	if status, _, page := post(t, h, "/ops/act/release", fields); status != http.StatusBadRequest || !strings.Contains(page, "Confirm must be qo_stuck") {
		t.Errorf("release without confirmation = %d, want 400", status)
	}
	fields.Set("confirm", "qo_stuck")
	for range 2 { // a double click
		status, location, page := post(t, h, "/ops/act/release", fields)
		if status != http.StatusSeeOther || location != "/ops/outbox/1" {
			t.Fatalf("release = %d to %q, want 303 to the one request: %s", status, location, words(page))
		}
	}
	eventually(t, "the lock is released", func() bool {
		return strings.Contains(visit(t, h, "/ops/outbox/1").Body.String(), "lock released")
	})
	if w := visit(t, h, form); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "There is no such lock") {
		t.Errorf("form of a lock that is gone = %d, want 404", w.Code)
	}
	if page := words(visit(t, h, "/ops/outbox/audit").Body.String()); strings.Count(page, "key qo_stuck") != 1 {
		t.Errorf("the audit log does not tell once: %s", page)
	}
}

// A lock that was taken again since it was seen is not released.
func TestChangedLocksAreNotReleased(t *testing.T) {
	t.Parallel()
	b := &workersBackend{backend: newBackend(t, state.Options{})}
	b.workers = newWorkers(t, b.backend, false)
	h := newWeb(t, web.Options{Backend: b, Commands: b.workers.commands, Prefix: "/ops"})
	fields := hiddenFields(visit(t, h, "/ops/act/release?key=qo_stuck").Body.String(), "/ops/act/release")
	b.workers.locks.Set("qo_stuck", "y", time.Time{}, false)
	fields.Set("confirm", "qo_stuck")
	if status, _, page := post(t, h, "/ops/act/release", fields); status != http.StatusConflict || !strings.Contains(page, "The lock has changed") {
		t.Errorf("release = %d %s, want 409", status, words(page))
	}
	if list, err := b.workers.locks.Read(t.Context(), []string{"qo_stuck"}); err != nil || list[0].Missing {
		t.Errorf("the lock = %+v, %v, want it there", list, err)
	}
}

func TestReadOnlyReleasesNothing(t *testing.T) {
	t.Parallel()
	b := &workersBackend{backend: newBackend(t, state.Options{})}
	b.workers = newWorkers(t, b.backend, true)
	h := newWeb(t, web.Options{Backend: b, Commands: b.workers.commands, Prefix: "/ops", ReadOnly: true})
	if page := visit(t, h, "/ops/locks").Body.String(); strings.Contains(page, "/act/release") || !strings.Contains(page, "billing") {
		t.Error("a page that is read-only offers a release, or shows no locks")
	}
	if w := visit(t, h, "/ops/act/release?key=qo_stuck"); w.Code != http.StatusNotFound {
		t.Errorf("form = %d, want 404", w.Code)
	}
	if _, err := b.workers.commands.Release(t.Context(), command.Caller{}, command.ReleaseRequest{Key: "qo_stuck"}); err == nil {
		t.Error("a service that is read-only has released a lock")
	}
}

// brokenLocks are locks that cannot be read.
type brokenLocks struct{ *locks.Memory }

func (brokenLocks) Scan(context.Context, locks.Cursor) ([]string, locks.Cursor, error) {
	return nil, nil, errors.New("the user of redis://cache may not use SCAN on the keys of locks")
}

func TestLocksThatCannotBeReadHarmNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	w, err := locks.New(locks.Options{Source: brokenLocks{locks.NewMemory(nil, time.Now)}, Tasks: b})
	if err != nil {
		t.Fatal(err)
	}
	c := &workersBackend{backend: b}
	c.workers = newWorkersWith(t, b, w, false)
	h := newWeb(t, web.Options{Backend: c, Commands: c.workers.commands, Prefix: "/ops"})
	for path, want := range map[string]string{"/ops/locks": "may not use SCAN", "/ops/api/v1/locks": "may not use SCAN", "/ops/tasks": "task-"} {
		if page := visit(t, h, path); page.Code != http.StatusOK || !strings.Contains(page.Body.String(), want) {
			t.Errorf("%s = %d without %q", path, page.Code, want)
		}
	}
}

// What a person sees of locks in a real browser.
func TestBrowserLocks(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s, c := newWorkersServer(t)
	tb := newTab(t, b, s, "/locks")
	tb.until(live)
	tb.until(`document.querySelectorAll("#locks tr").length === 2`)
	tb.eval(`void (window.unloaded = false)`)
	c.locks.Set("qo_new", "x", time.Time{}, true)
	tb.until(`document.querySelectorAll("#locks tr").length === 3`)
	tb.want(`window.unloaded`, false)
	tb.eval(`void document.querySelector('#locks a[href*="qo_stuck"]').click()`)
	tb.until(`location.pathname === "/ops/act/release" && document.querySelector("#field-confirm") !== null`)
	tb.eval(`void (document.querySelector("#field-confirm").value = "qo_stuck")`)
	tb.eval(`void document.querySelector("form button.danger").click()`)
	tb.until(`location.pathname === "/ops/outbox/1"`)
	tb.until(`document.querySelector("main").innerText.includes("lock released")`)
}
