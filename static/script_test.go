package static_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

func TestMain(m *testing.M) { os.Exit(testbrowser.Main(m)) }

// scriptPage has what umbel.js asks of a page, and sockets that the test plays the server of.
const scriptPage = `<!DOCTYPE html>
<html data-keys="%s">
<title>Test</title>
<nav class="rail"></nav>
<span id="connection"></span>
<main id="main" data-topic="/tasks" data-page="first">
<p id="total">1</p>
<div data-news="tasks"></div>
<table><tbody id="tasks"><tr id="a"><td><input type="checkbox"></td><td>A</td><td>pending</td></tr></tbody></table>
<div id="scratch"></div>
</main>
<script>
const sockets = [];
WebSocket = class { constructor(url) { this.url = new URL(url); sockets.push(this); } close() { this.closed = true; } };
const until = async (f) => { while (!f()) await new Promise((done) => setTimeout(done, 5)); };
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const rows = () => [...document.querySelectorAll("#tasks tr")].map((row) => row.innerText.replace(/\s+/g, " ").trim()).join(", ");
</script>
<script type="module" src="%s"></script>`

// scripted is a tab with scriptPage.
type scripted struct {
	t      *testing.T
	ctx    context.Context
	script string // its URL
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	browser := testbrowser.Open(t)
	a := newAssets(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			a.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, scriptPage, a.URL("keys.js"), a.URL("umbel.js"))
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate(srv.URL)); err != nil {
		t.Fatalf("open page: %v", err)
	}
	return &scripted{t, ctx, srv.URL + a.URL("umbel.js")}
}

// run runs the body of an asynchronous function, to which the script's exports are u, and returns its value.
func (s *scripted) run(body string) any {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Minute)
	defer cancel()
	expression := fmt.Sprintf("import(%q).then(async (u) => { %s })", s.script, body)
	v, err := chromedp.Run(ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		s.t.Fatalf("run %s: %v", body, err)
	}
	return v
}

func (s *scripted) want(body string, want any) {
	s.t.Helper()
	if got := s.run(body); got != want {
		s.t.Errorf("%s\n= %v, want %v", body, got, want)
	}
}

// send has the last socket receive a frame. Kind and before are as in docs/live-protocol.md.
func (s *scripted) send(kind byte, before, text string) {
	s.t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = w.Write([]byte(before))
	_ = w.Flush()
	b.Reset()
	b.WriteByte(kind)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	s.run(fmt.Sprintf("sockets.at(-1).onmessage({ data: bytes(%q) })", base64.StdEncoding.EncodeToString(b.Bytes())))
}

func TestSpansOfTime(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	for seconds, want := range map[float64]string{
		0: "0 s", 59.9: "59 s", 60: "1 m", 61: "1 m 1 s", 3599: "59 m 59 s", 3600: "1 h", 3660: "1 h 1 m", 86400: "1 d", 97200: "1 d 3 h",
	} {
		s.want(fmt.Sprintf(`return u.span(%v).replaceAll("\u202f", " ")`, seconds), want)
	}
}

func TestReorder(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	for parts, want := range map[string]string{
		`[]`: "", `[[0, 3]]`: "a b c", `["n", [0, 2]]`: "n a b", `[[2, 1], [0, 2]]`: "c a b", `["x", "y"]`: "x y",
	} {
		s.want(fmt.Sprintf(`return u.reorder(["a", "b", "c"], %s).join(" ")`, parts), want)
	}
}

func TestMorph(t *testing.T) { //nolint:tparallel // the cases share a page
	t.Parallel()
	s := newScripted(t)
	tests := map[string]struct{ old, before, next, want string }{
		"text":                {`<p>1</p>`, ``, `<p>2</p>`, `<p>2</p>`},
		"attributes":          {`<p class="a" title="x">1</p>`, ``, `<p class="b" hidden>1</p>`, `<p class="b" hidden="">1</p>`},
		"another element":     {`<p>1</p>`, ``, `<b>1</b>`, `<b>1</b>`},
		"more children":       {`<ul><li>1</li></ul>`, ``, `<ul><li>1</li><li>2</li></ul>`, `<ul><li>1</li><li>2</li></ul>`},
		"fewer children":      {`<ul><li>1</li><li>2</li></ul>`, ``, `<ul><li>2</li></ul>`, `<ul><li>2</li></ul>`},
		"what the user opens": {`<details><p>1</p></details>`, `e.open = true`, `<details><p>2</p></details>`, `<details open=""><p>2</p></details>`},
		"children by id": {
			`<div><i id="x">1</i><i id="y">2</i></div>`, `e.lastChild.mark = 1; globalThis.moved = () => e.firstChild.mark`,
			`<div><i id="y">3</i><i id="x">1</i></div>`, `<div><i id="y">3</i><i id="x">1</i></div>`,
		},
		"suggestions of a script": {`<ul data-options><li>1</li></ul>`, ``, `<ul data-options></ul>`, `<ul data-options=""><li>1</li></ul>`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // they share a page
			s.t = t
			s.want(fmt.Sprintf(`
				const scratch = document.querySelector("#scratch");
				scratch.innerHTML = %q;
				const e = scratch.firstChild;
				%s;
				const template = document.createElement("template");
				template.innerHTML = %q;
				u.morph(e, template.content.firstChild);
				return scratch.innerHTML`, test.old, test.before, test.next), test.want)
		})
	}
	s.t = t
	s.want(`return moved()`, 1.0)
	s.want(`
		scratch.innerHTML = "<form><input value='1'><input value='1'></form>";
		const [used, other] = scratch.querySelectorAll("input");
		used.value = "typed";
		used.focus();
		const next = scratch.firstChild.cloneNode(true);
		for (const input of next.children) { input.setAttribute("value", "2"); input.value = "2"; }
		u.morph(scratch.firstChild, next);
		return used.value + " " + other.value + " " + (document.activeElement === used)`, "typed 2 true")
}

func TestAgesFollowTheServersClock(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.run(`
		scratch.innerHTML = "<time data-age></time>";
		globalThis.age = (now, at) => {
			sockets.at(-1).onmessage({ data: JSON.stringify({ v: 2, now }) });
			return until(() => u.live.skews.length).then(() => {
				scratch.firstChild.dateTime = new Date(at).toISOString();
				const next = scratch.firstChild.cloneNode();
				next.className = next.className ? "" : "changed";
				u.morph(scratch.firstChild, next);
				return scratch.firstChild.textContent.replaceAll("\u202f", " ");
			});
		}`)
	s.want(`return age(Date.now() + 3600e3, Date.now() + 3600e3 - 65.5e3)`, "1 m 5 s")
	// A message that was under way for 20 s says nothing new.
	s.want(`return age(Date.now() + 3600e3 - 20e3, Date.now() + 3600e3 - 125.5e3)`, "2 m 5 s")
	s.want(`return age(Date.now() + 3600e3, Date.now() + 3700.5e3)`, "in 1 m 40 s")
}

func TestFramesChangeThePage(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.want(`return sockets.length + sockets[0].url.pathname + sockets[0].url.search`, "1/ws?topic=%2Ftasks&page=first")
	const kept = `{"ops":[{"id":"total","html":"<p id=\"total\">7</p>"}]}` + "\n"
	s.send(1, "", kept+`{"epoch":"e","seq":3,"page":"first","ops":[{"id":"total","html":"<p id=\"total\">2 \u00e9</p>"}]}`)
	s.want(`await until(() => total.textContent === "2 é"); return connection.dataset.state`, "live")

	one := `{"ops":[{"id":"tasks","order":["b",[0,1]],"rows":{"b":"<tr id=\"b\"><td></td><td>B</td><td>pending</td></tr>"}}]}` + "\n"
	s.send(0, kept, one)
	s.want(`await until(() => rows() === "B pending, A pending"); return u.live.at.seq`, 4.0)
	s.run(`a.cells[0].mark = 1`)
	two := `{"ops":[{"id":"tasks","rows":{"a":{"2":"<td>done</td>"}}}]}` + "\n"
	s.send(0, kept+one, two)
	s.want(`await until(() => rows() === "B pending, A done"); return a.cells[0].mark`, 1.0)
	s.send(0, kept+one+two, `{"ops":[{"id":"tasks","order":[[1,1]]}]}`+"\n")
	s.want(`await until(() => rows() === "A done"); return u.live.at.epoch + u.live.at.seq`, "e6")
}

func TestRowsWaitWhileTheListIsInUse(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.run(`a.querySelector("input").checked = true`)
	s.send(1, "", `{"epoch":"e","seq":1,"page":"first","ops":[{"id":"tasks","order":["b",[0,1]],"rows":{"a":{"2":"<td>done</td>"},`+
		`"b":"<tr id=\"b\"><td></td><td>B</td><td>pending</td></tr>"}}]}`)
	s.want(`await until(() => rows() === "A done"); return document.querySelector("[data-news]").innerText`, "1 new")
	// What has not come in yet changes too.
	s.send(0, "", `{"ops":[{"id":"tasks","rows":{"b":{"2":"<td>failed</td>"}}}]}`+"\n")
	s.run(`await until(() => u.live.at.seq === 2); a.querySelector("input").checked = false`)
	s.want(`await until(() => rows() === "B failed, A done"); return document.querySelector("[data-news]").innerText`, "")
}

func TestASocketThatEndsIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send(1, "", `{"epoch":"e","seq":3,"reset":true,"ops":[]}`)
	s.run(`await until(() => u.live.at.seq === 3); sockets[0].onclose({ code: 1006 })`)
	s.want(`await until(() => sockets.length === 2); return sockets[1].url.search`, "?topic=%2Ftasks&epoch=e&seq=3")
	// What cannot be read is asked for anew.
	s.run(`sockets[1].onmessage({ data: new Uint8Array([0, 255, 255]).buffer })`)
	s.want(`await until(() => sockets.length === 3); return sockets[1].closed + sockets[2].url.search`, "true?topic=%2Ftasks")
	// So is a row that is not there.
	s.send(1, "", `{"epoch":"e","seq":9,"reset":true,"ops":[{"id":"tasks","order":["x"]}]}`)
	s.want(`await until(() => sockets.length === 4); return sockets[3].url.search`, "?topic=%2Ftasks")
}

func TestPausedPagesHaveNoSocket(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.send(1, "", `{"epoch":"e","seq":3,"reset":true,"ops":[]}`)
	s.run(`await until(() => u.live.at.seq === 3); document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "p", bubbles: true }))`)
	s.want(`return sockets[0].closed + connection.dataset.state`, "truepaused")
	s.run(`document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "p", bubbles: true }))`)
	s.want(`return sockets[1].url.search`, "?topic=%2Ftasks&epoch=e&seq=3")
}

func TestATopicThatEndsIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.run(`sockets[0].onmessage({ data: '{"v":2,"now":1}' }); sockets[0].onmessage({ data: '{"error":"no such topic"}' })`)
	s.want(`await until(() => u.live.refused); await until(() => u.live.refreshed); return sockets.length + u.live.wanted()`, "1")
}
