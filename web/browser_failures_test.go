package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/issue"
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

// TestBrowserSplitsAGroup finds in three clicks from the overview which tasks of a group have the argument that all share.
func TestBrowserSplitsAGroup(t *testing.T) {
	t.Parallel()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	for i := range 30 {
		region, kind := "us", state.TaskSucceeded
		if i < 10 {
			region, kind = "eu", state.TaskFailed
		}
		e := taskEvent(state.TaskReceived, fmt.Sprintf("import-%02d", i), 1000+2*i)
		e.Name, e.Args, e.Kwargs = "shop.import", fmt.Sprintf("(%d,)", i), "{'region': '"+region+"', 'note': 'not eu'}"
		s.backend.Apply(e)
		ended := taskEvent(kind, e.ID, 1001+2*i)
		ended.Exception = "TimeoutError('no answer')"
		s.backend.Apply(ended)
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	tb := newTab(t, testbrowser.Open(t), s, "/")
	tb.until(live)
	tb.click(`.rail a[href$="/failures"]`)
	tb.until(`document.querySelectorAll("#failures tr").length === 2 && ` + live)
	tb.click("#failures .open")
	tb.until(`document.querySelector("h1")?.textContent === "TimeoutError" && ` + live)
	tb.want(`document.querySelector("#failure-split .text").innerText`, `All 10 have region = "eu"`)
	tb.want(`document.querySelectorAll("#failure-split .traits")[0].innerText.includes("celery@a")`, true)
	tb.click("#failure-split .traits:has(code) td a")
	tb.until(`location.pathname === "/ops/tasks" && ` + live)
	tb.until(`document.querySelectorAll("#tasks tr").length === 10`)
	tb.want(`[...document.querySelectorAll("#tasks tr")].every((row) => row.innerText.includes("import"))`, true)
}

// TestBrowserNotesAndAssigns assigns a group to whoever is signed in with one click, and finds it with one.
func TestBrowserNotesAndAssigns(t *testing.T) {
	t.Parallel()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.options = func(o *web.Options) { o.Identify = func(*http.Request) string { return "ann" } }
	s.start()
	t.Cleanup(func() { s.stop() })
	b := testbrowser.Open(t)
	group := "/failures/" + failureID()
	tb, other := newTab(t, b, s, group), newTab(t, b, s, group)
	tb.until(live)
	other.until(live)
	tb.want(`document.querySelector("#failure-note").innerText`, "Assigned to nobody")
	tb.click("#assign-to-me button")
	tb.until(`document.querySelector("#assign-to-me") === null && ` + live)
	other.until(`document.querySelector("#failure-note").innerText === "Assigned to ann"`)

	tb.click("details:has([name=note]) summary")
	tb.until(`document.querySelector("[name=note]").checkVisibility()`)
	tb.click("[name=note]")
	tb.press("Gateway team <b>knows</b>")
	tb.click("details:has([name=note]) button")
	tb.until(`document.querySelector("#failure-note blockquote")?.innerText === "Gateway team <b>knows</b>" && ` + live)
	tb.want(`document.querySelector("#failure-note .aside").innerText.startsWith("ann, ")`, true)
	other.until(`document.querySelector("#failure-note blockquote")?.innerText === "Gateway team <b>knows</b>"`)

	tb.eval(`void location.assign("/ops/failures")`)
	tb.until(`document.querySelector("#failures .noted")?.innerText.includes("Gateway team") && ` + live)
	tb.click("#mine")
	tb.until(`location.search === "?assignee=ann" && ` + live)
	tb.want(`document.querySelectorAll("#failures tr").length`, 1.0)
	tb.want(`document.querySelector("#failures-shown .assignee").innerText.trim()`, "Assigned to ann")
}

func TestBrowserOpensAnIssue(t *testing.T) {
	t.Parallel()
	asked := make(chan *http.Request, 1)
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/new" {
			asked <- r
		}
		fmt.Fprint(w, "<title>New issue</title>")
	}))
	t.Cleanup(tracker.Close)
	template, err := issue.Parse(tracker.URL + "/new?title={title}&body={body}&link={url}&n={count}")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.options = func(o *web.Options) { o.Issues = template }
	s.start()
	t.Cleanup(func() { s.stop() })
	tb := newTab(t, testbrowser.Open(t), s, "/failures/"+failureID())
	tb.until(live)
	tb.want(`document.querySelector("#open-issue").rel`, "noreferrer")
	tb.click("#open-issue")
	tb.until(`document.title === "New issue"`)
	r := <-asked
	q := r.URL.Query()
	link := "http://" + s.address + "/ops/failures/" + failureID()
	if q.Get("title") != "ValueError in billing.charge" || q.Get("link") != link || q.Get("n") != "10 tasks" {
		t.Errorf("issue = %q", q)
	}
	for _, want := range []string{"<b>", link, "10 tasks failed between 2026-11-21T12:00:05Z"} {
		if !strings.Contains(q.Get("body"), want) {
			t.Errorf("body = %q, want %q in it", q.Get("body"), want)
		}
	}
	if referrer := r.Header.Get("Referer"); referrer != "" {
		t.Errorf("the tracker learns of %q", referrer)
	}
}
