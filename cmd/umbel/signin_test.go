package main_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

// TestEndToEndSignIn has an admin and a viewer sign in at a dashboard of a real cluster, look at it, and sign out.
func TestEndToEndSignIn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	worker := c.work(t, "solo@test", "celery", "-P", "solo")
	d := start(t, c.env, "serve", "--basic-auth", "ann:s3cret", "--basic-auth", "bob:hunter2", "--admin", "ann")
	worker.await(t, "Events of group {task} enabled by remote.")
	first := c.call(t, "add", 1, 2)
	browser := testbrowser.Open(t)

	ann := newVisitor(t, browser)
	ann.visit(t, d.url+"tasks?q=state%3Asuccess")
	ann.until(t, `location.pathname === "/login" && document.querySelector("#password") !== null`)
	if evaluate[bool](t, ann, `document.body.textContent.includes("solo@test") || document.querySelector("nav a[href='/tasks']") !== null`) {
		t.Error("the page to sign in shows something of the cluster")
	}
	ann.signIn(t, "ann", "hunter2")
	ann.until(t, `location.pathname === "/login" && document.querySelector("[role=alert]") !== null`)
	if name := evaluate[string](t, ann, `document.querySelector("#user").value`); name != "ann" {
		t.Errorf("after a wrong password, the user name is %q, want ann still", name)
	}
	ann.signIn(t, "ann", "s3cret")
	ann.until(t, live+` && location.pathname + location.search === "/tasks?q=state%3Asuccess"`)
	ann.until(t, lists(first))
	opened := evaluate[float64](t, ann, "performance.timeOrigin")
	second := c.call(t, "add", 3, 4)
	ann.until(t, live+" && "+lists(second))
	if again := evaluate[float64](t, ann, "performance.timeOrigin"); again != opened {
		t.Error("the page was loaded again, instead of being told by its socket")
	}

	bob := newVisitor(t, browser)
	bob.visit(t, d.url+"tasks/"+first)
	bob.until(t, `location.pathname === "/login"`)
	bob.signIn(t, "bob", "hunter2")
	bob.until(t, live+` && location.pathname.startsWith("/tasks/")`)
	for _, path := range []string{"tasks/" + first, "workers/solo@test", "queues/celery"} {
		const acts = `document.querySelectorAll("main form[method=post] button, main a[href*='/act/']").length`
		ann.visit(t, d.url+path)
		ann.until(t, live+" && "+acts+" > 0")
		bob.visit(t, d.url+path)
		bob.until(t, live)
		if n := evaluate[int](t, bob, acts); n != 0 {
			t.Errorf("%s shows %d buttons to a viewer", path, n)
		}
	}
	bob.visit(t, d.url+"act/task?action=retry&id="+first)
	bob.until(t, `document.readyState === "complete" && document.querySelector("main form[method=post]") === null && document.querySelector("main h1") !== null`)

	other := ann.tab(t) // of the same browser
	other.visit(t, d.url+"workers")
	other.until(t, live)
	ann.press(t, "details:has(.user-sheet) summary")
	ann.press(t, `form[action="/logout"] button`)
	ann.until(t, `location.pathname === "/login" && document.querySelector("#password") !== null`)
	other.until(t, `location.pathname + location.search === "/login?next=%2Fworkers"`) // once its socket has noticed
	ann.visit(t, d.url+"tasks")
	ann.until(t, `location.pathname === "/login"`)
	bob.visit(t, d.url+"tasks")
	bob.until(t, live+" && "+lists(second)) // nobody else is signed out
}

const live = `document.querySelector("#connection")?.dataset.state === "live"`

// lists is true if the page Tasks has a row of a task that has succeeded.
func lists(id string) string {
	return fmt.Sprintf(`document.getElementById("t-%s")?.textContent.includes("Success") === true`, id)
}

// newVisitor opens an empty tab without the cookies of others.
func newVisitor(tb testing.TB, browser context.Context) *tab {
	tb.Helper()
	return newTab(tb, browser, chromedp.WithNewBrowserContext())
}

// tab opens another tab with the cookies of t.
func (t *tab) tab(tb testing.TB) *tab {
	tb.Helper()
	return newTab(tb, t.ctx)
}

func newTab(tb testing.TB, parent context.Context, options ...chromedp.ContextOption) *tab {
	tb.Helper()
	ctx, shut := chromedp.NewContext(parent, options...)
	tb.Cleanup(shut)
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("open tab: %v", err)
	}
	return &tab{url: "a new tab", ctx: ctx}
}

// visit leads the tab to a page, or to where that sends it.
func (t *tab) visit(tb testing.TB, url string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	t.url = url
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		tb.Fatalf("open %s: %v", url, err)
	}
}

// press clicks on an element.
func (t *tab) press(tb testing.TB, selector string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		tb.Fatalf("click %s in %s: %v", selector, t.url, err)
	}
}

// signIn fills in the form and sends it.
func (t *tab) signIn(tb testing.TB, user, password string) {
	tb.Helper()
	fill := fmt.Sprintf(`document.querySelector("#user").value = %q, document.querySelector("#password").value = %q, true`, user, password)
	t.until(tb, fill)
	t.press(tb, "form[action='/login'] button")
}
