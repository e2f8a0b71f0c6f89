package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
)

// pastSource is a cluster all of which is saved.
type pastSource struct{ savedBackend }

func (pastSource) Notify()        {}
func (pastSource) Restored() bool { return true }

// withPast has a dashboard show times past of a saved history, whose events arrived in the 90 seconds after noon.
func withPast(t *testing.T, o *web.Options) {
	t.Helper()
	b := newSavedBackend(t, t.TempDir(), history.RetentionRules{})
	recordQueues(t, b.history)
	o.Now = func() time.Time { return time.UnixMicro(noon).Add(time.Hour).UTC() }
	r, err := view.New(pastSource{b}, b.history, o.Now)
	if err != nil {
		t.Fatal(err)
	}
	o.Past = r.At
	if o.Backend == nil {
		o.Backend = b
	}
}

// after is the address of an instant after noon, as a parameter.
func after(d time.Duration) string {
	return "at=" + url.QueryEscape(time.UnixMicro(noon).Add(d).UTC().Format("2006-01-02T15:04:05.000000Z"))
}

func TestPagesShowTimesPast(t *testing.T) {
	t.Parallel()
	o := web.Options{Prefix: "/ops"}
	withPast(t, &o)
	h := newWeb(t, o)
	const then = 10500 * time.Millisecond
	page := visit(t, h, "/ops/tasks/task-03?"+after(then))
	body := page.Body.String()
	for _, want := range []string{"As of <time", "Started", `id="past-before"`, `id="past-now" class="button" href="/ops/tasks/task-03"`} {
		if !strings.Contains(body, want) {
			t.Errorf("page of a task then lacks %q", want)
		}
	}
	before, others, _ := strings.Cut(body, `<section id="task-similar"`) // which shows tasks that had succeeded
	_, rest, _ := strings.Cut(others, "</section>")
	if page.Code != http.StatusOK || strings.Contains(before+rest, "Success") || strings.Contains(body, "data-topic") {
		t.Errorf("status %d; the page knows of what came later, or is live", page.Code)
	}
	// Every link within the dashboard leads to the same instant, but for those that lead to others.
	link := regexp.MustCompile(`<a\b[^>]*href="(/ops/[^"]*)"[^>]*>`)
	for _, path := range []string{"/ops/", "/ops/tasks", "/ops/workers", "/ops/tasks?q=state%3Astarted"} {
		text := visit(t, h, path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+after(then)).Body.String()
		links := link.FindAllStringSubmatch(text, -1)
		for _, l := range links {
			if !strings.Contains(l[0], "data-instant") && !strings.Contains(l[1], after(then)) {
				t.Errorf("%s: link to %s", path, l[1])
			}
		}
		if len(links) < 10 {
			t.Errorf("%s has %d links", path, len(links))
		}
		if again := visit(t, h, path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+after(then)).Body.String(); again != text {
			t.Errorf("%s differs from itself", path)
		}
	}
	if w := visit(t, h, "/ops/tasks?at=2026-11-21T13:00:10.5%2B01:00&q="); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ops/tasks?"+after(then) {
		t.Errorf("another spelling: %d to %s", w.Code, w.Header().Get("Location"))
	}
	for query, want := range map[string]string{
		"at=2030-01-01T00:00:00.000000Z": "The parameter at is in the future.",
		"at=yesterday":                   "The parameter at must be a time such as 2026-09-21T14:03:22.120Z.",
		after(-time.Hour):                "Nothing is kept of what was received by 2026-11-21T11:00:00.000000Z.",
	} {
		if w := visit(t, h, "/ops/tasks?"+query); w.Code < 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d without %q", query, w.Code, want)
		}
	}
	for _, path := range []string{"/ops/about?", "/ops/settings?"} {
		if w := visit(t, h, strings.TrimSuffix(path, "?")); strings.Contains(w.Body.String(), "look-back") {
			t.Errorf("%s offers to look back", path)
		}
		if w := visit(t, h, path+after(then)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "Known only as it is now") {
			t.Errorf("%s then: status %d", path, w.Code)
		}
	}
	if w := visit(t, h, "/ops/?"+after(time.Minute)); !strings.Contains(w.Body.String(), "Failing in the hour before") || !strings.Contains(w.Body.String(), `href="/ops/failures/`) {
		t.Error("the overview does not show what failed then")
	}
	w := visit(t, h, "/ops/failures?show=all&"+after(time.Minute))
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "As of <time") || !strings.Contains(body, `href="/ops/failures/`) {
		t.Errorf("failures then: status %d, or none is shown\n%s", w.Code, body)
	}
	if w := visit(t, h, "/ops/workflows?"+after(time.Minute)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "As of <time") {
		t.Errorf("workflows then: status %d", w.Code)
	}
	if w := visit(t, h, "/ops/schedules?"+after(85*time.Second)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"Every">3.0`) || !strings.Contains(w.Body.String(), "On time") {
		t.Errorf("schedules then: status %d\n%s", w.Code, w.Body)
	}
	if w := visit(t, h, "/ops/schedules"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Ended") {
		t.Errorf("schedules now: status %d\n%s", w.Code, w.Body)
	}
	for _, path := range []string{"/ops/workflows/task-03?", "/ops/workflows/task-03?tab=graph&", "/ops/workflows/task-03?tab=spacetime&"} {
		w := visit(t, h, path+after(then))
		if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "As of <time") || strings.Contains(body, "Success") {
			t.Errorf("%s then: status %d, or it knows of what came later", path, w.Code)
		}
	}
}

// viewer may look, and see no payloads.
type viewer struct{}

func (viewer) Authenticate(*http.Request) (auth.Grant, error) {
	return auth.Grant{User: "eve", Method: "test", Audience: auth.Audience{Role: auth.Viewer}}, nil
}

func TestTheAPIAnswersForTimesPast(t *testing.T) {
	t.Parallel()
	o := web.Options{}
	withPast(t, &o)
	states := func(h http.Handler, path string) map[string]string {
		w := visit(t, h, path)
		var list struct {
			Items []struct {
				ID, State string
				Args      *string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &list); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		by := map[string]string{}
		for _, item := range list.Items {
			by[item.ID] = item.State
			if item.Args != nil {
				by["args"] = *item.Args
			}
		}
		return by
	}
	all := newWeb(t, o)
	if got := states(all, "/api/v1/tasks?"+after(10500*time.Millisecond)); len(got) != 5 || got["task-03"] != "STARTED" || got["task-02"] != "STARTED" || got["task-01"] != "FAILURE" {
		t.Errorf("tasks then: %v", got)
	}
	if got := states(all, "/api/v1/tasks?q=state:started&"+after(10500*time.Millisecond)); len(got) != 3 {
		t.Errorf("started tasks then: %v, want two and their arguments", got)
	}
	for path, want := range map[string]string{"/api/v1/workflows/task-03?": `"status":"running"`, "/api/v1/workflows/export?root=task-03&": "STARTED", "/api/v1/failures?": `"task_id":"task-01"`} {
		if w := visit(t, all, path+after(10500*time.Millisecond)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	o.Auth = viewer{}
	if got := states(newWeb(t, o), "/api/v1/tasks?"+after(10500*time.Millisecond)); len(got) != 4 || got["args"] != "" {
		t.Errorf("tasks then, for a viewer: %v, want four without arguments", got)
	}
	for path, want := range map[string]string{
		"/api/v1/tasks?at=soon":                         "At must be a time such as",
		"/api/v1/workers?at=2030-01-01T00:00:00Z":       "At is in the future.",
		"/api/v1/views?" + after(time.Second):           "are kept as they are now. Leave out at.",
		"/api/v1/tasks/task-29?" + after(5*time.Second): "",
	} {
		if w := visit(t, all, path); w.Code < 400 || w.Code >= 500 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// timesPast steps back from a live page and returns.
func timesPast(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	s.stop()
	s.options = func(o *web.Options) { withPast(t, o) }
	s.start()
	tb := newTab(t, b, s, "/tasks/task-29?"+after(88500*time.Millisecond))
	shown := func(at string) {
		tb.until(`document.querySelector("#past strong")?.innerText.includes("` + at + `")`)
	}
	shown("12:01:28.500")
	tb.want(`document.querySelector("#connection").textContent`, "Not live")
	tb.eval(`void (navigator.clipboard.writeText = async (text) => { window.copied = text })`)
	tb.press("Y")
	tb.until(`window.copied === location.href && new URL(window.copied).searchParams.get("at") === "2026-11-21T12:01:28.500000Z"`)
	tb.press("[")
	shown("12:01:28.000")
	tb.press("[")
	shown("12:01:27.000")
	tb.until(`document.querySelector("main").innerText.includes("Received")`)
	tb.press("]")
	shown("12:01:28.000")
	tb.click("#past-now")
	tb.until(`!document.querySelector("#past") && document.querySelector("#look-back") !== null && ` + live)
	tb.eval(`void (navigator.clipboard.writeText = async (text) => { window.copied = text })`)
	tb.press("Y")
	tb.until(`/^\d{4}-.+Z$/.test(new URL(window.copied).searchParams.get("at"))`)
	types := newTab(t, b, s, "/types?"+after(88500*time.Millisecond))
	types.until(`document.querySelector("#types-found")?.innerText.includes("until")`)
	types.press("[")
	types.until(`location.pathname.endsWith("/types") && document.querySelector("#past strong")?.innerText.includes("12:01:28.000")`)
	duplicates := newTab(t, b, s, "/duplicates?"+after(88500*time.Millisecond))
	duplicates.until(`document.querySelector("#past strong")?.innerText.includes("12:01:28.500")`)
	duplicates.until(`document.querySelector("main").innerText.includes("as they were")`)
	duplicates.press("[")
	duplicates.until(`location.pathname.endsWith("/duplicates") && document.querySelector("#past strong")?.innerText.includes("12:01:28.000")`)
}
