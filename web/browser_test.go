package web_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// What a person sees in a real browser.
func TestBrowser(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	tests := map[string]func(*testing.T, context.Context){
		"rows change without a load":        rowsChange,
		"every page keeps the policy":       pagesKeepThePolicy,
		"rows wait under the pointer":       rowsWaitUnderThePointer,
		"rows wait for the focus":           rowsWaitForTheFocus,
		"rows wait below the fold":          rowsWaitBelowTheFold,
		"connection comes back":             connectionComesBack,
		"polling replaces a refused socket": pollingReplacesSockets,
		"facets swap the page":              facetsSwapThePage,
		"combobox completes":                comboboxCompletes,
		"wrong word is marked":              wrongWordIsMarked,
		"columns and order":                 columnsAndOrder,
		"views are saved":                   viewsAreSaved,
		"export is a link":                  exportIsALink,
		"pause and resume":                  pauseAndResume,
		"hidden tab rests":                  hiddenTabRests,
		"keys":                              keysWork,
		"times past":                        timesPast,
		"removed task":                      removedTask,
		"pages converge":                    pagesConverge,
		"ages tick":                         agesTick,
		"ages trust no late message":        agesTrustNoLateMessage,
		"rows are selected":                 rowsAreSelected,
		"rows are previewed":                rowsArePreviewed,
		"selected tasks are revoked":        selectedTasksAreRevoked,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

func pagesKeepThePolicy(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	for _, path := range []string{"/", "/tasks", "/tasks/task-01", "/workers", "/workers/celery@a", "/tasks/nope", "/tasks?limit=0"} {
		t.Run(path, func(t *testing.T) {
			tb := newTab(t, b, s, path)
			if tb.eval(`document.querySelector("main").dataset.topic ?? ""`) != "" {
				tb.until(live)
			}
			// Everything that the page names has arrived: style, script, icons.
			tb.until(`performance.getEntriesByType("resource").filter((e) => e.name.includes("/assets/")).length >= 3`)
			tb.want(`performance.getEntriesByType("resource").filter((e) => e.responseStatus !== 200 && e.name.includes("/assets/")).map((e) => e.name).join()`, "")
			tb.want(`getComputedStyle(document.body).display`, "grid")
		})
	}
}

func connectionComesBack(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.eval(`window.unloaded = false`)
	tb.pastMidnight()
	s.stop()
	tb.until(`document.querySelector("#connection").dataset.state === "connecting"`)
	s.backend.now(state.TaskReceived, "missed")
	tb.until(`document.querySelector("#connection").dataset.state === "reconnecting"`)
	tb.until(`/^Reconnecting, last update 0[01]:\d\d:\d\d$/.test(document.querySelector("#connection").textContent)`)
	tb.want(`document.querySelector("#broker").checkVisibility()`, false)
	s.start()
	tb.until(live)
	tb.until(rows + ` === "t-missed t-task-29 t-task-28"`)
	tb.want(`document.querySelector("#broker").checkVisibility()`, true)
	s.backend.now(state.TaskStarted, "missed")
	tb.until(`document.getElementById("t-missed").innerText.includes("Started")`)
	tb.want(`window.unloaded`, false)
}

func pollingReplacesSockets(t *testing.T, b context.Context) {
	s := newServer(t, "", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/ws") {
				http.Error(w, "no upgrades here", http.StatusBadGateway)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	tb := newTab(t, b, s, "/tasks")
	tb.until(`document.querySelector("#connection").textContent === "Live, each 5 s"`)
	tb.eval(`window.unloaded = false`)
	tb.point("#t-task-28")
	s.backend.now(state.TaskReceived, "polled")
	tb.until(`document.querySelector("[data-news] button")?.innerText === "1 new"`)
	tb.want(rows, "t-task-29 t-task-28 t-task-27")
	tb.point("h1")
	tb.until(rows + ` === "t-polled t-task-29 t-task-28"`)
	tb.want(`window.unloaded`, false)
}

func facetsSwapThePage(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.eval(`window.unloaded = false`)
	tb.click(`.chip[href$="state%3Afailure"]`)
	tb.until(rows + ` === "t-task-28 t-task-25 t-task-22"`)
	if got, want := queryOf(tb.eval("location.href")), "q=state%3Afailure"; got != want {
		t.Errorf("query = %q, want %q", got, want)
	}
	tb.want(`document.querySelector("#query").value`, "state:failure")
	tb.want(`document.querySelector("main").dataset.topic`, "/tasks?q=state%3Afailure")
	tb.until(live)
	s.backend.now(state.TaskReceived, "good")
	s.backend.now(state.TaskReceived, "bad")
	s.backend.now(state.TaskFailed, "bad")
	tb.point("h1")
	tb.until(rows + ` === "t-bad t-task-28 t-task-25"`)

	tb.click("#query")
	tb.press(" id:task-25\r")
	tb.until(rows + ` === "t-task-25"`)
	tb.want(`document.activeElement.id`, "query")
	tb.want(`document.activeElement.value`, "state:failure id:task-25")

	tb.eval(`history.back()`)
	tb.until(rows + ` === "t-bad t-task-28 t-task-25"`)
	tb.want(`document.querySelector("#query").value`, "state:failure")
	tb.eval(`history.back()`)
	tb.until(rows + ` === "t-bad t-good t-task-29"`)
	tb.want(`document.querySelector(".chip[aria-current]")`, nil)
	tb.want(`location.search`, "")
	tb.want(`window.unloaded`, false)
}

func pauseAndResume(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.click("#pause")
	tb.until(`document.querySelector("#connection").dataset.state === "paused"`)
	tb.want(`document.querySelector("#pause").getAttribute("aria-pressed")`, "true")
	tb.point("h1")
	s.backend.now(state.TaskReceived, "one")
	<-time.After(time.Second)
	tb.want(rows, "t-task-29 t-task-28 t-task-27")
	tb.press("p")
	tb.until(rows + ` === "t-one t-task-29 t-task-28"`)
	tb.want(`document.querySelector("#connection").dataset.state`, "live")
}

func hiddenTabRests(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	hide := func(hidden string) {
		tb.eval(`(() => {
			Object.defineProperty(document, "hidden", { value: ` + hidden + `, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"));
		})()`)
	}
	hide("true")
	<-time.After(6 * time.Second)
	s.backend.now(state.TaskReceived, "one")
	<-time.After(time.Second)
	tb.want(rows, "t-task-29 t-task-28 t-task-27")
	hide("false")
	tb.until(rows + ` === "t-one t-task-29 t-task-28"`)
}

func keysWork(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	tb := newTab(t, b, s, "/")
	tb.until(live)
	tb.press("/")
	tb.want(`document.activeElement.name`, "q")
	tb.eval(`document.activeElement.value = ""`) // of the slash that a simulated key leaves
	tb.press("gt?p")                             // ordinary letters in a field
	tb.want(`document.activeElement.value`, "gt?p")
	tb.want(`document.querySelector("#connection").dataset.state`, "live")
	tb.eval(`document.activeElement.blur()`)
	tb.press("?")
	tb.until(`document.querySelector("dialog[open] h2")?.textContent === "Keyboard"`)
	tb.click("dialog[open] input[type=checkbox]")
	tb.click("dialog[open] button")
	tb.until(`document.querySelector("dialog[open]") === null`)
	tb.press("p")
	tb.want(`document.querySelector("#connection").dataset.state`, "live")
	tb.click("button[title^=Keyboard]")
	tb.click("dialog[open] input[type=checkbox]")
	tb.click("dialog[open] button")
	for key, path := range map[string]string{"w": "/ops/workers", "t": "/ops/tasks", "o": "/ops/"} {
		tb.press("g")
		tb.press(key)
		tb.until(`location.pathname === "` + path + `" && ` + live)
	}
}

func agesTick(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	const age = `document.querySelector("h1 time")`
	tb.until(live)
	tb.eval(`void (() => {
		const time = document.createElement("time");
		time.dateTime = new Date(Date.now() - 65000).toISOString();
		time.dataset.age = "";
		document.querySelector("h1").append(time);
	})()`)
	tb.until(`/^1\u202fm ([5-9]|1\d|2\d)\u202fs$/.test(` + age + `.textContent)`)
	tb.eval(`void (window.age = ` + age + `.textContent)`)
	tb.until(age + `.textContent !== window.age`)
}

// agesTrustNoLateMessage hands the page a message that was under way for 11 s.
func agesTrustNoLateMessage(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.eval(`void (window.WebSocket = class extends WebSocket {
		constructor(url) { super(url); window.socket = this; }
	})`)
	s.stop()
	s.start()
	tb.until(live + ` && window.socket?.readyState === 1`)
	tb.eval(`void (() => {
		const time = document.createElement("time");
		time.dataset.age = "";
		document.querySelector("h1").append(time);
		window.ages = [];
		new MutationObserver(() => window.ages.push(time.textContent)).observe(time, { childList: true });
		time.dateTime = new Date(Date.now() - 2000).toISOString();
		window.socket.onmessage({ data: JSON.stringify({ v: 2, now: Date.now() - 11000 }) });
	})()`)
	tb.until(`window.ages.length > 1`)
	tb.want(`window.ages.every((age) => /^\d+\u202fs$/.test(age))`, true)
}

// pruned is a changingBackend whose tasks have been removed once removed is set.
type pruned struct {
	*changingBackend
	removed atomic.Bool
}

func (p *pruned) Task(ctx context.Context, id string) (state.Task, error) {
	if p.removed.Load() {
		return state.Task{}, history.ErrNotFound
	}
	return p.changingBackend.Task(ctx, id)
}

func removedTask(t *testing.T, b context.Context) {
	p := &pruned{changingBackend: newChangingBackend(t, state.Options{})}
	s := &server{t: t, backend: p.changingBackend, address: "127.0.0.1:0", options: func(o *web.Options) { o.Backend = p }}
	s.start()
	t.Cleanup(func() { s.stop() })
	tb := newTab(t, b, s, "/tasks/task-00")
	tb.until(live)
	p.removed.Store(true)
	s.backend.now(state.TaskReceived, "another")
	tb.until(`document.querySelector("h1").innerText === "Unknown task"`)
	tb.until(`document.querySelector("#connection").textContent === "Not live"`)
}

// After many changes and several lost servers, a page holds what a fresh one would, to the letter.
func pagesConverge(t *testing.T, b context.Context) {
	for _, path := range []string{"/", "/tasks", "/tasks?state=FAILURE", "/tasks?q=-state:failure&sort=-started&cols=id,state,started", "/tasks/task-03", "/workers/celery@a"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", nil)
			tb := newTab(t, b, s, path)
			tb.until(live)
			r := rand.New(rand.NewPCG(1, 2))
			kinds := []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskRetried, state.TaskFailed, state.TaskSucceeded}
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := range 300 {
				<-tick.C
				s.backend.now(kinds[r.IntN(len(kinds))], fmt.Sprintf("task-%02d", r.IntN(50)))
				if i%100 == 99 {
					s.stop()
					s.start()
				}
			}
			tb.until(live)
			tb.converges()
		})
	}
}

// converges waits until the page holds what a fresh one holds.
func (tb *tab) converges() {
	tb.t.Helper()
	tb.eval(`void (async () => {
		const content = (page) => {
			const main = page.querySelector("main").cloneNode(true);
			main.removeAttribute("data-page");
			for (const time of main.querySelectorAll("time[data-age]")) time.textContent = "";
			for (const slot of main.querySelectorAll("[data-news]")) slot.textContent = "";
			for (const list of main.querySelectorAll("datalist")) list.remove();
			return main.outerHTML.replace(/\s+/g, " ");
		};
		for (window.same = false; !window.same; await new Promise((r) => setTimeout(r, 200))) {
			const fresh = await (await fetch(location.href)).text();
			[window.got, window.want] = [content(document), content(new DOMParser().parseFromString(fresh, "text/html"))];
			window.same = window.got === window.want;
		}
	})()`)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(timeout); tb.eval(`window.same`) != true; <-tick.C {
		if time.Now().After(deadline) {
			tb.t.Fatalf("page differs from a fresh one:\n%s", cmp.Diff(strings.Split(fmt.Sprint(tb.eval(`window.got`)), "<"), strings.Split(fmt.Sprint(tb.eval(`window.want`)), "<")))
		}
	}
}
