package web_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

func TestBrowserResolvesFailures(t *testing.T) {
	t.Parallel()
	var later atomic.Int64 // ns
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.options = func(o *web.Options) {
		o.Now = func() time.Time { return time.UnixMicro(noon).Add(time.Hour + time.Duration(later.Load())).UTC() }
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	b := testbrowser.Open(t)
	tb := newTab(t, b, s, "/failures")
	tb.until(live)
	row := `document.querySelector("#failures tr")`
	tb.want(row+".querySelector('.c-count').textContent.trim()", "10")
	s.backend.now(state.TaskReceived, "another")
	s.backend.now(state.TaskFailed, "another")
	later.Add(int64(time.Minute)) // groups are cached for seconds
	s.backend.Update(func(*state.Cluster) {})
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
