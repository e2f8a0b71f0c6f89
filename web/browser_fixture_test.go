package web_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// changingBackend is a fake backend that changes.
type changingBackend struct {
	*backend
	second atomic.Int64
}

func newChangingBackend(t testing.TB, o state.Options) *changingBackend {
	t.Helper()
	m := &changingBackend{backend: newBackend(t, o)}
	m.second.Store(1000)
	return m
}

// now applies an event of a task that is newer than all others.
func (m *changingBackend) now(kind state.Kind, id string) {
	m.happen(kind, id, int(m.second.Add(1)))
}

// maxTasks is how many tasks a changingBackend holds.
const maxTasks = 200

// server serves a dashboard; it can be stopped and restarted at the same address.
type server struct {
	t       testing.TB
	backend *changingBackend
	prefix  string
	address string
	around  func(http.Handler) http.Handler // what a host program puts around the dashboard
	options func(*web.Options)              // changes those of the dashboard, nil if nothing does
	stop    func()
}

func newServer(t testing.TB, prefix string, around func(http.Handler) http.Handler) *server {
	t.Helper()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: prefix, address: "127.0.0.1:0", around: around}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) start() {
	s.t.Helper()
	o := web.Options{
		Backend: s.backend, Prefix: s.prefix, Version: "v1",
		Now: func() time.Time { return time.UnixMicro(noon).Add(time.Hour).UTC() },
	}
	if s.options != nil {
		s.options(&o)
	}
	h, err := web.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	var root http.Handler = h
	if s.around != nil {
		root = s.around(h)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(s.t.Context(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listener.Addr().String()
	srv := &http.Server{Handler: root, ReadHeaderTimeout: time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(listener) })
	wg.Go(func() { _ = h.Run(ctx) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		_ = srv.Close()
		wg.Wait()
	})
}

func TestMain(m *testing.M) { os.Exit(testbrowser.Main(m)) }

// tab is a page that must break no policy and log no error, but for those of a lost connection.
type tab struct {
	t   testing.TB
	ctx context.Context
	url string
}

// timeout is how long a busy machine may take for what should be at once.
const timeout = 3 * time.Minute

func newTab(t testing.TB, browser context.Context, s *server, path string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	tb := &tab{t: t, ctx: ctx, url: "http://" + s.address + s.prefix + path}
	console := chromedp.Console(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.Source != "network" && !strings.Contains(m.Text, "WebSocket connection") {
				t.Errorf("%s: %s", path, m)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		listening.Wait()
	})
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `addEventListener("securitypolicyviolation", (e) => console.error(e.violatedDirective, e.blockedURI))`,
	})
	if err != nil {
		t.Fatalf("listen to violations: %v", err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(tb.url)); err != nil {
		t.Fatalf("open %s: %v", tb.url, err)
	}
	return tb
}

// eval runs an expression in the page.
func (tb *tab) eval(expression string) any {
	tb.t.Helper()
	v, err := tb.try(expression)
	if err != nil {
		tb.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

func (tb *tab) try(expression string) (any, error) {
	ctx, cancel := context.WithTimeout(tb.ctx, timeout)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[any]("("+expression+") ?? null"))
}

// until waits for an expression to be true of a page that has loaded whole. One that throws is not so yet: another page may be
// on its way.
func (tb *tab) until(expression string) {
	tb.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var err error
	for end := time.Now().Add(timeout); time.Now().Before(end); <-tick.C {
		var v any
		if v, err = tb.try(`document.readyState === "complete" && (` + expression + `)`); v == true {
			return
		}
	}
	tb.t.Fatalf("never true: %s: %v; rows %v, connection %v, address %v", expression, err,
		tb.eval(rows), tb.eval(`document.querySelector("#connection").textContent`), tb.eval("location.href"))
}

// want checks the value of an expression.
func (tb *tab) want(expression string, want any) {
	tb.t.Helper()
	if got := tb.eval(expression); got != want {
		tb.t.Errorf("%s = %v, want %v", expression, got, want)
	}
}

// press types keys once the page serves them: its shortcuts are loaded after it.
func (tb *tab) press(keys string) {
	tb.t.Helper()
	tb.until(`!document.querySelector("#pause") || document.querySelector("[title^='Keyboard shortcuts']") !== null`)
	if err := chromedp.Do(tb.ctx, chromedp.KeyEvent(keys)); err != nil {
		tb.t.Fatalf("press %q: %v", keys, err)
	}
}

// click clicks on the middle of an element, again if that has moved away meanwhile.
func (tb *tab) click(selector string) {
	tb.t.Helper()
	for range 5 {
		tb.eval(fmt.Sprintf(`(() => {
			window.clicks?.abort();
			window.clicks = new AbortController();
			sessionStorage.removeItem("clicked");
			addEventListener("click", e => sessionStorage.setItem("clicked", e.target.closest?.(%q) !== null),
				{capture: true, once: true, signal: window.clicks.signal});
		})()`, selector))
		x, y := tb.middle(selector)
		if err := chromedp.Do(tb.ctx, chromedp.MouseClickXY(x, y)); err != nil {
			tb.t.Fatalf("click %s: %v", selector, err)
		}
		if hit, err := tb.try(`sessionStorage.getItem("clicked")`); err != nil || hit != "false" { // an error is a page that goes away
			return
		}
	}
	tb.t.Fatalf("%s is behind something else", selector)
}

// point moves the mouse over an element.
func (tb *tab) point(selector string) {
	tb.t.Helper()
	x, y := tb.middle(selector)
	if err := chromedp.Do(tb.ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y)); err != nil {
		tb.t.Fatalf("point at %s: %v", selector, err)
	}
}

func (tb *tab) middle(selector string) (x, y float64) {
	tb.t.Helper()
	tb.until(fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	v, ok := tb.eval(fmt.Sprintf(`(() => {
		const r = document.querySelector(%q)?.getBoundingClientRect();
		return r && [r.x + r.width / 2, r.y + r.height / 2];
	})()`, selector)).([]any)
	if !ok {
		tb.t.Fatalf("no element %s", selector)
	}
	return v[0].(float64), v[1].(float64)
}

// The newest rows of the list of tasks, by id.
const rows = `[...document.querySelectorAll("#tasks tr")].slice(0, 3).map((r) => r.id).join(" ")`

const live = `document.querySelector("#connection")?.dataset.state === "live"`

// stripped is a host program that strips the prefix.
func stripped(prefix string) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler { return http.StripPrefix(prefix, h) }
}

func queryOf(address any) string {
	u, err := url.Parse(fmt.Sprint(address))
	if err != nil {
		return err.Error()
	}
	return u.RawQuery
}
