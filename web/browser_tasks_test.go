package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// What people come to the Tasks page for.
func TestTasksPageInTheBrowser(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"first screen":                  firstScreen,
		"rows that rush wait":           rowsThatRushWait,
		"why did this task fail":        whyDidThisTaskFail,
		"tasks that never ended":        tasksThatNeverEnded,
		"updates come at a chosen rate": updatesComeAtAChosenRate,
		"share what I see":              shareWhatISee,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// above counts the rows that are seen whole without scrolling: the navigation covers the end of narrow pages.
const above = `(() => {
	const rail = document.querySelector(".rail").getBoundingClientRect();
	const fold = rail.top > 0 ? rail.top : innerHeight;
	return [...document.querySelectorAll("#tasks tr")].filter((row) => row.getBoundingClientRect().bottom <= fold).length;
})()`

func firstScreen(t *testing.T, b context.Context) {
	for _, size := range []struct {
		width, height int64
		rows          float64
	}{{1400, 900, 16}, {390, 844, 4}} {
		t.Run(fmt.Sprint(size.width), func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", nil)
			for i := range 40 {
				s.backend.now(state.TaskStarted, fmt.Sprint("more-", i))
			}
			tb := newTab(t, b, s, "/views")
			if err := chromedp.Do(tb.ctx, chromedp.EmulateViewport(size.width, size.height)); err != nil {
				t.Fatalf("set size: %v", err)
			}
			tb.eval(`void location.assign("/tasks")`)
			tb.until(`location.pathname === "/tasks" && ` + live)
			tb.until(inked + ` > 0`) // the chart is drawn
			if got := tb.eval(above).(float64); got < size.rows {
				t.Errorf("%v rows above the fold at %d×%d, want %v", got, size.width, size.height, size.rows)
			}
			tb.want(`document.documentElement.scrollWidth <= innerWidth`, true)
		})
	}
}

func rowsThatRushWait(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.eval(`void new MutationObserver(() => {
		const button = document.querySelector("[data-news] button");
		if (button) window.told ??= button.innerText + ", then " + ` + rows + `;
	}).observe(document.querySelector("[data-news]"), { childList: true, subtree: true, characterData: true })`)
	var events []*state.Event
	for i := range 15 {
		events = append(events, taskEvent(state.TaskReceived, fmt.Sprint("new-", i), 1100+i))
	}
	s.backend.Apply(events...)
	tb.until(`window.told !== undefined`)
	tb.want(`window.told`, "15 new, then t-task-29 t-task-28 t-task-27")
	tb.until(rows + ` === "t-new-14 t-new-13 t-new-12"`) // once no more come
	tb.until(`document.querySelector("[data-news] button") === null`)
}

// One key, the number, Enter: the row shows where the number is in its arguments, and the exception.
func whyDidThisTaskFail(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	e := taskEvent(state.TaskReceived, "wanted", 1000)
	e.Args = "({'padding': '" + strings.Repeat("x", 300) + "', 'customer': 41834},)"
	s.backend.Apply(e, taskEvent(state.TaskStarted, "wanted", 1001), taskEvent(state.TaskFailed, "wanted", 1002))
	tb := newTab(t, b, s, "/")
	tb.until(live)
	tb.press("/")
	tb.eval(`document.activeElement.value = ""`) // of the slash that a simulated key leaves
	tb.press("41834\r")
	tb.until(`location.pathname === "/tasks" && document.querySelector("#tasks mark")?.textContent === "41834"`)
	tb.want(rows, "t-wanted")
	tb.want(`(() => {
		const [mark, cell] = ["mark", ".c-args"].map((s) => document.querySelector("#t-wanted " + s).getBoundingClientRect());
		return mark.left >= cell.left && mark.right <= cell.right;
	})()`, true)
	tb.want(`document.querySelector("#t-wanted .c-args .error").textContent`, "ValueError('<b>')")
	tb.want(`document.querySelector("#t-wanted .c-args .error").getBoundingClientRect().width > 60`, true)
}

// One click: the view of the tasks that are not expected to end.
func tasksThatNeverEnded(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	s.backend.now(state.TaskStarted, "never")
	s.backend.Apply(&state.Event{ // the worker starts again
		Kind: state.WorkerOnline, Hostname: "celery@a", PID: 99, Clock: 2000, Micros: noon + 1_100_000_000, ReceivedMicros: noon + 1_000_000, Freq: 2,
		Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp,
	})
	s.backend.happen(state.TaskReceived, "never", 1000) // late: saves that the task is lost
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.click(`#views a[href$="q=is%3Alost"]`)
	tb.until(`location.search === "?q=is%3Alost" && document.querySelector("#views [aria-current]")?.textContent.trim().startsWith("Lost")`)
	tb.want(`document.querySelector("#t-never") !== null`, true)
	tb.want(`[...document.querySelectorAll("#tasks tr")].every((row) => row.querySelector(".mark-anchor"))`, true)
	// The tile of the overview leads to the same.
	over := newTab(t, b, s, "/")
	over.click(`#tiles a[href$="is%3Alost"]`)
	over.until(`location.search === "?q=is%3Alost" && document.querySelector("#t-never") !== null`)
}

func updatesComeAtAChosenRate(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.want(`document.querySelector("#rate").value`, "1000")
	tb.eval(`(() => {
		const rate = document.querySelector("#rate");
		rate.value = "250";
		rate.dispatchEvent(new Event("change"));
	})()`)
	s.backend.now(state.TaskReceived, "new")
	tb.until(rows + `.startsWith("t-new ")`)
	other := newTab(t, b, s, "/workers")
	other.want(`document.querySelector("#rate").value`, "250") // kept
	other.eval(`localStorage.removeItem("umbel.rate")`)
}

// One key: the link has the query and the span of the chart as moments, and shows the same later.
func shareWhatISee(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	s.options = func(o *web.Options) { withPast(t, o) }
	s.stop()
	s.start()
	tb := newTab(t, b, s, "/tasks?q=state%3Afailure+finished%3A-2h..")
	tb.until(live)
	shown := tb.eval(rows)
	tb.eval(`void (navigator.clipboard.writeText = async (text) => { window.copied = text })`)
	tb.press("Y")
	tb.until(`window.copied !== undefined`)
	const of = `new URL(window.copied).searchParams.get`
	tb.want(`/^finished:2026-11-2\dT[^ ]+\.\.2026-11-2\dT[^ ]+ state:failure$/.test(`+of+`("q"))`, true)
	tb.want(of+`("at") !== null && `+of+`("pin") === null`, true)
	tb.eval(`void location.assign(window.copied)`)
	tb.until(`document.querySelector("#past") !== null && document.readyState === "complete"`)
	tb.want(rows, shown)
}
