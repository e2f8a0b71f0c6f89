package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

// visitor is somebody with a job, who clicks.
type visitor struct {
	*tab
	t      testing.TB
	d      *dashboard
	clicks int
}

// TestJobsOnTheDemo does what people come for on the demo, each in few clicks.
func TestJobsOnTheDemo(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo")
	browser := testbrowser.Open(t)
	eventually(t, timeout, func() error {
		if _, text := d.fetch(t, "failures"); !regexp.MustCompile(`vat_rate`).Match(text) {
			return fmt.Errorf("the demo has no failure of the deploy: %s", text)
		}
		return nil
	})
	for _, job := range []struct {
		name, from string
		clicks     int
		do         func(v *visitor)
	}{
		{"why did this customer's task fail", "", 0, customersTask},
		{"slowest task type", "", 1, slowestType},
		{"what does a stuck worker do", "workers", 1, stuckWorker},
		{"drain a worker", "workers/mail@jobs-2", 4, drainWorker}, // whose process nothing ends
		{"retry all failed of one type", "", 4, retryGroup},
		{"tasks that never ended", "", 1, lostTasks},
		{"which deploy broke it", "", 1, brokenBy},
		{"follow a workflow", "", 2, followWorkflow},
		{"share what I see", "tasks?q=name:orders.import", 0, shareList},
		{"compare a failed and a good run", "failures", 3, compareRuns},
	} {
		t.Run(job.name, func(t *testing.T) {
			t.Parallel()
			v := &visitor{tab: loadTab(t, browser, d.url+job.from), t: t, d: d}
			job.do(v)
			if v.clicks > job.clicks {
				t.Errorf("it takes %d clicks, want at most %d", v.clicks, job.clicks)
			}
		})
	}
}

// finds waits until something is so in the page.
func (v *visitor) finds(condition string) {
	v.t.Helper()
	v.until(v.t, condition)
}

// click clicks on an element that can be seen. The page may go away by that.
func (v *visitor) click(element string) {
	v.t.Helper()
	v.clicks++
	v.finds(fmt.Sprintf(`((e) => e?.checkVisibility() && (setTimeout(() => e.click()), true))(%s)`, element))
}

func (v *visitor) press(keys string) {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := chromedp.Do(v.ctx, chromedp.KeyEvent(keys)); err != nil {
		v.t.Fatalf("press %q: %v", keys, err)
	}
}

func one(selector string) string { return fmt.Sprintf(`document.querySelector(%q)`, selector) }

// tasksWhere are tasks that the API finds.
func (v *visitor) tasksWhere(query string) []task {
	v.t.Helper()
	var found struct{ Items []task }
	eventually(v.t, timeout, func() error {
		_, text := v.d.fetch(v.t, "api/v1/tasks?limit=50&q="+url.QueryEscape(query))
		if err := json.Unmarshal(text, &found); err != nil {
			return err
		}
		if len(found.Items) == 0 {
			return fmt.Errorf("no task is %s", query)
		}
		return nil
	})
	return found.Items
}

// The number of a customer and Enter show the arguments where the number is, beside the exception.
func customersTask(v *visitor) {
	var number string
	for _, found := range v.tasksWhere(`state:failure name:billing.charge_card "customer_id"`) {
		if m := regexp.MustCompile(`'customer_id': (\d+)`).FindStringSubmatch(found.Kwargs); m != nil {
			number = m[1]
		}
	}
	v.press("/")
	v.finds(`((field) => field?.name === "q" && (field.value = "", true))(document.activeElement)`) // of the slash that a simulated key leaves
	v.press(number + "\r")
	// The same customer may have paid in other tasks.
	row := fmt.Sprintf(`[...document.querySelectorAll("#tasks tr")].find((row) => /charge_card[^]*(CardDeclined|ConnectionError)/.test(row.innerText) &&
		[...row.querySelectorAll("mark")].some((mark) => mark.textContent.includes(%q)))`, number)
	v.finds(row + ` !== undefined`)
	v.finds(`((mark) => mark.left >= 0 && mark.right <= innerWidth)(` + row + `.querySelector("mark").getBoundingClientRect())`)
}

func slowestType(v *visitor) {
	v.click(one(`.rail a[href$="/types"]`))
	v.finds(one("#types .c-name a") + `?.title === "billing.settle" && ` + live)
	v.finds(one("#types tr [data-label=Slowest]") + `.innerText.trim() !== ""`)
	first := v.clicks
	v.click(one("#types .c-name a"))
	v.finds(one("#type-facts") + `?.innerText.includes("Processes needed") && document.querySelector("#type-workers th[scope=row]") !== null`)
	v.clicks = first
}

// The list says which worker runs a task for unusually long; the worker, since when, by whose word, and what else it holds.
func stuckWorker(v *visitor) {
	v.finds(`document.getElementById("mail%40jobs-2")?.innerText.match(/mail.send_receipt\s+running [^]*usually under/) != null`)
	v.click(`document.getElementById("mail%40jobs-2").querySelector("a.open")`)
	const row = `[...document.querySelectorAll("[aria-labelledby=active-title] tbody tr")].find((row) => row.querySelector(".warn time"))`
	v.finds(row + `?.innerText.includes("send_receipt")`)
	v.finds(row + `.querySelector("[data-label=Source]").innerText.match(/worker.*events/) !== null`)
}

// A drain is previewed and undone.
func drainWorker(v *visitor) {
	v.click(one("#worker-head summary"))
	v.click(one(`#worker-head a[href*="method=drain"]`))
	v.finds(one("h1") + `.innerText.startsWith("Drain")`)
	v.click(one(".act button:not(.danger)"))
	v.finds(one(".preview") + ` !== null`)
	v.click(one(".act button.danger"))
	v.finds(`location.pathname.startsWith("/outbox/") && ` + live)
	drain := v.clicks
	if err := chromedp.Do(v.ctx, chromedp.Navigate(v.url)); err != nil {
		v.t.Fatalf("open %s: %v", v.url, err)
	}
	v.finds(one("#worker-head .notice") + `?.innerText.includes("Drain")`)
	v.click(one(`#worker-head a[href*="method=undrain"]`))
	v.finds(one(".preview") + ` !== null`)
	v.click(one(".act button.primary, .act button.danger"))
	v.finds(`location.pathname.startsWith("/outbox/") && document.querySelector("main").innerText.includes("Undo drain")`)
	v.clicks = drain
}

// All failures of one cause are retried, though one of their arguments is a Decimal.
func retryGroup(v *visitor) {
	v.click(one(`.rail a[href$="/failures"]`))
	v.click(`[...document.querySelectorAll("#failures tr")].find((row) => row.innerText.includes("CardDeclined"))?.querySelector(".c-act a")`)
	v.finds(one(".preflight") + `?.innerText.includes("An argument is a Decimal")`)
	v.click(one("#send-objects"))
	v.click(`((button) => button?.innerText.match(/^Retry \d+ tasks?$/) ? button : null)(document.querySelector(".act button.primary"))`)
	v.finds(`location.pathname.startsWith("/outbox/")`)
	v.finds(one(".progress") + `?.innerText.match(/^(\d+) of \1 finished/) != null`)
}

// The tile leads to what it counts, each with the reason why it will not end.
func lostTasks(v *visitor) {
	v.finds(`Number(document.querySelector('a.tile[href$="q=is%3Alost"] .figure')?.textContent) > 0`)
	v.click(one(`a.tile[href$="q=is%3Alost"]`))
	v.finds(one("#tasks tr") + ` !== null && ` + live)
	v.finds(`[...document.querySelectorAll("#tasks tr")].every((row) => row.textContent.includes("Orphaned: "))`)
}

// The deploy is on the chart, and beside what failed for the first time after it.
func brokenBy(v *visitor) {
	v.finds(one("#chart-marks") + `?.innerText.includes("v2.3.1")`)
	v.click(one(`.rail a[href$="/failures"]`))
	v.finds(`/first seen\s.* after shop v2\.3\.1/.test([...document.querySelectorAll("#failures tr")].find((row) => row.innerText.includes("vat_rate"))?.innerText)`)
}

func followWorkflow(v *visitor) {
	v.click(one(`.rail a[href$="/workflows"]`))
	v.click(one(`main tbody a[href*="/workflows/"]`))
	v.finds(`document.querySelectorAll("#waterfall tr").length > 1 && document.querySelector("#waterfall .c-lane svg") !== null`)
}

// The link shows the same list later, with the query and the instant in it.
func shareList(v *visitor) {
	v.finds(live + ` && (navigator.clipboard.writeText = async (text) => { window.copied = text }, true)`)
	newest := evaluate[string](v.t, v.tab, `document.querySelector("#tasks tr").id`)
	v.press("Y")
	v.finds(`((p) => p.get("q") === "name:orders.import" && p.get("at") > "2")(new URL(window.copied).searchParams)`)
	v.finds(fmt.Sprintf(`document.querySelector("#tasks tr").id !== %q`, newest)) // the list has gone on
	link := evaluate[string](v.t, v.tab, "window.copied")
	if err := chromedp.Do(v.ctx, chromedp.Navigate(link)); err != nil {
		v.t.Fatalf("open %s: %v", link, err)
	}
	v.finds(one("#past") + fmt.Sprintf(` !== null && document.getElementById(%q) !== null`, newest))
}

// The run that failed is beside one that did not, with what differs.
func compareRuns(v *visitor) {
	v.click(`[...document.querySelectorAll("#failures tr")].find((row) => row.innerText.includes("vat_rate"))?.querySelector("a.open")`)
	v.click(one("#tasks tr a.open"))
	v.click(one(`#task-head a[href$="/compare"]`))
	v.finds(`location.search.startsWith("?with=") && document.querySelector("#compare-args mark") !== null`)
	v.finds(`document.querySelector("#compare-args mark").getBoundingClientRect().bottom < innerHeight`)
}

// loadTab opens a page.
func loadTab(tb testing.TB, browser context.Context, url string) *tab {
	tb.Helper()
	ctx, shut := chromedp.NewContext(browser)
	t := &tab{url: url, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("open tab: %v", err)
	}
	tb.Cleanup(listenTo(tb, t, shut))
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		tb.Fatalf("open %s: %v", url, err)
	}
	t.until(tb, live)
	return t
}
