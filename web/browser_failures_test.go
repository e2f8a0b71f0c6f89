package web_test

import (
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

func TestBrowserResolvesFailures(t *testing.T) {
	t.Parallel()
	s := newServer(t, "/ops", nil)
	b := testbrowser.Open(t)
	tb := newTab(t, b, s, "/failures")
	tb.until(live)
	row := `document.querySelector("#failures tr")`
	tb.want(row+".querySelector('.c-count').textContent.trim()", "10")
	s.backend.now(state.TaskReceived, "another")
	s.backend.now(state.TaskFailed, "another")
	tb.until(row + ".querySelector('.c-count').textContent.trim() === '11'")

	other := newTab(t, b, s, "/failures") // which no event reaches any more
	other.until(live)
	tb.click("#failures .c-act button")
	tb.until(`document.querySelector(".notice")?.textContent.includes("Resolved.") && ` + live)
	tb.until(`document.querySelectorAll("#failures tr").length === 0`)
	tb.want(`document.querySelector("#failures-shown [aria-current]").textContent.trim()`, "Open 0")
	other.until(`document.querySelectorAll("#failures tr").length === 0`)

	tb.click(".notice button")
	tb.until(`document.querySelectorAll("#failures tr").length === 1 && ` + live)
	tb.want(`document.querySelector(".notice")`, nil)

	tb.click("#failures .open")
	tb.until(`document.querySelector("h1")?.textContent === "ValueError" && ` + live)
	tb.want(`document.querySelectorAll("#tasks tr").length`, 10.0)
}
