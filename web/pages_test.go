package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/state"
)

func TestPagesTellWhatTheClusterHolds(t *testing.T) {
	t.Parallel()
	h := dashboard(t, newBackend(t, state.Options{}))
	tests := map[string]struct {
		target string
		status int
		topic  string
		want   []string
	}{
		"overview": {"/ops/", 200, "/", []string{
			"ValueError(&#39;&lt;b&gt;&#39;)", "5 events rejected.", "Malformed messages", "Clocks ignored", "from_the_future",
		}},
		"tasks":           {"/ops/tasks", 200, "/tasks", []string{"30 tasks", "task-29"}},
		"tasks by state":  {"/ops/tasks?state=failure", 200, "/tasks?q=state%3Afailure", []string{"10 tasks", `value="state:failure"`}},
		"tasks by query":  {"/ops/tasks?q=state:failure+-id:task-01", 200, "/tasks?q=-id%3Atask-01+state%3Afailure", []string{"9 tasks", `value="state:failure -id:task-01"`}},
		"tasks by worker": {"/ops/tasks?worker=celery%40b", 200, "/tasks?q=worker%3Acelery%40b", []string{"No tasks match this query"}},
		"tasks, none by text": {"/ops/tasks?q=nope&state=FAILURE", 200, "/tasks?q=nope+state%3Afailure", []string{
			`<a href="/ops/tasks?q=state%3Afailure" data-swap>Without <code>nope</code></a> 10 tasks`, `value="nope state:failure"`,
		}},
		"tasks by name": {"/ops/tasks?sort=name", 200, "/tasks?sort=name", []string{
			"by “Task”; tasks without it are omitted", `href="/ops/tasks?sort=-name"`, `href="/ops/tasks?sort=worker"`,
		}},
		"tasks from Z to A": {"/ops/tasks?sort=-name", 200, "/tasks?sort=-name", []string{"by “Task” from Z to A", `<a href="/ops/tasks" `}},
		"tasks, sorted":     {"/ops/tasks?sort=started", 200, "/tasks?sort=started", []string{"oldest “Started” first; tasks without it are omitted"}},
		"tasks, columns":    {"/ops/tasks?cols=exc,id", 200, "/tasks?cols=exc%2Cid", []string{"ValueError(&#39;&lt;b&gt;&#39;)", "Usual columns"}},
		"tasks, wrong limit": {"/ops/tasks?limit=0&q=x", 400, "", []string{
			"<code>limit</code> must be a whole number from 1 to 500", `value="x"`,
		}},
		"tasks, wrong field": {"/ops/tasks?q=state:failure+nane:x&sort=started", 400, "", []string{
			`value="state:failure nane:x"`, `aria-invalid="true"`, "<code>state:failure <mark>nane</mark>:x</code>",
			`<a href="/ops/tasks?q=state%3Afailure+name%3Ax&amp;sort=started" data-swap>Use <code>name</code></a>`,
			"Tasks matching <code>state:failure</code>, until the query is corrected", "data-stale", "t-task-28",
		}},
		"tasks, wrong from the start": {"/ops/tasks?q=(", 400, "", []string{"Newest tasks, until the query is corrected", "t-task-29"}},
		"tasks, open parenthesis":     {"/ops/tasks?q=is:active+OR+(state:failure", 400, "", []string{"Tasks matching <code>is:active</code>"}},
		"tasks, long query": {"/ops/tasks?q=" + strings.Repeat("x", 2049), 400, "", []string{
			strings.Repeat("x", 2049), "at most 2048 characters",
		}},
		"tasks, wrong cursor":   {"/ops/tasks?cursor=x", 400, "", []string{"<code>cursor</code> must be a cursor"}},
		"tasks, wrong column":   {"/ops/tasks?cols=id,nope", 400, "", []string{"<code>cols</code> has no column"}},
		"tasks, wrong order":    {"/ops/tasks?sort=args", 400, "", []string{"<code>sort</code> must be one of"}},
		"tasks, other's params": {"/ops/tasks?utm=1", 200, "/tasks", []string{"30 tasks"}},
		"task": {"/ops/tasks/task-01", 200, "/tasks/task-01", []string{
			"billing.", "<b>charge</b>", "Traceback: &lt;b&gt;", "task-failed",
		}},
		"unknown task":           {"/ops/tasks/nope", 404, "", []string{"Task nope was not found", "All tasks"}},
		"workers":                {"/ops/workers", 200, "/workers", []string{"2 of 2 online", "celery@"}},
		"worker":                 {"/ops/workers/celery@a", 200, "/workers/celery@a", []string{"task-29", "All tasks"}},
		"worker with odd name":   {"/ops/workers/celery@b%2F1%2520%C3%BC", 200, "/workers/celery@b%2F1%2520%C3%BC", []string{"Online"}},
		"worker, slash left raw": {"/ops/workers/celery@b/1%2520%C3%BC", 200, "/workers/celery@b%2F1%2520%C3%BC", []string{"Online"}},
		"unknown worker":         {"/ops/workers/celery@nope", 404, "", []string{"Unknown worker", `href="/ops/workers/celery@a"`}},
		"unknown page":           {"/ops/nope", 404, "", []string{"This page does not exist"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := visit(t, h, tc.target)
			page := w.Body.String()
			if w.Code != tc.status {
				t.Errorf("status = %d, want %d", w.Code, tc.status)
			}
			if got := strings.Join(find(`<main [^>]*data-topic="([^"]*)"`, page), " "); got != tc.topic {
				t.Errorf("topic = %q, want %q", got, tc.topic)
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.ReplaceAll(page, "\u202f", " "), want) {
					t.Errorf("page does not say %q:\n%s", want, page)
				}
			}
		})
	}
}

func TestLinksOfAllPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	h := dashboard(t, newBackend(t, state.Options{}))
	queue, seen := []string{"/ops/"}, map[string]bool{"/ops/": true}
	for len(queue) > 0 {
		target := queue[0]
		queue = queue[1:]
		w := visit(t, h, target)
		if w.Code != http.StatusOK && w.Code != http.StatusSeeOther {
			t.Errorf("%s answers %d", target, w.Code)
		}
		// Lists lead to ever more lists: those of one condition are followed no further.
		if w.Header().Get("Content-Type") != "text/html; charset=utf-8" || strings.Contains(target, "?") {
			continue
		}
		for _, href := range find(`(?:href|src)="([^"#]+)[^"]*"`, w.Body.String()) {
			if strings.HasPrefix(href, "https://github.com/umbelhq/umbel/") { // the documentation
				continue
			}
			if !strings.HasPrefix(href, "/ops/") {
				t.Errorf("%s links outside the prefix: %s", target, href)
			}
			if !seen[href] {
				seen[href] = true
				queue = append(queue, href)
			}
		}
	}
	for _, want := range []string{
		"/ops/tasks/task-00", "/ops/workers/celery@b%2F1%2520%C3%BC", "/ops/api/v1/tasks/task-01", "/ops/tasks?q=state%3Afailure",
		"/ops/tasks?sort=-run", "/ops/views",
	} {
		if !seen[want] {
			t.Errorf("no page links to %s", want)
		}
	}
}

func TestPagesOfTasksMeetWithoutGapOrOverlap(t *testing.T) {
	t.Parallel()
	h := dashboard(t, newBackend(t, state.Options{}))
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("t-task-%02d", 29-i))
	}
	walk := func(target, direction string) (rows []string, last string) {
		for target != "" {
			page := visit(t, h, target).Body.String()
			part := find(`<tr id="(t-[^"]*)"`, page)
			if direction == "prev" {
				rows = append(part, rows...)
			} else {
				rows = append(rows, part...)
			}
			last = target
			target = strings.Join(find(`rel="`+direction+`" href="([^"]*)"`, page), "")
		}
		return rows, last
	}
	down, bottom := walk("/ops/tasks?limit=7", "next")
	if diff := cmp.Diff(want, down); diff != "" {
		t.Errorf("rows from the newest to the oldest (-want +got):\n%s", diff)
	}
	up, _ := walk(bottom, "prev")
	if diff := cmp.Diff(want, up); diff != "" {
		t.Errorf("rows from the oldest to the newest (-want +got):\n%s", diff)
	}
}

func TestFormsWithEmptyFieldsGetAShortAddress(t *testing.T) {
	t.Parallel()
	h := dashboard(t, newBackend(t, state.Options{}))
	for target, want := range map[string]string{
		"/ops/tasks?state=SUCCESS&state=RETRY&name=&worker=&q=": "/ops/tasks?q=state%3Aretry%2Csuccess",
		"/ops/tasks?q=":                 "/ops/tasks",
		"/ops/tasks?name=a&q=b&root=":   "/ops/tasks?q=b+name%3Aa",
		"/ops/tasks?q=&sort=-run&cols=": "/ops/tasks?sort=-run",
	} {
		w := visit(t, h, target)
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != want {
			t.Errorf("%s leads with %d to %q, want 303 to %q", target, w.Code, got, want)
		}
	}
}

func TestThemeOfTheVisitor(t *testing.T) {
	t.Parallel()
	h := dashboard(t, newBackend(t, state.Options{}))
	tests := map[string]struct {
		cookie, theme, pressed string
	}{
		"none":    {"", "", "system"},
		"light":   {"light", "light", "light"},
		"dark":    {"dark", "dark", "dark"},
		"unknown": {"pink", "", "system"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ops/tasks?q=1", nil)
			r.AddCookie(&http.Cookie{Name: "theme", Value: tc.cookie})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			page := w.Body.String()
			if got := strings.Join(find(`<html [^>]*data-theme="([^"]*)"`, page), ""); got != tc.theme {
				t.Errorf("theme = %q, want %q", got, tc.theme)
			}
			if got := find(`value="([a-z]+)" aria-pressed="true"`, page); !slices.Equal(got, []string{tc.pressed}) {
				t.Errorf("pressed = %q, want %q", got, tc.pressed)
			}
			if got := find(`name="return" value="([^"]*)"`, page); !slices.Equal(slices.Compact(got), []string{"/ops/tasks?q=1"}) {
				t.Errorf("way back = %q, want the page itself", got)
			}
		})
	}
}

func TestEveryPageSaysThatTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.health.Broker.Connected = false
	b.health.Broker.LastError = "connection refused"
	b.health.Broker.NextAttemptAt = time.UnixMicro(noon + 8_000_000)
	b.health.Broker.Attempts = 3
	h := dashboard(t, b)
	for _, target := range []string{"/ops/", "/ops/tasks", "/ops/tasks/task-01", "/ops/workers", "/ops/workers/celery@a", "/ops/nope"} {
		page := visit(t, h, target).Body.String()
		for _, want := range []string{
			"Broker unavailable.", "connection refused", "12:00:08.000", "after 3 failed attempts", `datetime="2026-11-21T12:00:00.000Z" data-age`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not say %q", target, want)
			}
		}
	}
}

func TestFreshInstallationShowsWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.Cluster = testcluster.New(t, state.Options{})
	page := visit(t, dashboard(t, b), "/ops/").Body.String()
	for _, want := range []string{"Waiting for the first task", `class="done"`, `data-copy="celery -A proj worker -E"`, `data-copy="task_send_sent_event = True"`} {
		if !strings.Contains(page, want) {
			t.Errorf("overview does not say %q", want)
		}
	}
	if page := visit(t, dashboard(t, newBackend(t, state.Options{})), "/ops/").Body.String(); strings.Contains(page, "Waiting for the first task") {
		t.Error("the checklist stays after tasks were seen")
	}
}

func TestUnknownTaskThatOthersName(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.Apply(&state.Event{
		Kind: state.TaskReceived, Hostname: "celery@a", PID: 40, ID: "child", Name: "billing.child", RootID: "gone", ParentID: "gone",
		Clock: 999, Micros: noon, ReceivedMicros: noon,
		Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldRootID | state.FieldParentID,
	})
	w := visit(t, dashboard(t, b), "/ops/tasks/gone")
	for _, want := range []string{"Other tasks refer to task gone", `<a href="/ops/tasks/child">billing.child</a>`} {
		if page := w.Body.String(); !strings.Contains(page, want) {
			t.Errorf("page does not say %q:\n%s", want, page)
		}
	}
	if w.Code != http.StatusNotFound {
		t.Errorf("status = %d, want 404", w.Code)
	}
}
