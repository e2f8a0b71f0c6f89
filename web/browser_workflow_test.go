package web_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// The page of a workflow follows a task that runs, on each tab; its drawings take the keyboard and fit narrow windows.
func TestBrowserWorkflow(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s := newServer(t, "/ops", nil)
	events := treeEvents(30)
	s.backend.Apply(events[:len(events)-3]...) // its last task is received, its root runs
	last := events[len(events)-2:]

	tb := newTab(t, b, s, "/workflows/r")
	tb.until(live)
	tb.want(`document.querySelector("#w-body .c-state").textContent.trim()`, "Received")
	tb.want(`document.querySelectorAll("#waterfall tr").length`, 4.0) // 29 siblings are one row
	tb.click(`#waterfall tr[id^="f-"] .open`)
	tb.until(`document.querySelectorAll("#waterfall tr").length === 32 && location.search === "?open=r" && ` + live)
	tb.eval(`void (window.stays = true)`)
	s.backend.Apply(last[0])
	tb.until(`document.querySelector("#w-body .c-state").textContent.trim() === "Success"`)
	s.backend.Apply(last[1])
	tb.until(`document.querySelector("#workflow-head .pill").textContent.trim() === "Succeeded"`)
	tb.want(`window.stays`, true) // nothing was loaded

	tb.click(`.tabs a[href$="tab=graph"]`)
	tb.until(`document.querySelectorAll("#workflow-graph .box").length === 3 && ` + live)
	tb.eval(`document.querySelector("#workflow-graph svg a").focus()`)
	tb.eval(`void (window.from = document.activeElement)`)
	tb.press(kb.ArrowRight)
	tb.until(`document.activeElement !== window.from && document.activeElement.closest("#workflow-graph svg a") !== null`)

	tb.click(`.tabs a[href$="tab=spacetime"]`)
	tb.until(`document.querySelector("#space-time [data-event]") !== null && ` + live)
	tb.eval(`document.querySelector("#space-time [data-event]").focus()`)
	tb.press(kb.ArrowRight)
	tb.until(`document.activeElement.dataset.event > 0 && document.querySelector("#space-time [data-lit]") !== null`)
	tb.want(`[...document.querySelectorAll("#space-time .arrow[data-to]")].filter((a) => a.getBBox().width === 0).length`, 0.0)

	for _, query := range []string{"", "?open=r", "?tab=graph", "?tab=spacetime"} {
		narrow := newTab(t, b, s, "/workflows/r"+query)
		narrow.width(390)
		narrow.until(live)
		narrow.want(fits, 0.0)
		narrow.want(cardsFit, 0.0)
	}
	task := newTab(t, b, s, "/tasks/part-1")
	task.width(390)
	task.until(live)
	task.want(fits, 0.0)
	task.want(`document.querySelectorAll("#task-family tbody tr").length`, 11.0) // the root, 9 of its children, the body
}

// The axis above the waterfall says when its bars begin and end, and where they are folded.
func TestBrowserWaterfallAxis(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s := newServer(t, "/ops", nil)
	for id, seconds := range map[string][3]int{"r": {0, 1, 2}, "c": {62, 63, 64}, "d": {62, 63, 66}} {
		parent := "r"
		if id == "r" {
			parent = ""
		}
		for i, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
			s.backend.Apply(treeEvent(kind, id, parent, "shop."+id, seconds[i]))
		}
	}
	for _, path := range []string{"/workflows/r", "/tasks/c"} {
		for _, width := range []int64{1400, 1024} {
			tb := newTab(t, b, s, path)
			tb.width(width)
			tb.until(live)
			tb.eval(`void (window.tick = (text) => [...document.querySelectorAll("#waterfall-axis text")].find((e) => e.textContent.replace(/\s/g, " ") === text).previousElementSibling.getBoundingClientRect().left)`)
			tb.eval(`void (window.bar = (id, part) => document.querySelector("[id='w-" + id + "'] .lane " + part).getBoundingClientRect())`)
			tb.eval(`void (window.near = (a, b) => Math.abs(a - b) <= 2)`)
			for name, same := range map[string]string{
				"0":              `near(tick("0"), bar("r", ".lane-track").left)`,
				"end of root":    `near(tick("2.0 s"), bar("r", ".span-running").right)`,
				"end of child":   `near(tick("1 m 4 s"), bar("c", ".span-running").right)`,
				"begin of fold":  `near(document.querySelector("#waterfall-axis svg svg rect").getBoundingClientRect().left, bar("r", "[opacity]").left)`,
				"end of fold":    `near(document.querySelector("#waterfall-axis svg svg rect").getBoundingClientRect().right, bar("r", "[opacity]").right)`,
				"labels not cut": `[...document.querySelectorAll("#waterfall-axis text")].every((e) => e.getBoundingClientRect().right < e.closest("table").getBoundingClientRect().right)`,
				"width":          `near(document.querySelector("#waterfall-axis svg").getBoundingClientRect().width, bar("r", ".lane-track").width)`,
			} {
				if tb.eval(same) != true {
					t.Errorf("%s, %d wide: %s is not as in the lanes", path, width, name)
				}
			}
		}
	}
}
