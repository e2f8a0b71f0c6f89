package web_test

import (
	"context"
	"testing"

	"github.com/umbelhq/umbel/state"
)

func rowsChange(t *testing.T, b context.Context) {
	for name, s := range map[string]*server{
		"at the root":   newServer(t, "", nil),
		"under a path":  newServer(t, "/ops/celery", nil),
		"stripped path": newServer(t, "/ops/celery", stripped("/ops/celery")),
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTab(t, b, s, "/tasks")
			tb.until(live)
			tb.eval(`window.unloaded = false`)
			s.backend.now(state.TaskReceived, "new")
			tb.until(`document.querySelector("#tasks tr").id === "t-new"`)
			tb.eval(`void (window.row = document.getElementById("t-new"))`)
			s.backend.now(state.TaskStarted, "new")
			tb.until(`window.row.innerText.includes("Started")`)
			s.backend.now(state.TaskReceived, "newer")
			tb.until(`document.querySelector("#tasks tr").id === "t-newer"`)
			tb.want(`window.row.isConnected && document.getElementById("t-new") === window.row`, true)
			tb.want(`document.querySelectorAll("#tasks tr").length`, 32.0)
			tb.want(`document.getElementById("matches").innerText`, "32 tasks")
			tb.want(`window.unloaded`, false)
		})
	}
}

func rowsWaitUnderThePointer(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks?chart=off")
	tb.until(live)
	tb.point("#t-task-28")
	s.backend.now(state.TaskReceived, "one")
	s.backend.now(state.TaskStarted, "task-26")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "1 new"`)
	tb.want(rows, "t-task-29 t-task-28 t-task-27")
	tb.until(`document.querySelector("#t-task-26").innerText.includes("Started")`)
	s.backend.now(state.TaskReceived, "two")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "2 new"`)
	tb.want(rows, "t-task-29 t-task-28 t-task-27")

	tb.point("[data-news] button")
	s.backend.now(state.TaskReceived, "three")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "3 new"`)
	tb.click("[data-news] button")
	tb.until(rows + ` === "t-three t-two t-task-26"`)
	tb.until(`document.querySelector("[data-news] button") === null`)

	tb.point("#t-task-28")
	s.backend.now(state.TaskReceived, "four")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "1 new"`)
	tb.point("h1")
	tb.until(rows + ` === "t-four t-three t-two"`)
}

func rowsWaitForTheFocus(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.press("j")
	tb.press("j")
	tb.want(`document.activeElement.closest("tr").id`, "t-task-28")
	s.backend.now(state.TaskReceived, "one")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "1 new"`)
	tb.press("n")
	tb.until(rows + ` === "t-one t-task-29 t-task-28"`)
	tb.want(`document.activeElement.closest("tr").id`, "t-task-28")
	tb.press("\r")
	tb.until(`location.pathname === "/tasks/task-28"`)
}

func rowsWaitBelowTheFold(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.eval(`void scrollTo(0, document.body.scrollHeight)`)
	tb.until(`document.querySelector("#tasks").getBoundingClientRect().top < 0`)
	s.backend.now(state.TaskReceived, "one")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "1 new"`)
	tb.want(rows, "t-task-29 t-task-28 t-task-27")
	tb.click("[data-news] button")
	tb.until(rows + ` === "t-one t-task-29 t-task-28"`)
	tb.until(`document.querySelector("#tasks").getBoundingClientRect().top >= 0`)

	// Selected text keeps rows in their place as well.
	tb.eval(`getSelection().selectAllChildren(document.querySelector("#t-task-28 .c-worker"))`)
	s.backend.now(state.TaskReceived, "two")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "1 new"`)
	tb.eval(`getSelection().removeAllRanges()`)
	tb.point("h1")
	tb.until(rows + ` === "t-two t-one t-task-29"`)
}
