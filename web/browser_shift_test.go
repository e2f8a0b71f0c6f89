package web_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// moved are the elements outside the rows that layout has moved up or down since the test has watched.
const moved = `(() => {
	const shifts = window.shifts.filter((e) => !e.hadRecentInput).flatMap((e) => e.sources).filter((s) => s.previousRect.top !== s.currentRect.top);
	const nodes = shifts.map((s) => s.node?.nodeType === 1 ? s.node : s.node?.parentElement);
	const rect = (r) => [r.top, r.bottom].map(Math.round).join("–");
	const told = shifts.map((s, i) => (nodes[i]?.id || nodes[i]?.className) + " " + rect(s.previousRect) + " to " + rect(s.currentRect));
	return told.filter((_, i) => nodes[i] && !nodes[i].closest("#tasks, .news")).join(", ");
})()`

// TestBrowserShiftsNothing has events arrive while a page is open: nothing moves up or down but rows.
func TestBrowserShiftsNothing(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	for _, path := range []string{"/", "/tasks", "/tasks/task-29", "/workers/celery@a"} {
		for _, size := range [][2]int64{{1400, 900}, {390, 844}} {
			t.Run(fmt.Sprint(path, " ", size[0]), func(t *testing.T) {
				t.Parallel()
				shiftsNothing(t, b, path, size[0], size[1])
			})
		}
	}
}

func shiftsNothing(t *testing.T, b context.Context, path string, width, height int64) {
	s := newServer(t, "", nil)
	for i := range 40 {
		s.backend.now(state.TaskStarted, fmt.Sprint("more-", i))
	}
	tb := newTab(t, b, s, path)
	if err := chromedp.Do(tb.ctx, chromedp.EmulateViewport(width, height)); err != nil {
		t.Fatalf("set size: %v", err)
	}
	tb.until(live)
	if path == "/tasks" {
		tb.until(inked + ` > 0`) // the chart is drawn
	}
	tb.eval(`void (() => {
		window.shifts = [];
		new PerformanceObserver((list) => window.shifts.push(...list.getEntries())).observe({ type: "layout-shift" });
		new MutationObserver(() => window.changed = true).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
	})()`)
	for i := range 4 {
		tb.eval(`void (window.changed = false)`)
		id := fmt.Sprint("new-", i)
		for _, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, []state.Kind{state.TaskFailed, state.TaskSucceeded}[i%2]} {
			s.backend.now(kind, id)
		}
		s.backend.now(state.TaskStarted, "task-29")
		tb.until(`window.changed`)
	}
	tb.want(moved, "")
}
