package web_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// ticked counts the checks of a fresh installation that are done.
const ticked = `document.querySelectorAll("#checklist li.done").length`

func TestBrowserTicksOffChecks(t *testing.T) {
	t.Parallel()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.backend.Cluster = testcluster.New(t, state.Options{})
	s.start()
	t.Cleanup(func() { s.stop() })
	tb := newTab(t, testbrowser.Open(t), s, "/")
	tb.until(live)
	tb.want(ticked, 1.0) // the broker is connected
	tb.want(`document.querySelectorAll("#checklist [data-copy]").length`, 3.0)

	s.backend.Apply(paintedEvents()[0])
	tb.until(ticked + ` === 2`)
	sent := taskEvent(state.TaskSent, "first", 1)
	sent.Name, sent.Queue = "billing.charge", "celery"
	sent.Present |= state.FieldName | state.FieldQueue
	s.backend.Apply(sent)
	tb.until(ticked + ` === 3`)
	tb.want(`document.querySelector("#checklist-title").innerText`, "Setting up")
	s.backend.happen(state.TaskReceived, "first", 2)
	tb.until(`document.querySelector("#checklist").hidden`)
}

func TestBrowserClosesTheTourOfTheDemo(t *testing.T) {
	t.Parallel()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.options = func(o *web.Options) { o.Demo = true }
	s.start()
	t.Cleanup(func() { s.stop() })
	b := testbrowser.Open(t)
	tb := newTab(t, b, s, "/")
	tb.until(live)
	tb.click("#tour li a")
	tb.until(`location.pathname === "/ops/failures/` + failureID() + `" && ` + live)
	tb.eval(`void location.assign("/ops/")`)
	tb.until(`document.querySelector("#tour button") !== null && ` + live)
	tb.click("#tour button")
	tb.until(`document.querySelector("#tour") === null && ` + live)
	tb.eval(`void location.assign("/ops/about")`)
	tb.until(`document.querySelector("#about-health") !== null && ` + live)
	tb.click("header.title form button")
	tb.until(`document.querySelector("#tour") !== null && ` + live)
}

func TestOnlyTheDemoHasATour(t *testing.T) {
	t.Parallel()
	if page := visit(t, dashboard(t, newBackend(t, state.Options{})), "/ops/").Body.String(); strings.Contains(page, `id="tour"`) {
		t.Error("a cluster that is not simulated has a tour")
	}
}

func TestBrowserFindsAbout(t *testing.T) {
	t.Parallel()
	s := newServer(t, "/ops", nil)
	tb := newTab(t, testbrowser.Open(t), s, "/")
	tb.until(live)
	tb.palette()
	tb.press("about")
	tb.until(chosenOption + ` === "About Page"`)
	tb.press("\r")
	tb.until(`location.pathname === "/ops/about" && ` + live)
	tb.until(`document.querySelector("#about-health").innerText.includes("Connected to amqp://")`)
	tb.want(`document.querySelector("main").innerText.includes("Lucide icons")`, true)
}
