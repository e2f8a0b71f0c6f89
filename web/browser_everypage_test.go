package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
)

// axePages are one of each kind of page, as far as their addresses are known beforehand.
func axePages() []string {
	pages := []string{
		"/", "/tasks", "/tasks?q=state%3Afailure&chart=24h,name", "/tasks?q=stat%3Afailure", "/tasks?q=nothing", "/tasks/task-28", "/tasks/task-02",
		"/types?last=30d", "/types/billing.charge?last=30d", "/workers", "/workers/idempotency?all=1", "/schedules", "/workflows", "/workflows?state=lost", "/workflows/task-02", "/duplicates", "/duplicates?verdict=skipped", "/duplicates/rules", "/queues", "/queues/mail", "/outbox", "/outbox?state=dead", "/outbox/1", "/outbox/audit", "/outbox/app", "/outbox/app/dead", "/settings", "/about", "/views",
		"/act/publish", "/act/exclude?name=billing.charge", "/act/exclude?name=billing.charge&check=1&fields=x", "/act/task?action=terminate&id=task-02", "/act/task?action=retry&id=task-28",
		"/act/worker?method=pool_grow&worker=celery%40a", "/act/worker?method=shutdown&worker=celery%40a", "/act/purge?queue=mail",
		"/locks", "/act/release?key=qo_stuck",
		"/workflows/r", "/workflows/r?tab=graph", "/workflows/r?tab=spacetime", "/workflows/r?order=time&tab=spacetime",
		"/alerts", "/act/alert?kind=threshold",
		"/tasks/nope", "/nothing",
	}
	for _, tab := range []string{"now", "history", "queues", "tasks", "config", "system", "clock", "commands"} {
		pages = append(pages, "/workers/celery@a?tab="+tab)
	}
	return pages
}

// axe runs axe-core with options and returns the violations of its rules.
const axe = `axe.run({ resultTypes: ["violations"], %s }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) =>
	v.id + " at " + n.target.join(" ") + ": " + [...n.any, ...n.all, ...n.none].map((c) => c.message).join("; "))).join("\n"))`

// TestBrowserAccessibility checks every page with axe-core, in both themes and at two widths.
func TestBrowserAccessibility(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(testenv.Axe(t))
	if err != nil {
		t.Fatal(err)
	}
	b := testbrowser.Open(t)
	s, c := newWorkersServer(t)
	c.auditable()
	lately(s)
	s.backend.backend.Apply(treeEvents(8)...)
	request := command.ControlRequest{Method: "pool_grow", Arguments: map[string]any{"n": 1}, Workers: []string{"celery@a"}}
	if _, err := c.commands.Control(t.Context(), command.Caller{}, request); err != nil {
		t.Fatal(err)
	}
	failing := newServer(t, "/ops", nil) // its history has groups of failures
	tb := newTab(t, b, failing, "/failures")
	pages := []string{tb.url, fmt.Sprint(tb.eval(`document.querySelector('#groups a[href*="/failures/"], tbody a[href*="/failures/"]').href`))}
	pages = append(pages, "http://"+failing.address+failing.prefix+templates.DuplicatePath(repeatedCall(t, failing.backend.backend)))
	for _, path := range axePages() {
		pages = append(pages, "http://"+s.address+s.prefix+path)
	}
	pages = append(pages, signInPages(t)...)
	pages = append(pages, pastPages(t)...)
	pages = append(pages, firingPages(t)...)
	if _, err := chromedp.Call(tb.ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil {
		t.Fatal(err) // axe-core adds style sheets, which the policy forbids
	}
	if _, err := chromedp.Call(tb.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: string(script)}); err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		if err := chromedp.Do(tb.ctx, chromedp.Navigate(path)); err != nil {
			t.Fatalf("open %s: %v", path, err)
		}
		tb.until(`document.readyState === "complete" && (document.querySelector("main").dataset.topic === undefined || ` + live + `)`)
		for theme, options := range map[string]string{
			"light": "",
			"dark":  `runOnly: ["color-contrast", "link-in-text-block"]`, // all that a theme decides
		} {
			tb.media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}, // no colour in transition
			}})
			for _, width := range []int64{1280, 390} {
				tb.width(width)
				if found := tb.promise(fmt.Sprintf(axe, options)); found != "" {
					t.Errorf("%s, %s, %d px wide:\n%s", path, theme, width, found)
				}
			}
		}
	}
}

// signInPages are the page to sign in and that of tokens, which shows one.
func signInPages(t *testing.T) []string {
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
	return []string{server.URL + "/ops/login", server.URL + "/ops/tokens"}
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
