package web_test

import (
	"context"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// What a person does with workers in a real browser.
func TestBrowserWorkers(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	tests := map[string]func(*testing.T, context.Context){
		"worker answers":            workerAnswers,
		"worker is shut down":       workerIsShutDown,
		"workers are chosen":        workersAreChosen,
		"what it tells stays live":  workerFormStaysLive,
		"settings are found":        settingsAreFound,
		"everything has its label":  everythingHasItsLabel,
		"wrong argument is pointed": wrongArgumentIsPointedAt,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

func workerAnswers(t *testing.T, b context.Context) {
	s, c := newWorkersServer(t)
	tb := newTab(t, b, s, "/workers/celery@a")
	tb.until(live)
	tb.click("#worker-head summary")
	tb.click(`#worker-head a[href*="pool_grow"]`)
	tb.until(`document.querySelector("h1").innerText === "Grow pool" && document.activeElement !== null`)
	tb.click("#field-arg\\.n")
	tb.press("2")
	tb.click(".act button")
	tb.until(`document.querySelector(".preview .targets")?.innerText === "celery@a"`)
	tb.click(".act button")
	tb.until(`location.pathname.startsWith("/ops/outbox/")`)
	tb.until(`document.querySelector("main").innerText.includes("pool will grow")`)
	if n := c.count(`celery@a pool_grow {"n":2}`); n != 1 {
		t.Errorf("the worker was told %d times, want 1", n)
	}
}

func workerIsShutDown(t *testing.T, b context.Context) {
	s, c := newWorkersServer(t)
	tb := newTab(t, b, s, "/workers/celery@a")
	tb.until(live)
	tb.click("#worker-head summary")
	tb.click(`#worker-head a[href*="shutdown"]`)
	tb.until(`document.querySelector(".preview") !== null`)
	tb.want(`document.querySelector("h1").innerText`, "Shut down")
	tb.until(`document.querySelector(".preview").innerText.includes("mail")`) // nobody else consumes from it
	tb.click(".act button.danger")
	tb.until(`location.pathname.startsWith("/ops/outbox/")`)
	tb.until(`document.querySelector("main").innerText.includes("celery@a")`)
	eventually(t, "shutdown", func() bool { return c.count("celery@a shutdown {}") == 1 })
	if n := c.count("celery@b/1%20ü shutdown {}"); n != 0 {
		t.Errorf("another worker was shut down")
	}
}

func workersAreChosen(t *testing.T, b context.Context) {
	s, _ := newWorkersServer(t)
	tb := newTab(t, b, s, "/workers")
	tb.until(live)
	tb.want(`getComputedStyle(document.querySelector("#selection")).display`, "none")
	tb.click(`tbody tr:nth-child(2) input`)
	tb.until(`getComputedStyle(document.querySelector("#selection")).display !== "none"`)
	tb.until(`document.querySelector("#selection output").value === "1 selected"`)
	s.backend.now(state.TaskReceived, "any") // what is chosen stays so when rows change
	tb.click("[data-pick-all]")
	tb.until(`document.querySelectorAll("tbody input:checked").length === 2`)
	tb.eval(`void (document.querySelector("#selection select").value = "enable_events")`)
	tb.click("#selection button")
	tb.until(`document.querySelector(".preview .targets")?.innerText.includes("celery@a")`)
	tb.want(`document.querySelectorAll(".targets li").length`, 2.0)
}

func workerFormStaysLive(t *testing.T, b context.Context) {
	s, c := newWorkersServer(t)
	tb := newTab(t, b, s, "/workers/celery@a")
	tb.until(live)
	const tellers = `[...document.querySelectorAll("[aria-labelledby=active-title] [data-label='Source']")].map((td) => td.textContent.match(/worker|events/g).join())`
	tb.until(tellers + `.includes("worker,events")`)
	tb.eval(`window.unloaded = false`)
	c.mu.Lock()
	c.answers["celery@a"]["active"] = []any{}
	c.mu.Unlock()
	tb.until(tellers + `.every((by) => by === "events")`) // which know tasks that it does not name
	tb.want(`window.unloaded`, false)
}

func settingsAreFound(t *testing.T, b context.Context) {
	s, _ := newWorkersServer(t)
	tb := newTab(t, b, s, "/workers/celery@a?tab=config")
	tb.until(live)
	tb.until(`document.querySelectorAll(".settings tbody tr").length === 2`)
	tb.eval(`window.unloaded = false`)
	tb.click("#find")
	tb.press("broker\r")
	tb.until(`document.querySelectorAll(".settings tbody tr").length === 1`)
	tb.want(`new URLSearchParams(location.search).get("find")`, "broker")
	tb.want(`window.unloaded`, false)
	tb.until(live)
}

func wrongArgumentIsPointedAt(t *testing.T, b context.Context) {
	s, _ := newWorkersServer(t)
	tb := newTab(t, b, s, "/act/worker?method=pool_grow&worker=celery@a&arg.n=-1&check=1")
	tb.until(`document.querySelector("[aria-invalid]") !== null`)
	tb.want(`document.querySelector("[aria-invalid]").id`, "field-arg.n")
	tb.want(`document.getElementById(document.querySelector("[aria-invalid]").getAttribute("aria-describedby")).innerText.includes("n")`, true)
}

// Names of what has none, and headings that skip a level.
const unlabelled = `[
	...[...document.querySelectorAll("main :is(input:not([type=hidden]), select, textarea)")].filter((e) =>
		!e.labels?.length && !e.ariaLabel).map((e) => e.outerHTML),
	...[...document.querySelectorAll("main :is(button, a)")].filter((e) => !e.innerText.trim() && !e.ariaLabel && !e.textContent.trim()).map((e) => e.outerHTML),
	...[...document.querySelectorAll("main th")].filter((e) => !e.scope).map((e) => e.outerHTML),
	...[...document.querySelectorAll("[aria-labelledby], [aria-describedby]")].filter((e) =>
		!document.getElementById(e.getAttribute("aria-labelledby") ?? e.getAttribute("aria-describedby"))).map((e) => e.outerHTML),
	...(document.querySelectorAll("h1").length === 1 ? [] : ["headings of the first level"]),
	...(document.documentElement.scrollWidth > innerWidth ? ["wider than the window"] : []),
].join("\n")`

func everythingHasItsLabel(t *testing.T, b context.Context) {
	s, _ := newWorkersServer(t)
	for _, path := range []string{
		"/workers", "/workers/celery@a", "/workers/celery@a?tab=history", "/workers/celery@a?tab=queues", "/workers/celery@a?tab=tasks",
		"/workers/celery@a?tab=config", "/workers/celery@a?tab=system", "/workers/celery@a?tab=clock", "/workers/celery@a?tab=commands",
		"/act/worker?method=shutdown&worker=celery@a", "/act/worker?method=add_consumer&worker=celery@a", "/act/worker?method=ping",
		"/act/worker?method=shutdown&all=1",
	} {
		t.Run(path, func(t *testing.T) {
			tb := newTab(t, b, s, path)
			tb.until(`document.readyState === "complete"`)
			tb.want(unlabelled, "")
		})
	}
}
