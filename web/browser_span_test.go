package web_test

import (
	"fmt"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// A span of time, and the way back from it.
const (
	span  = "since=2026-11-21T12%3A45%3A00Z&until=2026-11-21T12%3A55%3A00Z"
	reset = `document.querySelector("#main .reset")`
)

// TestBrowserCarriesTheSpanOfTime follows the span of time that was brushed through all pages that can show it, and back.
func TestBrowserCarriesTheSpanOfTime(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s := newServer(t, "/ops", nil)
	lately(s)
	fail := func(id string, second int64) {
		for i, kind := range []state.Kind{state.TaskReceived, state.TaskFailed} {
			at := noon + (second+int64(i))*1_000_000
			s.backend.backend.Apply(&state.Event{
				Kind: kind, Hostname: "celery@a", PID: 7, ID: id, Name: "reports.nightly", Clock: 1_000_000 + 10*second + int64(i), Micros: at,
				ReceivedMicros: at, Exception: "ValueError('no " + id + "')",
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldException,
			})
		}
	}
	fail("broken-0", 600)
	fail("broken-1", 3000)
	fail("broken-2", 3010)
	tb := newTab(t, b, s, "/?"+span)
	tb.until(live)
	for _, page := range []struct{ link, shows string }{
		{`.rail a[href*="/types?"]`, `document.querySelectorAll("#types > tr").length > 0`},
		{`#types a[href*="/types/reports.nightly?"]`, `document.querySelector("#type-facts a")?.textContent === "100\u202f%"`},
		{`.rail a[href*="/failures?"]`, `document.querySelector("#failures .c-count a")?.textContent === "2"`},
		{`#failures a.open`, `/^2 of 3 /.test(document.querySelector("#trend-title")?.textContent)`},
	} {
		tb.click(page.link)
		tb.until(page.shows)
		tb.until(live)
		tb.want(`location.search`, "?"+span)
		tb.want(reset+`?.innerText.replace(/\s+/g, " ").includes("21 Nov 12:45 – 12:55 UTC")`, true)
	}
	tb.eval(reset + `.click()`)
	tb.until(`location.search === "" && ` + reset + ` === null`)
	for _, path := range []string{"/types", "/types/reports.nightly", "/failures"} {
		tb = newTab(t, b, s, path+"?"+span)
		tb.until(live)
		tb.eval(reset + `.click()`)
		tb.until(fmt.Sprintf(`location.pathname === %q && location.search === "" && %s === null`, "/ops"+path, reset))
	}
}

// TestBrowserShowsAQueueInASpan has the chart of a queue's tasks, which is never blank without a word.
func TestBrowserShowsAQueueInASpan(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s, c, work := newIdleWorkers(t)
	work()
	eventually(t, "the line is open", func() bool { return c.commands.Client.Connected() })
	tb := newTab(t, b, s, "/?"+span)
	tb.until(live)
	tb.click(`.rail a[href*="/queues?"]`)
	tb.until(`document.getElementById("q-mail") !== null`)
	tb.want(reset+` !== null`, true)
	tb.want(`document.querySelector("#q-mail [data-label=Finished]").textContent.trim() !== ""`, true)
	tb.click("#q-mail a")
	tb.until(`location.pathname === "/ops/queues/mail" && location.search === "?` + span + `"`)
	tb.until(live)
	tb.until(inked + " > 100")
	tb.until(plotted + " === " + tabulated)
	tb.want(`document.querySelector("#queue-nothing").hidden`, false)
	tb.eval(reset + `.click()`)
	tb.until(`location.search === "" && ` + reset + ` === null`)
}
