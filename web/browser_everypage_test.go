package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/web/auth"
)

// axe runs axe-core and returns the violations of its rules.
const axe = `axe.run({ resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) =>
	v.id + " at " + n.target.join(" ") + ": " + [...n.any, ...n.all, ...n.none].map((c) => c.message).join("; "))).join("\n"))`

// TestBrowserEveryPage looks at every page: nothing but rows moves when events arrive, none scrolls sideways in a narrow window or
// at 200 %, and axe-core finds nothing, in both themes and at two widths, with everything open that a page can open; make thorough
// tries each theme at each width.
func TestBrowserEveryPage(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(testenv.Axe(t))
	if err != nil {
		t.Fatal(err)
	}
	b := testbrowser.Open(t)
	pages := everyPage(t)
	const parts = 4 // at once
	for part := range slices.Chunk(pages, (len(pages)+parts-1)/parts) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			lookAt(t, b, string(script), part)
		})
	}
}

// lookAt checks pages one after the other, in one tab to which script adds axe-core.
func lookAt(t *testing.T, browser context.Context, script string, pages []visitedPage) {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	tb := &tab{t: t, ctx: ctx}
	if _, err := chromedp.Call(ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil {
		t.Fatal(err) // axe-core adds style sheets, which the policy forbids
	}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		t.Fatal(err)
	}
	for i, p := range pages {
		address := p.address
		if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
			t.Fatalf("open %s: %v", address, err)
		}
		tb.until(`document.readyState === "complete" && (document.querySelector("main").dataset.topic === undefined || ` + live + `)`)
		tb.keepsStill(p, i%2 == 0)
		tb.fits(address)
		tb.eval(`void document.querySelectorAll("details:not([open])").forEach((d) => d.open = true)`)
		tb.fits(address + ", opened")
		tb.eval(fewRows)
		tb.accessible(address)
	}
}

// fewRows leaves the first rows of each table: others are like them, and axe-core takes its time for every element.
const fewRows = `void document.querySelectorAll("tbody").forEach((b) => [...b.rows].slice(6).forEach((row) => row.remove()))`

// fits checks that nothing makes the page scroll sideways: on phones, and where 1,400 px are shown at 200 %.
func (tb *tab) fits(name string) {
	tb.t.Helper()
	for _, width := range []int64{360, 390, 700} {
		var scale []chromedp.EmulateViewportOption
		if width == 700 {
			scale = append(scale, chromedp.EmulateScale(2))
		}
		if err := chromedp.Do(tb.ctx, chromedp.EmulateViewport(width, 800, scale...)); err != nil {
			tb.t.Fatalf("set width: %v", err)
		}
		if over := tb.eval(fits); over != 0.0 {
			tb.t.Errorf("%s is %v px wider than its %d: %v", name, over, width, tb.eval(wide))
		}
		if over := tb.eval(cardsFit); over != 0.0 {
			tb.t.Errorf("cards of %s are %v px wider than there is room for in %d: %v", name, over, width, tb.eval(wideInCards))
		}
	}
}

// wide names what reaches beyond the window, without what is in a part that scrolls.
const wide = `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
	![...function* (p) { while (p = p.parentElement) yield p; }(e)].some((p) => p !== document.body && getComputedStyle(p).overflowX !== "visible")
).slice(0, 8).map((e) => e.tagName.toLowerCase() + (e.id && "#" + e.id) + (e.getAttribute("class") ? "." + e.getAttribute("class") : "")).join(", ")`

// wideInCards names what reaches beyond the part that it is in.
const wideInCards = `[...document.querySelectorAll(".sideways")].flatMap((part) => [...part.querySelectorAll("*")].filter((e) =>
	e.getBoundingClientRect().right > part.getBoundingClientRect().right + 1)).slice(0, 8).map((e) =>
	e.tagName.toLowerCase() + "." + e.className + " " + e.innerText?.slice(0, 60)).join(", ")`

// accessible checks what axe-core says of the page.
func (tb *tab) accessible(name string) {
	tb.t.Helper()
	widths := map[string][]int64{"light": {1280}, "dark": {390}} // each theme, and each width
	if testenv.Thorough() {
		widths = map[string][]int64{"light": {1280, 390}, "dark": {1280, 390}}
	}
	for theme := range widths {
		tb.media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}, // no colour in transition
		}})
		for _, width := range widths[theme] {
			tb.width(width)
			if found := tb.promise(axe); found != "" {
				tb.t.Errorf("%s, %s, %d px wide:\n%s", name, theme, width, found)
			}
		}
	}
}

// signInPages are the page to sign in and that of tokens, which shows one.
func signInPages(t *testing.T) visited {
	t.Helper()
	cookie, h := "", newSignIn(t, auth.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ops/login" {
			r.Header.Set("Cookie", cookie)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	post := func(path, form string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+path, strings.NewReader(form))
		r.Header.Set("Content-Type", formType)
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= http.StatusBadRequest {
			t.Fatalf("POST %s: %d %s", path, w.Code, w.Body)
		}
		return w.Header().Get("Set-Cookie")
	}
	cookie, _, _ = strings.Cut(post("/ops/login", "user=ann&password=s3cret"), ";")
	post("/ops/tokens", "name=grafana&role=viewer&days=30")
	return visited{base: server.URL + "/ops", paths: []string{"/login", "/tokens"}}
}

// promise waits for a text that the page promises.
func (tb *tab) promise(expression string) string {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, timeout+10*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}
