package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// recorder notes when a page first shows a state somewhere, as "id-of-the-element Word". It runs before
// the page's own script and outlives everything but a reload.
const recorder = `
	window.umbelSeen = {};
	new MutationObserver(() => {
		for (const mark of document.querySelectorAll(".state")) {
			const where = mark.closest("[id]");
			if (where) window.umbelSeen[where.id + " " + mark.textContent.trim()] ??= Date.now();
		}
	}).observe(document, {childList: true, subtree: true, characterData: true, attributes: true});`

// tab is a page open in Chromium. It may be used by several goroutines.
type tab struct {
	url string

	mu  sync.Mutex // one action at a time
	ctx context.Context
}

// openTab opens a page and waits until it is live. At the end of the test it must be the same document
// still, and the browser must have found nothing wrong with it: no error, no warning, no violation of
// the content security policy.
func openTab(tb testing.TB, browser context.Context, url string) *tab {
	tb.Helper()
	ctx, shut := chromedp.NewContext(browser)
	t := &tab{url: url, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("open tab: %v", err)
	}
	end := listenTo(tb, t, shut)
	err := chromedp.Do(ctx,
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument,
				page.AddScriptToEvaluateOnNewDocumentParams{Source: recorder})
			return err
		}),
		chromedp.Navigate(url))
	if err != nil {
		tb.Fatalf("open %s: %v", url, err)
	}
	t.until(tb, `document.querySelector("#connection").dataset.state === "live"`)
	opened := evaluate[float64](tb, t, "performance.timeOrigin")
	tb.Cleanup(func() {
		if again := evaluate[float64](tb, t, "performance.timeOrigin"); again != opened {
			tb.Errorf("%s was loaded again", url)
		}
		end()
	})
	return t
}

// listenTo notes what the browser finds wrong with a tab. The function that it returns shuts the tab and reports it.
func listenTo(tb testing.TB, t *tab, shut func()) (end func()) {
	tb.Helper()
	complaints := make(chan string, 100)
	console := chromedp.Console(t.ctx)
	go func() {
		defer close(complaints)
		for m, err := range console {
			if err == nil && (m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning) {
				complaints <- m.Source + " " + m.String()
			}
		}
	}()
	return func() {
		shut()
		for c := range complaints {
			tb.Errorf("%s: %s", t.url, c)
		}
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](tb testing.TB, t *tab, expression string) T {
	tb.Helper()
	v, err := tryEvaluate[T](t, expression)
	if err != nil {
		tb.Fatalf("evaluate %s in %s: %v", expression, t.url, err)
	}
	return v
}

func tryEvaluate[T any](t *tab, expression string) (T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

// until waits for a condition in the page, which has loaded whole. One that throws is not so yet: another page may be on its way.
func (t *tab) until(tb testing.TB, condition string) {
	tb.Helper()
	eventually(tb, timeout, func() error {
		at, err := tryEvaluate[string](t, `document.readyState === "complete" && (`+condition+`) ? "" : location.href + "\n" + document.body.innerText`)
		if err == nil && at != "" {
			err = fmt.Errorf("not so on the page: %s\n%s", condition, at)
		}
		return err
	})
}

// sees waits until the page has shown a state in an element, and returns when that was.
func (t *tab) sees(tb testing.TB, element, word string) time.Time {
	tb.Helper()
	key, err := json.Marshal(element + " " + word)
	if err != nil {
		tb.Fatal(err)
	}
	at := fmt.Sprintf("(window.umbelSeen[%s] ?? 0)", key)
	t.until(tb, at+" > 0")
	return time.UnixMilli(int64(evaluate[float64](tb, t, at)))
}
