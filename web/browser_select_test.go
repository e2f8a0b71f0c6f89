package web_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// newActingServer returns a server whose tasks can be acted on.
func newActingServer(t *testing.T) (*server, *actingWorkers) {
	t.Helper()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	var acted *actingWorkers
	s.options = func(o *web.Options) { acted = startWorkers(t, o, nil) }
	s.start()
	t.Cleanup(func() { s.stop() })
	return s, acted
}

// box is the selector of the box of a task.
func box(id string) string { return "#t-" + id + " .c-pick input" }

// The ids of the tasks that are selected, and what the page says of them.
const (
	selected = `[...document.querySelectorAll("#tasks .c-pick input:checked")].map((b) => b.value).join(" ")`
	said     = `document.querySelector("#selection output").innerText`
	barShown = `getComputedStyle(document.querySelector("#selection")).display !== "none"`
)

// withShift holds the key while the mouse clicks.
func withShift(p *input.DispatchMouseEventParams) { p.Modifiers = 8 }

func rowsAreSelected(t *testing.T, b context.Context) {
	s, _ := newActingServer(t)
	tb := newTab(t, b, s, "/tasks?chart=off&limit=10")
	tb.until(live)
	tb.want(barShown, false)
	tb.click(box("task-27"))
	tb.until(said + ` === "1 selected"`)
	tb.want(barShown, true)

	x, y := tb.middle(box("task-24"))
	if err := chromedp.Do(tb.ctx, chromedp.MouseClickXY(x, y, withShift)); err != nil {
		t.Fatal(err)
	}
	tb.until(said + ` === "4 selected"`)
	tb.want(selected, "task-27 task-26 task-25 task-24")

	// Rows go on changing, and stay where they are.
	tb.point("h1")
	tb.eval(`document.activeElement.blur()`)
	s.backend.now(state.TaskReceived, "one")
	s.backend.now(state.TaskSucceeded, "task-26")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "1 new"`)
	tb.until(`document.querySelector("#t-task-26").innerText.includes("Success")`)
	tb.want(selected, "task-27 task-26 task-25 task-24")
	tb.want(rows, "t-task-29 t-task-28 t-task-27")

	// Letting the others in keeps those that stay.
	tb.press("n")
	tb.until(rows + ` === "t-task-26 t-one t-task-29"`)
	tb.want(selected, "task-26 task-27 task-25 task-24")

	tb.click("[data-pick-all]")
	tb.until(said + ` === "All 10 on this page selected"`)
	tb.until(`document.querySelector(".all-matching").innerText.includes("all 31 that match")`)
	tb.click(".all-matching input")
	tb.want(`new FormData(document.querySelector("#selection")).has("q")`, true)
	tb.click(box("one"))
	tb.until(said + ` === "9 selected"`)
	tb.want(`new FormData(document.querySelector("#selection")).has("q")`, false)

	tb.press("\x1b")
	tb.until(selected + ` === ""`)
	tb.want(barShown, false)
	tb.press("j")
	tb.press("x")
	tb.press("j")
	tb.press("j")
	tb.press("X")
	tb.until(said + ` === "3 selected"`)
}

func rowsArePreviewed(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/tasks?chart=off")
	tb.until(live)
	const shown = `document.querySelector(".peek .whole-id")?.innerText`
	tb.press("j")
	tb.press(" ")
	tb.until(shown + ` === "task-29"`)
	tb.press("j")
	tb.until(shown + ` === "task-28"`)
	tb.want(`document.querySelectorAll("[id]").length === new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size`, true)
	tb.want("location.pathname", "/ops/tasks")
	tb.press("\x1b")
	tb.until(`document.querySelector(".peek") === null`)
	tb.press(" ")
	tb.until(shown + ` === "task-28"`)
	tb.press(" ")
	tb.until(`document.querySelector(".peek") === null`)
}

func selectedTasksAreRevoked(t *testing.T, b context.Context) {
	s, acted := newActingServer(t)
	s.backend.now(state.TaskReceived, "first")
	s.backend.now(state.TaskReceived, "second")
	tb := newTab(t, b, s, "/tasks?chart=off")
	tb.until(live)
	tb.click(box("first"))
	tb.click(box("second"))
	tb.click(box("task-27"))
	tb.until(said + ` === "3 selected"`)
	tb.click(`#selection button[value="revoke"]`)
	tb.until(`document.querySelector(".summary")?.innerText === "Revoke 2 tasks"`)
	tb.want(`document.querySelector(".preflight").innerText.includes("Already finished.")`, true)
	if got := acted.requests(); len(got) != 0 {
		t.Errorf("workers were told %v before the order", got)
	}
	tb.click(`.act form[method="post"] button`)
	tb.until(`location.pathname === "/ops/outbox/1"`)
	tb.until(`document.querySelector("main").innerText.includes("flagged as revoked") || document.querySelector("main").innerText.includes("2 of 2")`)
	want := []string{`celery@a revoke ["second","first"]`, `celery@b/1%20ü revoke ["second","first"]`}
	if got := acted.requests(); len(got) != 2 {
		t.Errorf("workers were told %v, want %v", got, want)
	} else if diff := cmp.Diff(want[:1], got[:1]); diff != "" {
		t.Logf("in another order (-want +got):\n%s", diff)
	}
}
