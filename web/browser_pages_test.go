package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// What a person sees of pages as a whole in a real browser: their width, what is open, what is printed.
func TestBrowserPages(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	tests := map[string]func(*testing.T, context.Context){
		"columns have room":           columnsHaveRoom,
		"what is closed stays so":     whatIsClosedStaysSo,
		"each copy is announced":      eachCopyIsAnnounced,
		"dark pages print":            darkPagesPrint,
		"a form says what is shown":   formSaysWhatIsShown,
		"names and numbers are apart": namesAndNumbersAreApart,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

func (tb *tab) width(px int64) {
	tb.t.Helper()
	if err := chromedp.Do(tb.ctx, chromedp.EmulateViewport(px, 900)); err != nil {
		tb.t.Fatalf("set width: %v", err)
	}
}

func (tb *tab) media(o emulation.SetEmulatedMediaParams) {
	tb.t.Helper()
	if _, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, o); err != nil {
		tb.t.Fatalf("emulate media: %v", err)
	}
}

// pastMidnight moves the tab to where a day has just begun.
func (tb *tab) pastMidnight() {
	tb.t.Helper()
	hour := time.Now().UTC().Hour()
	zone := fmt.Sprintf("Etc/GMT+%d", hour) // west of Greenwich
	if hour > 12 {
		zone = fmt.Sprintf("Etc/GMT-%d", 24-hour)
	}
	if _, err := chromedp.Call(tb.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone}); err != nil {
		tb.t.Fatalf("set time zone: %v", err)
	}
}

// fits is how many pixels the page is wider than the window.
const fits = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

// cardsFit is by how much lists of cards must be scrolled sideways, which have no rows that are wider.
const cardsFit = `Math.max(0, ...[...document.querySelectorAll(".sideways")].filter((e) =>
	e.matches(":has(table)") && getComputedStyle(e.querySelector("table")).display === "block").map((e) => e.scrollWidth - e.clientWidth))`

func columnsHaveRoom(t *testing.T, b context.Context) {
	s, _ := newWorkersServer(t)
	tb := newTab(t, b, s, "/tasks?chart=off")
	for px := int64(720); px <= 1600; px += 40 {
		tb.width(px)
		narrow := tb.eval(`[...document.querySelectorAll("thead th")].filter((th) => th.offsetWidth > 0 && th.offsetWidth < 30 ||
			th.matches(".c-args") && th.offsetWidth > 0 && th.offsetWidth < 100).map((th) => th.innerText + " " + th.offsetWidth).join()`)
		if narrow != "" {
			t.Errorf("at %d px these columns are too narrow: %v", px, narrow)
		}
	}
}

func whatIsClosedStaysSo(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks/task-28")
	tb.until(live)
	tb.want(`document.querySelector("#task-facts").innerText.match(/Ran\s+(.+)/)[1]`, "1.0\u202fs") // though it has failed
	tb.want(`document.querySelector("#task-runs details").open`, true)
	tb.click("#task-runs summary")
	tb.want(`document.querySelector("#task-runs details").open`, false)
	tb.eval(`void (window.lane = document.querySelector("#task-runs svg.lane").innerHTML)`)
	s.backend.now(state.TaskSent, "task-28")
	tb.until(`document.querySelector("#task-runs svg.lane").innerHTML !== window.lane`)
	tb.want(`document.querySelector("#task-runs details").open`, false)
}

func eachCopyIsAnnounced(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks/task-28")
	tb.eval(`void (() => {
		const voice = document.querySelector("body > [role=status]");
		window.heard = [];
		new MutationObserver((list) => { for (const m of list) for (const n of m.addedNodes) heard.push(n.textContent); }).observe(voice, { childList: true });
	})()`)
	for i := range 3 {
		tb.eval(`document.querySelector(".whole-id .copy").click()`)
		tb.until(fmt.Sprintf(`heard.length === %d`, i+1))
	}
	tb.want(`heard.join()`, "Copied,Copied,Copied")
}

func darkPagesPrint(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	lately(s)
	tb := newTab(t, b, s, "/tasks")
	tb.click(`.theme button[value="dark"]`)
	tb.until(`document.documentElement.dataset.theme === "dark"`)
	tb.until(inked + " > 1000")
	const ink = `getComputedStyle(document.body).color`
	tb.want(ink, "rgb(226, 232, 224)")
	lines := `document.querySelector("umbel-chart").plot.series[1].stroke()`
	tb.eval(`void (window.before = ` + lines + `)`)
	tb.media(emulation.SetEmulatedMediaParams{Media: "print"})
	tb.want(ink, "rgb(26, 33, 28)")
	tb.until(lines + ` !== window.before`)
}

func formSaysWhatIsShown(t *testing.T, b context.Context) {
	s, _, _ := newIdleWorkers(t)
	tb := newTab(t, b, s, "/outbox")
	tb.until(live)
	tb.eval(`void (() => {
		const form = document.querySelector("#outbox-query");
		form.elements.kind.selectedIndex = 1;
		form.elements.worker.value = "celery@a";
		form.requestSubmit();
	})()`)
	tb.until(`new URLSearchParams(location.search).get("worker") === "celery@a"`)
	tb.want(`document.querySelector("#outbox-query").elements.kind.selectedIndex`, 1.0)
	tb.eval(`history.back()`)
	tb.until(`location.search === "" && document.querySelector("#outbox-shown .condition") === null`)
	tb.want(`Object.values(Object.fromEntries(new FormData(document.querySelector("#outbox-query")))).join("")`, "")
}

func namesAndNumbersAreApart(t *testing.T, b context.Context) {
	s, c := newWorkersServer(t)
	stats, ok := c.answers["celery@a"]["stats"].(map[string]any)
	if !ok {
		t.Fatal("no stats")
	}
	stats["total"] = map[string]any{"warehouse.recount_everything_in_stock": 374}
	tb := newTab(t, b, s, "/workers/celery@a?tab=system")
	tb.width(1400)
	tb.until(`document.querySelector("[aria-labelledby=totals-title]") !== null`)
	tb.want(`(() => {
		const [name, number] = ["a", "td"].map((e) => document.querySelector("[aria-labelledby=totals-title] " + e));
		const box = (e) => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect(); };
		return number !== null && box(name).right < box(number).left;
	})()`, true)
}
