package web_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// What people come to the page of a task for.
func TestTaskPageInTheBrowser(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"similar runs":    similarRuns,
		"copy as JSON":    copyAsJSON,
		"times are local": timesAreLocal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// A dot leads to its run; on the page of a comparison it changes what is compared with.
func similarRuns(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	s.backend.Apply(failedOrder()...)
	tb := newTab(t, b, s, "/tasks/odd%2Fone")
	tb.until(live)
	tb.want(`document.querySelectorAll("#task-similar .plot a").length`, 21.0)
	tb.want(`document.querySelectorAll("#task-similar .plot a .ring").length`, 1.0)
	tb.eval(`document.querySelector("#task-similar").scrollIntoView()`)
	tb.click(`#task-similar .plot a[href="/tasks/task-00"]`)
	tb.until(`location.pathname === "/tasks/task-00" && ` + live)
	tb.eval(`void location.assign("/tasks/odd%2Fone/compare?with=task-27")`)
	tb.until(`location.search === "?with=task-27" && ` + live)
	tb.eval(`document.querySelector("#task-similar").scrollIntoView()`)
	tb.click(`#task-similar .plot a[href$="with=task-00"]`)
	tb.until(`location.search === "?with=task-00" && ` + live)
}

// Arguments are a tree, and are copied as JSON, or Python, from what Celery wrote.
func copyAsJSON(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	e := taskEvent(state.TaskReceived, "tree", 1000)
	e.Args, e.Kwargs = "({'user': {'id': 12345678901234567890, 'tags': ['a', 'b']}}, True)", "{'price': Decimal('1.10')}"
	s.backend.Apply(e)
	tb := newTab(t, b, s, "/tasks/tree")
	tb.until(live)
	tb.want(`[...document.querySelectorAll(".text-args .tree code")].map((e) => e.textContent).join("; ")`, "12345678901234567890; ['a', 'b']; True")
	tb.want(`document.querySelector(".text-args .tree summary").innerText.replace(/\s+/g, " ")`, "0 dict, 1 key")
	tb.want(`[...document.querySelectorAll(".text-kwargs header .copy")].map((b) => b.innerText.trim()).join()`, "Python")
	tb.eval(`void (navigator.clipboard.writeText = async (text) => { window.copied = text; })`)
	tb.click(`.text-args [aria-label="Copy args as JSON"]`)
	tb.until(`window.copied === '[{"user":{"id":12345678901234567890,"tags":["a","b"]}},true]'`)
	tb.until(`[...document.querySelectorAll("[role=status]")].some((e) => e.textContent === "Copied")`)
}

// One choice, in Settings, changes the times of all pages: the age in a list becomes the local time, and stays so in updates.
func timesAreLocal(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/settings")
	_, err := chromedp.Call(tb.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	if err != nil {
		t.Fatal(err)
	}
	choose := func(value, path string) {
		tb.eval(`void location.assign("/ops/settings")`)
		tb.until(`location.pathname === "/ops/settings" && ` + live)
		tb.click(`#display [value="` + value + `"]`)
		tb.until(`document.querySelector('#display [value="` + value + `"]')?.ariaPressed === "true" && ` + live)
		tb.eval(`void location.assign("/ops` + path + `")`)
		tb.until(`location.pathname === "/ops` + path + `" && ` + live)
	}
	const newest = `document.querySelector("#tasks tr time").textContent`
	choose("local", "/tasks")
	tb.until(newest + ` === "21 Nov 17:31:28"`)
	s.backend.Apply(taskEvent(state.TaskReceived, "later", 3600))
	tb.until(`document.querySelector("#tasks tr").id === "t-later" && ` + newest + ` === "21 Nov 18:30:00"`)
	tb.want(`document.querySelector("#tasks tr time").title`, "2026-11-21 18:30:00.000 local, 2026-11-21 13:00:00.000 UTC")
	choose("utc", "/tasks")
	tb.until(newest + ` === "21 Nov 13:00:00"`)
	choose("local", "/tasks/later")
	tb.until(`document.querySelector("#task-facts time").textContent === "2026-11-21 18:30:00.000"`)
	tb.want(`getComputedStyle(document.querySelector("#task-facts .zone")).display`, "none")
	for _, path := range []string{
		"/", "/types", "/types/billing.charge", "/failures?" + span, "/workers/celery@a?tab=clock", "/workers/celery@a?tab=now", "/schedules", "/about",
	} {
		tb.eval(`void location.assign("/ops` + path + `")`)
		tb.until(`location.pathname + location.search === "/ops` + path + `" && ` + live)
		tb.until(`!/\d UTC|\(UTC\)/.test(document.body.innerText)`)
	}
	tb.eval(`void location.assign("/ops/types?` + span + `")`)
	tb.until(`document.querySelector("#main .reset")?.innerText.replace(/\s+/g, " ").includes("21 Nov 18:15 – 18:25")`)
	choose("relative", "/tasks/task-00")
	tb.until(`/ ago$/.test(document.querySelector("#task-facts time").textContent)`)
	choose("", "/tasks/task-00")
	tb.want(`document.querySelector("#task-facts time").textContent`, "2026-11-21 12:00:00.000")
}
