package web_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testenv"
)

// What people do who leave the mouse alone.
func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"palette":      paletteFinds,
		"help":         helpListsEveryKey,
		"keys":         keysOpenMenus,
		"skip to rows": firstRowIsNear,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// ctrl presses a key while Control is held.
func (tb *tab) ctrl(key string) {
	tb.t.Helper()
	if err := chromedp.Do(tb.ctx, chromedp.KeyEvent(key, chromedp.KeyModifiers(chromedp.ModifierCtrl))); err != nil {
		tb.t.Fatalf("press Ctrl+%s: %v", key, err)
	}
}

// The palette's options, and the one that Enter takes.
const (
	palette       = `document.querySelector("dialog.palette[open]")`
	options       = `[...document.querySelectorAll(".palette [role=option]")].map((o) => o.innerText.replace(/\s+/g, " ")).join(", ")`
	chosenOption  = `document.querySelector(".palette [aria-selected=true]")?.innerText.replace(/\s+/g, " ")`
	describedBy   = `document.getElementById(document.querySelector(".palette input").getAttribute("aria-activedescendant"))?.innerText.replace(/\s+/g, " ")`
	paletteClosed = palette + ` === null`
)

// palette opens it: its script comes when it is first asked for.
func (tb *tab) palette() {
	tb.t.Helper()
	tb.ctrl("k")
	tb.until(palette + ` !== null && document.activeElement === document.querySelector(".palette input")`)
}

func paletteFinds(t *testing.T, b context.Context) {
	s, _ := newWorkersServer(t)
	tb := newTab(t, b, s, "/tasks")
	tb.withoutPolicy()
	tb.palette()
	tb.until(options + `.startsWith("Overview g o Page, Tasks g t Page")`)
	tb.want(options+`.includes("Pause and resume p Action")`, true)
	if found := tb.axe(); found != "" {
		t.Errorf("palette:\n%s", found)
	}
	tb.press("celery@a")
	tb.until(chosenOption + ` === "celery@a Worker"`)
	tb.want(describedBy, "celery@a Worker")
	tb.press(kb.Escape)
	tb.until(paletteClosed)

	tb.palette()
	tb.press("work")
	tb.until(options + `.startsWith("Workers g w Page, Workflows g f Page")`)
	tb.press(kb.ArrowDown)
	tb.until(chosenOption + ` === "Workflows g f Page"`)
	tb.press("\r")
	tb.until(`location.pathname.endsWith("/workflows") && ` + live)

	tb.palette()
	tb.press("task-28")
	tb.until(chosenOption + `?.endsWith("task-28 Task")`)
	tb.press("\r")
	tb.until(`location.pathname.endsWith("/tasks/task-28") && ` + live)

	tb.palette()
	tb.press("zzzz")
	tb.until(`document.querySelector(".palette [role=status]").innerText === "Nothing found"`)
	tb.press("\r")
	tb.want(palette+` !== null`, true)
}

// withoutPolicy loads the page again without its policy, which forbids what axe-core adds.
func (tb *tab) withoutPolicy() {
	tb.t.Helper()
	if _, err := chromedp.Call(tb.ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil {
		tb.t.Fatal(err)
	}
	if err := chromedp.Do(tb.ctx, chromedp.Navigate(tb.url)); err != nil {
		tb.t.Fatal(err)
	}
	tb.until(live)
}

// axe returns what axe-core finds in the dialog that is open, in both themes and at two widths.
func (tb *tab) axe() string {
	tb.t.Helper()
	script, err := os.ReadFile(testenv.Axe(tb.t))
	if err != nil {
		tb.t.Fatal(err)
	}
	tb.eval(`(() => {` + string(script) + `; return true; })()`)
	var all string
	for _, theme := range []string{"light", "dark"} {
		tb.media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		for _, width := range []int64{1280, 390} {
			tb.width(width)
			if found := tb.promise(strings.Replace(axe, "run(", `run("dialog[open]", `, 1)); found != "" {
				all += fmt.Sprintf("%s, %d px wide:\n%s\n", theme, width, found)
			}
		}
	}
	return all
}

func helpListsEveryKey(t *testing.T, b context.Context) {
	s, _ := newActingServer(t)
	tb := newTab(t, b, s, "/tasks")
	tb.withoutPolicy()
	tb.press("?")
	tb.until(`document.querySelector("dialog.help[open]") !== null`)
	const listed = `[...document.querySelectorAll(".help dt")].map((e) => e.innerText.replace(/\s+/g, " ").trim()).join(" | ")`
	got := " | " + fmt.Sprint(tb.eval(listed)) + " | "
	for key := range strings.FieldsSeq("? / j k Space x X a n p r f v c e y Y [ ] { } 0 t Esc Enter") {
		if !strings.Contains(got, " | "+key+" | ") {
			t.Errorf("the help does not list %s: %s", key, got)
		}
	}
	for _, key := range []string{"⌘ K", "g o", "g t", "g f", "g w", "g q", "g d", "g x", "g ,"} {
		if !strings.Contains(got, " | "+key+" | ") {
			t.Errorf("the help does not list %s: %s", key, got)
		}
	}
	if found := tb.axe(); found != "" {
		t.Errorf("help:\n%s", found)
	}
}

func keysOpenMenus(t *testing.T, b context.Context) {
	s, _ := newActingServer(t)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	const open = `document.querySelector("details[data-menu][open]")`
	for key, focused := range map[string]string{
		"v": `document.activeElement.id === "view-name"`,
		"c": open + `?.innerText.includes("Columns") && ` + open + `.contains(document.activeElement)`,
		"e": open + `?.innerText.includes("Export") && ` + open + `.contains(document.activeElement)`,
	} {
		tb.press(key)
		tb.until(focused)
		tb.press(kb.Escape)
		tb.until(open + ` === null`)
		tb.eval(`document.activeElement.blur()`)
	}
	tb.press("f")
	tb.until(`document.activeElement.id === "query"`)
	tb.eval(`document.activeElement.blur()`)
	tb.press("t")
	tb.until(`document.documentElement.dataset.theme !== undefined`)
	tb.until(live)
	tb.press("g,")
	tb.until(`location.pathname.endsWith("/settings")`)
}

// firstRowIsNear reaches the first row with Tab and Enter alone.
func firstRowIsNear(t *testing.T, b context.Context) {
	s, _ := newWorkersServer(t)
	for _, path := range []string{"/tasks", "/workers", "/queues"} {
		tb := newTab(t, b, s, path)
		tb.until(live + ` && document.querySelector("tbody[id] tr") !== null`)
		tabs := 0
		for inRow := false; !inRow; tabs++ {
			if tabs == 5 {
				t.Fatalf("%s: no row after %d tabs, but %v", path, tabs, tb.eval(`document.activeElement.outerHTML`))
			}
			if tb.eval(`document.activeElement.matches(".skip")`) == true {
				tb.press("\r")
			}
			tb.press("\t")
			inRow = tb.eval(`document.activeElement.closest("tbody[id] tr") !== null`) == true
		}
	}
}
