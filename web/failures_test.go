package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/web"
)

// failureID is the group of all failures of newBackend.
func failureID() string {
	return fingerprint.Of("ValueError('<b>')", "Traceback: <b>").ID("billing.charge").String()
}

// afternoon shows b below /ops, half an hour after its events.
func dashboardAt(t *testing.T, b web.Backend) http.Handler {
	t.Helper()
	h, err := web.New(web.Options{
		Backend: b, Prefix: "/ops", Now: func() time.Time { return time.UnixMicro(noon).Add(30 * time.Minute).UTC() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// submit sends a form as the page at target does.
func submit(t *testing.T, h http.Handler, target string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestFailuresAreShown(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, newBackend(t, state.Options{}))
	group := "/ops/failures/" + failureID()
	tests := map[string]struct {
		target string
		topic  string
		says   []string
	}{
		"list": {"/ops/failures", "/failures", []string{
			`Open <span class="count">1</span>`, "<b>ValueError</b>", "<code>(&#39;&lt;b&gt;&#39;)</code>", `href="` + group + `"`,
			`href="/ops/tasks?q=failure%3A` + failureID() + `">10</a>`, `action="` + group + `/resolve"`,
			"10 in all, at most 10 in one hour, 10 in this one", `datetime="2026-11-21T12:00:05.000Z" data-age`,
		}},
		"none resolved": {"/ops/failures?show=resolved", "/failures?show=resolved", []string{"No resolved failures."}},
		"group": {group, "/failures/" + failureID(), []string{
			"<h1>ValueError</h1>", "ValueError(&#39;&lt;b&gt;&#39;)", "Traceback: &lt;b&gt;", ">All 10 tasks</a>", `id="t-task-28"`,
			`value="` + group + `"`,
		}},
		"overview":     {"/ops/", "/", []string{"Failing in the last hour", `href="` + group + `"`, `action="` + group + `/resolve"`}},
		"failed task":  {"/ops/tasks/task-01", "/tasks/task-01", []string{`<a href="` + group + `">9 similar failures</a>`}},
		"another task": {"/ops/tasks/task-00", "/tasks/task-00", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := visit(t, h, tc.target)
			page := w.Body.String()
			if w.Code != http.StatusOK || !slices.Equal(find(`data-topic="([^"]*)"`, page), []string{tc.topic}) {
				t.Errorf("%s answers %d with topic %q, want 200 with %q", tc.target, w.Code, find(`data-topic="([^"]*)"`, page), tc.topic)
			}
			for _, want := range tc.says {
				if !strings.Contains(page, want) {
					t.Errorf("%s does not say %q", tc.target, want)
				}
			}
			if tc.says == nil && strings.Contains(page, "similar failure") {
				t.Errorf("%s tells of failures", tc.target)
			}
		})
	}
}

func TestFailuresAreResolvedAndThatIsUndone(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	h := dashboardAt(t, b)
	resolve := "/ops/failures/" + failureID() + "/resolve"
	w := submit(t, h, resolve, url.Values{"return": {"/ops/failures?show=all"}})
	target := w.Header().Get("Location")
	if want := "/ops/failures?resolved=" + failureID() + "&show=all"; w.Code != http.StatusSeeOther || target != want {
		t.Fatalf("resolving leads with %d to %q, want 303 to %q", w.Code, target, want)
	}
	page := visit(t, h, target).Body.String()
	for _, want := range []string{"<strong>Resolved.</strong>", ">Undo</button>", ">Reopen</button>", `data-topic="/failures?show=all"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page after that does not say %q", want)
		}
	}
	if page := visit(t, h, "/ops/failures").Body.String(); !strings.Contains(page, "All failures are resolved.") {
		t.Error("the group is still open")
	}
	if page := visit(t, h, "/ops/").Body.String(); !strings.Contains(page, "No failures in the last hour.") {
		t.Error("the overview still shows it")
	}
	undo := find(`<form action="([^"]*/reopen)"`, page)
	w = submit(t, h, undo[0], url.Values{"return": {"/ops/failures?show=all&resolved=" + failureID()}})
	if got, want := w.Header().Get("Location"), "/ops/failures?show=all"; got != want {
		t.Errorf("undoing leads to %q, want %q", got, want)
	}
	if page := visit(t, h, target).Body.String(); strings.Contains(page, "Undo") || !strings.Contains(page, ">Resolve</button>") {
		t.Error("the group is still resolved")
	}
	submit(t, h, resolve, nil)
	b.happen(state.TaskReceived, "late", 3600)
	b.happen(state.TaskFailed, "late", 3601)
	if page := visit(t, h, "/ops/failures").Body.String(); !strings.Contains(page, "Came back") {
		t.Error("the group did not come back after another failure")
	}
}

func TestFailuresAreNotedWithinBounds(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, newBackend(t, state.Options{}))
	group := "/ops/failures/" + failureID()
	for name, tc := range map[string]struct {
		form url.Values
		code int
	}{
		"lines":           {url.Values{"note": {" one\r\ntwo "}, "assignee": {"ann"}, "return": {group}}, http.StatusSeeOther},
		"nothing":         {url.Values{"return": {group}}, http.StatusBadRequest},
		"long":            {url.Values{"note": {strings.Repeat("x", history.MaxFailureNote+1)}}, http.StatusBadRequest},
		"long assignee":   {url.Values{"assignee": {strings.Repeat("x", history.MaxAssignee+1)}}, http.StatusBadRequest},
		"two-line person": {url.Values{"assignee": {"ann\nbob"}}, http.StatusBadRequest},
	} {
		w := submit(t, h, group+"/note", tc.form)
		if w.Code != tc.code || tc.code == http.StatusSeeOther && w.Header().Get("Location") != group {
			t.Errorf("%s: answers %d with %q, want %d", name, w.Code, w.Header().Get("Location"), tc.code)
		}
	}
	page := visit(t, h, group).Body.String()
	for _, want := range []string{"<blockquote>one\ntwo</blockquote>", `href="/ops/failures?assignee=ann"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if page := visit(t, h, "/ops/failures?assignee=bob").Body.String(); strings.Contains(page, group) {
		t.Error("the failures of bob have that of ann")
	}
}

func TestFailuresAreSettledBySameSiteFormsOnly(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, newBackend(t, state.Options{}))
	resolve := "/ops/failures/" + failureID() + "/resolve"
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, resolve, nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a foreign page may resolve: %d", w.Code)
	}
	if w := visit(t, h, resolve); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET %s = %d, want 405", resolve, w.Code)
	}
	for _, target := range []string{"https://evil.example/ops/", "//evil.example/", "/other", `/ops/\evil`} {
		w := submit(t, h, resolve, url.Values{"return": {target}})
		if got, want := w.Header().Get("Location"), "/ops/?resolved="+failureID(); got != want {
			t.Errorf("%q leads to %q, want %q", target, got, want)
		}
	}
}

func TestFailuresThatAreNotThere(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, newBackend(t, state.Options{}))
	for target, want := range map[string]int{
		"/ops/failures/0123456789abcdef": http.StatusNotFound,
		"/ops/failures/nope":             http.StatusNotFound,
		"/ops/failures?show=new":         http.StatusBadRequest,
		"/ops/failures?cursor=x":         http.StatusBadRequest,
	} {
		if w := visit(t, h, target); w.Code != want || !strings.Contains(w.Body.String(), `href="/ops/failures"`) {
			t.Errorf("%s answers %d, want %d with a way on", target, w.Code, want)
		}
	}
	for _, id := range []string{"0123456789abcdef", "nope"} {
		if w := submit(t, h, "/ops/failures/"+id+"/resolve", nil); w.Code != http.StatusNotFound {
			t.Errorf("resolving %s answers %d, want 404", id, w.Code)
		}
	}
}

// unreadable is a backend whose store cannot be read.
type unreadable struct{ *backend }

func (b unreadable) History() view.History { return unreadableStore{b.backend.History()} }

type unreadableStore struct{ view.History }

var errUnreadable = errors.New("disk I/O error at /secret")

func (unreadableStore) FailureGroups(context.Context, history.FailureRequest) (history.FailurePage, error) {
	return history.FailurePage{}, errUnreadable
}

func (unreadableStore) FailureGroup(context.Context, fingerprint.ID, time.Time) (history.FailureGroup, error) {
	return history.FailureGroup{}, errUnreadable
}

func (unreadableStore) ResolveFailureGroup(context.Context, fingerprint.ID, time.Time) error {
	return errUnreadable
}

func TestFailuresOfAnUnreadableHistory(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, unreadable{newBackend(t, state.Options{})})
	group := "/ops/failures/" + failureID()
	for name, tc := range map[string]struct {
		answer *httptest.ResponseRecorder
		code   int
		says   string
	}{
		"list":     {visit(t, h, "/ops/failures"), http.StatusServiceUnavailable, "The history is unavailable."},
		"group":    {visit(t, h, group), http.StatusServiceUnavailable, "The history is unavailable"},
		"resolve":  {submit(t, h, group+"/resolve", nil), http.StatusServiceUnavailable, "The history is unavailable"},
		"overview": {visit(t, h, "/ops/"), http.StatusOK, "The history is unavailable"},
		"task":     {visit(t, h, "/ops/tasks/task-01"), http.StatusOK, "billing."},
	} {
		page := tc.answer.Body.String()
		if tc.answer.Code != tc.code || !strings.Contains(page, tc.says) || strings.Contains(page, "secret") {
			t.Errorf("%s answers %d, want %d saying %q without the cause", name, tc.answer.Code, tc.code, tc.says)
		}
	}
}

// away is a backend whose history answers nothing.
type away struct{ unreadable }

func (b away) Tasks(context.Context, history.TaskRequest) (history.TaskPage, error) {
	return history.TaskPage{}, errUnreadable
}

func TestATaskInMemoryIsShownWithoutHistory(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, away{unreadable{newBackend(t, state.Options{})}})
	w := visit(t, h, "/ops/tasks/task-01")
	if w.Code != http.StatusOK {
		t.Errorf("status %d, want 200", w.Code)
	}
	for _, want := range []string{"task-01", "The history is unavailable.", "This is what is in memory", "ValueError"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
