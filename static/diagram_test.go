package static_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

// diagramPage has two lanes: 0 leads to 1 and 2, 2 to 3.
const diagramPage = `<!DOCTYPE html>
<title>Test</title>
<umbel-diagram><svg width="400" height="100">
<path data-from="0" data-to="2" d="M20 20L220 80"/>
<a id="e0" href="#" data-event="0" data-after="" tabindex="0"><circle cx="20" cy="20" r="4"/></a>
<a id="e1" href="#" data-event="1" data-after="0" tabindex="-1"><circle cx="120" cy="20" r="4"/></a>
<a id="e2" href="#" data-event="2" data-after="0" tabindex="-1"><circle cx="220" cy="80" r="4"/></a>
<a id="e3" href="#" data-event="3" data-after="2" tabindex="-1"><circle cx="320" cy="80" r="4"/></a>
</svg></umbel-diagram>
<script>
const lit = () => [...document.querySelectorAll("path, a")].map((e) => e.dataset.lit ?? "-").join(" ");
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const point = (id) => document.getElementById(id).dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
</script>
<script type="module" src="%s"></script>`

func TestDiagramsLightPastAndFuture(t *testing.T) {
	t.Parallel()
	browser := testbrowser.Open(t)
	a := newAssets(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			a.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, diagramPage, a.URL("diagram.js"))
	}))
	t.Cleanup(srv.Close)
	tab, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	if err := chromedp.Do(tab, chromedp.Navigate(srv.URL)); err != nil {
		t.Fatalf("open page: %v", err)
	}
	ctx, stop := context.WithTimeout(tab, 3*time.Minute)
	t.Cleanup(stop)
	for _, tt := range []struct{ act, want string }{
		{`await customElements.whenDefined("umbel-diagram"); return lit()`, "- - - - -"},
		{`point("e2"); return lit()`, "past past none self future"},
		{`point("e0"); return lit()`, "future self future future future"},
		{`document.getElementById("e0").focus(); press("ArrowRight"); return document.activeElement.id + " " + lit()`, "e1 none past self none none"},
		{`press("ArrowDown"); return document.activeElement.id + " " + document.activeElement.tabIndex`, "e2 0"},
		{`press("ArrowRight"); return document.activeElement.id + " " + lit()`, "e3 past past none past self"},
		{`press("ArrowRight"); return document.activeElement.id`, "e3"},
		{`document.activeElement.blur(); return lit()`, "- - - - -"},
		{`document.getElementById("e1").focus(); delete document.getElementById("e0").dataset.lit;
			await new Promise((done) => setTimeout(done)); return lit()`, "none past self none none"}, // as an update of the page does
	} {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[any]("(async () => { "+tt.act+" })()", chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("run %s: %v", tt.act, err)
		}
		if got != tt.want {
			t.Errorf("%s\n= %v, want %v", tt.act, got, tt.want)
		}
	}
}

// What a page with a drawing loads more than others.
func TestDrawingsStaySmall(t *testing.T) {
	t.Parallel()
	const most = 3_000
	a, sum := newAssets(t), 0
	for _, name := range []string{"diagram.css", "diagram.js"} {
		sum += get(t, a, a.URL(name), "Accept-Encoding", "gzip").Body.Len()
	}
	if sum > most {
		t.Errorf("the files of drawings have %d bytes gzipped, want at most %d", sum, most)
	}
}
