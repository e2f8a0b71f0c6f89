package web_test

import (
	"fmt"
	"sync"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/state"
)

// watchShifts begins to watch what layout moves, after all that was there has been drawn. It promises what the page follows, empty
// if nothing.
const watchShifts = `import(document.querySelector("script[type=module]").src).then(async ({ live }) => {
	window.updates = live;
	window.drawn = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))));
	await drawn();
	window.shifts?.watcher.disconnect();
	window.shifts = [];
	shifts.watcher = new PerformanceObserver((list) => shifts.push(...list.getEntries()));
	shifts.watcher.observe({ type: "layout-shift" });
	return document.querySelector("main").dataset.topic ?? "";
})`

// moved has the page show what is new, as it does without a socket, and promises the elements outside of lists that this moved up or down.
const moved = `updates.refresh().then(drawn).then(() => [...shifts, ...shifts.watcher.takeRecords()].flatMap((e) => e.sources)
	.filter((s) => s.previousRect.top !== s.currentRect.top)
	.map((s) => [s.node?.nodeType === 1 ? s.node : s.node?.parentElement, s])
	.filter(([node]) => node?.isConnected && !node.closest("tbody, .news, .pairs"))
	.map(([node, s]) => node.tagName.toLowerCase() + "#" + node.id + "." + node.className + " in #" + node.parentElement.closest("[id]")?.id + " " +
		[s.previousRect, s.currentRect].map((r) => Math.round(r.top) + "–" + Math.round(r.bottom)).join(" to ")).join(", "))`

// keepsStill has events arrive while a page is open: nothing moves up or down but rows. Every other page is wide, the rest narrow;
// make thorough tries each width.
func (tb *tab) keepsStill(p visitedPage, wide bool) {
	tb.t.Helper()
	if p.happen == nil {
		return
	}
	for _, size := range [][2]int64{{1400, 900}, {390, 844}} {
		if wide != (size[0] == 1400) && !testenv.Thorough() {
			continue
		}
		if err := chromedp.Do(tb.ctx, chromedp.EmulateViewport(size[0], size[1])); err != nil {
			tb.t.Fatalf("set size: %v", err)
		}
		if topic := tb.promise(watchShifts); topic == "" {
			return
		}
		p.happen()
		if found := tb.promise(moved); found != "" {
			tb.t.Errorf("%s, %d px wide: events move %s", p.address, size[0], found)
		}
	}
}

// happenings returns what has tasks end, and another begin or end, each time it is called. It may be called by several at once.
func (s *server) happenings() func() {
	var mu sync.Mutex
	n := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		for i, last := range []state.Kind{state.TaskFailed, state.TaskSucceeded} {
			for _, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, last} {
				s.backend.now(kind, fmt.Sprint("new-", (2*n+i)%20)) // the server keeps few
			}
		}
		kind := []state.Kind{state.TaskStarted, state.TaskSucceeded}[n%2]
		e := taskEvent(kind, fmt.Sprint("runs-", n/2), int(s.backend.second.Add(1)))
		e.Hostname, e.PID = longWorker, 7 // which runs nothing else
		s.backend.Apply(e)
		n++
	}
}
