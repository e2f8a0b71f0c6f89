package web_test

import (
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// A visitor finds a charge that ran twice with two clicks, and excludes a field after a preview.
func TestBrowserFindsDuplicates(t *testing.T) {
	t.Parallel()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	payments(s.backend.backend, 3)
	s.options = func(o *web.Options) { o.Commands = excluding(t, s.backend.backend) }
	s.start()
	t.Cleanup(func() { s.stop() })
	tb := newTab(t, testbrowser.Open(t), s, "/")
	tb.until(live)
	tb.click(`.rail a[href$="/duplicates"]`)
	tb.until(`document.querySelector("h1")?.textContent === "Duplicates" && ` + live)
	tb.want(`document.querySelector("#duplicates .c-state .state").textContent.trim()`, "Overlapping")
	tb.click("#duplicates .open")
	tb.until(`document.querySelector("#duplicate-pairs .evidence li") && ` + live)
	tb.want(`document.querySelector("h1").textContent.trim()`, "billing.charge")
	pairs := `document.querySelectorAll("#duplicate-pairs .pair-run").length`
	tb.until(pairs + " > 1")

	other := newTab(t, testbrowser.Open(t), s, "/duplicates?name=shop.pay")
	other.until(live)
	other.want(`document.querySelectorAll("#duplicates tr").length`, 0.0)
	e := taskEvent(state.TaskReceived, "pay-again", 400) // a live list shows a group as soon as there is one
	e.Name, e.Args, e.Kwargs = "shop.pay", "()", "{'order': 7, 'request_id': 'r0'}"
	s.backend.Apply(e)
	other.until(`document.querySelectorAll("#duplicates tr").length === 1`)

	tb = newTab(t, testbrowser.Open(t), s, "/act/exclude?name=shop.pay&fields=request_id")
	tb.click(".fields .primary")
	tb.until(`document.querySelector(".preview .summary")?.textContent === "Compare shop.pay without request_id"`)
	tb.want(`[...document.querySelectorAll(".preflight .fact b")].map((b) => b.textContent).join()`, "1,1")
	tb.click(".fields .primary")
	tb.until(`document.querySelector("#rules .c-fields")?.textContent.trim() === "request_id" && ` + live)
}
