package web_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/umbelhq/umbel/state"
)

// offers are the suggestions that are shown.
const offers = `[...document.querySelectorAll("#query-options:not([hidden]) code")].map((e) => e.textContent).join(" ")`

func comboboxCompletes(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	const (
		value  = `document.querySelector("#query").value`
		active = `(document.getElementById(document.querySelector("#query").getAttribute("aria-activedescendant"))?.firstChild.textContent ?? "")`
	)
	tb.click("#query")
	tb.until(`document.querySelector("#query").role === "combobox"`)
	tb.want(`document.querySelector("#query").getAttribute("aria-expanded")`, "false")

	tb.press("sta")
	tb.until(offers + `.startsWith("state: started:")`)
	tb.want(`document.querySelector("#query").getAttribute("aria-expanded")`, "true")
	tb.want(active, "")
	tb.press("\t") // the first, and on to its values
	tb.want(value, "state:")
	tb.until(offers + `.includes("failure")`)
	tb.press("fai")
	tb.until(offers + ` === "failure"`)
	tb.press(kb.ArrowDown) // ArrowDown
	tb.want(active, "failure")
	tb.want(`document.querySelector("#query-options [aria-selected=true]").textContent.startsWith("failure")`, true)
	tb.press("\r") // taken over and run
	tb.until(rows + ` === "t-task-28 t-task-25 t-task-22"`)
	tb.want(value, "state:failure")
	tb.want(offers, "")

	tb.press(" wor")
	tb.until(offers + `.includes("worker:")`)
	tb.press(kb.Escape) // Escape
	tb.want(offers, "")
	tb.want(value, "state:failure wor")
	tb.press("\t") // leaves the field
	tb.want(`document.activeElement.id === "query"`, false)
	tb.want(value, "state:failure wor")

	// A page that is swapped in leaves the field as it is, and it still works.
	s.backend.now(state.TaskReceived, "new")
	tb.eval(`document.querySelector("#query").select()`)
	tb.click("#query")
	tb.eval(`document.querySelector("#query").select()`)
	tb.press("name:cha")
	tb.until(offers + ` === "billing.charge"`)
	tb.click("#query-options li")
	tb.want(value, "name:billing.charge")
	tb.want(`document.activeElement.id`, "query")
	tb.press("\r")
	tb.until(`location.search === "?q=name%3Abilling.charge"`)
}

func wrongWordIsMarked(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks?q=state:failure")
	tb.until(live)
	tb.want(rows, "t-task-28 t-task-25 t-task-22")
	tb.eval(`window.unloaded = false`)
	tb.eval(`document.querySelector("#query").focus()`)
	tb.eval(`document.querySelector("#query").select()`)
	tb.press("é state:retry nane:x")
	tb.press("\r")
	tb.until(`document.querySelector("#wrong mark")?.textContent === "nane"`)
	tb.want(`document.querySelector("#query").value`, "é state:retry nane:x")
	tb.want(`document.querySelector("#query").getAttribute("aria-invalid")`, "true")
	tb.want(`getSelection().toString()`, "nane") // to be typed over
	// The last good list stays, though the right part of the query has another.
	tb.want(rows, "t-task-28 t-task-25 t-task-22")
	tb.want(`document.querySelector("[data-list]").matches("[data-stale]")`, true)
	tb.want(`document.querySelector("main").dataset.topic ?? ""`, "")

	tb.click("#wrong a")
	tb.until(`document.querySelector("#query").value === "é state:retry name:x" && !document.querySelector("#wrong")`)
	tb.want(`document.querySelector("[data-list]").matches("[data-stale]")`, false)
	tb.until(live)
	tb.want(rows, "")
	tb.want(`document.querySelector("#query").getAttribute("aria-invalid") ?? ""`, "")
	tb.want(`window.unloaded`, false)
}

func columnsAndOrder(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/tasks?cols=id,state")
	tb.until(live)
	const heads = `[...document.querySelectorAll(".tasks th")].map((e) => e.textContent.trim()).join(" ")`
	tb.want(heads, "Id State")
	tb.click(".tools summary")
	tb.until(`document.querySelector(".tools details").open`)
	tb.click("#column-started-on")
	tb.until(heads + ` === "Id State Started"`)
	tb.want(`document.querySelector(".tools details").open`, true)
	tb.click("#column-started-earlier")
	tb.until(heads + ` === "Id Started State"`)
	tb.want(`document.activeElement.id`, "column-started-earlier")
	tb.click("#column-state-off")
	tb.until(heads + ` === "Id Started"`)
	tb.press(kb.Escape)
	tb.want(`document.querySelector(".tools details").open`, false)

	tb.click("[data-list] th:nth-child(2) a")
	tb.until(`document.querySelector("[data-list] th:nth-child(2)").ariaSort === "descending"`)
	tb.click("[data-list] th:nth-child(2) a")
	tb.until(`document.querySelector("[data-list] th:nth-child(2)").ariaSort === "ascending"`)
	tb.want(rows, "t-task-00 t-task-01 t-task-02")
	if got, want := queryOf(tb.eval("location.href")), "cols=id%2Cstarted&sort=started"; got != want {
		t.Errorf("query = %q, want %q", got, want)
	}
	tb.until(live)
	tb.point("h1")
	s.backend.now(state.TaskStarted, "task-00") // again, later than all others
	tb.until(rows + ` === "t-task-01 t-task-02 t-task-03"`)
	tb.want(`document.querySelectorAll("#t-task-01 td").length`, 2.0)
}

func viewsAreSaved(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/tasks?q=state:failure&sort=started")
	tb.until(live)
	tb.click(".viewbar summary")
	tb.until(`document.querySelector(".viewbar details").open`)
	tb.eval(`document.querySelector("#view-name").focus()`)
	tb.press("Old failures\r")
	const current = `document.querySelector("#views [aria-current]")?.textContent.replace(/\s+/g, " ").trim()`
	tb.until(current + ` === "Old failures 10"`)
	tb.want(`location.pathname + location.search`, "/ops/tasks?q=state%3Afailure&sort=started")
	tb.until(live)
	tb.click("#views a")
	tb.until(current + ` === "All"`)

	tb.click(".viewbar summary")
	tb.click(".save a")
	tb.until(`location.pathname === "/ops/views" && document.readyState === "complete"`)
	tb.eval(`document.querySelector(".kept input").select()`)
	tb.eval(`window.old = true`)
	tb.press("Failed\r")
	tb.until(`!window.old && document.readyState === "complete" && document.querySelector(".kept input").value === "Failed"`)
	tb.click(".kept .button.quiet")
	tb.until(`document.querySelector("h1").textContent === "Delete this view?"`)
	tb.click(".danger")
	tb.until(`location.pathname === "/ops/views" && document.querySelector(".empty") !== null`)
}

func exportIsALink(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/tasks?q=state:failure&cols=id,exc")
	tb.until(live)
	tb.eval(`void (async () => {
		const links = [...document.querySelectorAll("a[download]")];
		window.exports = await Promise.all(links.map(async (a) => (await fetch(a.href)).text()));
	})()`)
	tb.until(`window.exports !== undefined`)
	csv, _ := tb.eval(`window.exports[0]`).(string)
	if lines := strings.Split(csv, "\n"); len(lines) != 12 || lines[0] != "id,exception" || lines[1] != "task-28,ValueError('<b>')" {
		t.Errorf("CSV = %q, want a header and ten failures", csv)
	}
	jsonl, _ := tb.eval(`window.exports[1]`).(string)
	if lines := strings.Split(jsonl, "\n"); len(lines) != 11 || !strings.HasPrefix(lines[0], `{"id":"task-28"`) {
		t.Errorf("JSONL = %q, want ten failures", jsonl)
	}
}
