package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// repeatedCall is the group of billing.charge(1), which all tasks of newBackend are.
func repeatedCall(t *testing.T, b *backend) history.DuplicateKey {
	t.Helper()
	found, err := b.Duplicates(t.Context(), history.DuplicateRequest{Limit: 2})
	if err != nil || len(found.Groups) != 1 {
		t.Fatalf("%d groups, %v; want 1", len(found.Groups), err)
	}
	return found.Groups[0].Key
}

func TestDuplicatesAreShown(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	h := dashboardAt(t, b)
	key := repeatedCall(t, b)
	group := "/ops" + templates.DuplicatePath(key)
	tests := map[string]struct {
		target, topic string
		says          []string
	}{
		"list": {"/ops/duplicates", "/duplicates", []string{
			"1 group with 30 tasks among 30 stored tasks.", "<b>billing.charge</b>", "[1]</code>", `href="` + group + `"`,
			`href="/ops/tasks?q=dup%3A` + key.String() + `">30</a>`, `href="/ops/duplicates?sort=tasks"`,
		}},
		"filtered": {"/ops/duplicates?name=billing.charge&sort=tasks", "/duplicates?name=billing.charge&sort=tasks", []string{
			`href="` + group + `"`, `href="/ops/duplicates?name=billing.charge&amp;sort=tasks&amp;verdict=rerun"`,
			`href="/ops/duplicates?name=billing.charge"`,
		}},
		"none":  {"/ops/duplicates?verdict=skipped", "/duplicates?verdict=skipped", []string{"No group matches."}},
		"group": {group, templates.DuplicatePath(key), []string{"<b>charge</b>", ">All 30 tasks</a>", "Open tasks", `id="t-task-28"`, "What happened"}},
		"task":  {"/ops/tasks/task-28", "/tasks/task-28", []string{`<a href="` + group + `">29 other tasks with these arguments</a>`}},
		"rules": {"/ops/duplicates/rules", "/duplicates/rules", []string{"No fields are excluded"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := visit(t, h, tc.target)
			page := w.Body.String()
			if topics := find(`data-topic="([^"]*)"`, page); w.Code != http.StatusOK || !slices.Equal(topics, []string{tc.topic}) {
				t.Errorf("%s answers %d with topic %q, want 200 with %q", tc.target, w.Code, topics, tc.topic)
			}
			for _, want := range tc.says {
				if !strings.Contains(page, want) {
					t.Errorf("%s does not say %q", tc.target, want)
				}
			}
		})
	}
}

func TestATaskThatRepeatsNothingIsNotCalledADuplicate(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	e := taskEvent(state.TaskReceived, "alone", 200)
	e.Args = "(2,)"
	b.Apply(e)
	h := dashboardAt(t, b)
	if page := visit(t, h, "/ops/tasks/alone").Body.String(); strings.Contains(page, "/ops/duplicates/") {
		t.Error("the page of a task that is alone links to a group")
	}
	page := visit(t, h, "/ops/tasks").Body.String()
	for row := range strings.SplitSeq(page, `<tr id="`) {
		if strings.HasPrefix(row, "t-alone") && strings.Contains(row, "mark-files") {
			t.Error("the row of a task that is alone is marked")
		}
	}
	if !strings.Contains(page, "mark-files") {
		t.Error("the rows of tasks that ran again are not marked")
	}
}

func TestDuplicatesComeInPages(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	for i, args := range []string{"(2,)", "(3,)", "(2,)", "(3,)", "(3,)"} {
		e := taskEvent(state.TaskReceived, "more-"+string(rune('a'+i)), 200+i)
		e.Args = args
		b.Apply(e)
	}
	h := dashboardAt(t, b)
	for _, tc := range []struct {
		target string
		want   []string
	}{
		{"/ops/duplicates?limit=1", []string{"[3]", "[2]", "[1]"}},
		{"/ops/duplicates?limit=1&sort=tasks", []string{"[1]", "[3]", "[2]"}},
	} {
		var got []string
		for target := tc.target; target != "" && len(got) < 10; {
			page := visit(t, h, target).Body.String()
			got = append(got, find(`<code title="[^"]*">(\[\d\])</code>`, page)...)
			next := find(`rel="next" href="([^"]*)"`, page)
			if target = ""; len(next) > 0 {
				target = next[0]
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s leads to %q, want %q", tc.target, got, tc.want)
		}
	}
}

func TestDuplicatesThatAreNotThere(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, newBackend(t, state.Options{}))
	for target, want := range map[string]int{
		"/ops/duplicates/0123456789abcdef0123456789abcdef":  http.StatusNotFound,
		"/ops/duplicates/nope":                              http.StatusNotFound,
		"/ops/duplicates/task:":                             http.StatusNotFound,
		"/ops/duplicates/task:none/x":                       http.StatusNotFound,
		"/ops/duplicates/" + strings.Repeat("0", 32):        http.StatusNotFound,
		"/ops/duplicates?verdict=new":                       http.StatusBadRequest,
		"/ops/duplicates?sort=name":                         http.StatusBadRequest,
		"/ops/duplicates?cursor=x":                          http.StatusBadRequest,
		"/ops/duplicates?limit=0":                           http.StatusBadRequest,
		"/ops/duplicates?name=" + strings.Repeat("x", 2000): http.StatusBadRequest,
	} {
		if w := visit(t, h, target); w.Code != want || !strings.Contains(w.Body.String(), `href="/ops/duplicates"`) {
			t.Errorf("%s answers %d, want %d with a way on", target, w.Code, want)
		}
	}
}

// noDuplicates is a backend whose duplicates cannot be read.
type noDuplicates struct{ *backend }

func (noDuplicates) Duplicates(context.Context, history.DuplicateRequest) (view.DuplicatePage, error) {
	return view.DuplicatePage{}, errUnreadable
}

func (noDuplicates) DuplicateGroup(context.Context, history.DuplicateKey, int) (view.DuplicateGroup, error) {
	return view.DuplicateGroup{}, errUnreadable
}

func (b noDuplicates) History() view.History { return noRules{b.backend.History()} }

type noRules struct{ view.History }

func (noRules) DuplicateRules(context.Context) ([]history.DuplicateRule, error) {
	return nil, errUnreadable
}
func (noRules) MarkDuplicates(context.Context, []state.Task) error { return errUnreadable }

func TestDuplicatesOfAnUnreadableHistory(t *testing.T) {
	t.Parallel()
	h := dashboardAt(t, noDuplicates{newBackend(t, state.Options{})})
	for name, tc := range map[string]struct {
		answer *httptest.ResponseRecorder
		code   int
		says   string
	}{
		"list":  {visit(t, h, "/ops/duplicates"), http.StatusServiceUnavailable, "The history is unavailable."},
		"group": {visit(t, h, "/ops/duplicates/"+strings.Repeat("1", 32)), http.StatusServiceUnavailable, "The history is unavailable"},
		"rules": {visit(t, h, "/ops/duplicates/rules"), http.StatusServiceUnavailable, "The history is unavailable"},
		"task":  {visit(t, h, "/ops/tasks/task-01"), http.StatusOK, "billing."},
		"tasks": {visit(t, h, "/ops/tasks"), http.StatusOK, "billing."},
	} {
		page := tc.answer.Body.String()
		if tc.answer.Code != tc.code || !strings.Contains(page, tc.says) || strings.Contains(page, "secret") {
			t.Errorf("%s answers %d, want %d saying %q without the cause", name, tc.answer.Code, tc.code, tc.says)
		}
	}
}

func TestAGroupOfOneTaskHasAnAddress(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	const id = "odd/../id?é%2F"
	for _, e := range []*state.Event{
		taskEvent(state.TaskReceived, id, 200), taskEvent(state.TaskStarted, id, 201), taskEvent(state.TaskReceived, id, 260),
	} {
		e.Args = "(<Order 7>,)" // cannot be compared
		b.Apply(e)
	}
	h := dashboardAt(t, b)
	page := visit(t, h, "/ops/duplicates?verdict=redelivery").Body.String()
	links := find(`<a class="open call" href="([^"]*)"`, page)
	if want := "/ops/duplicates/task:" + url.PathEscape(id); !slices.Equal(links, []string{want}) {
		t.Fatalf("groups %q, want %q", links, want)
	}
	w := visit(t, h, links[0])
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "(&lt;Order 7&gt;,)") || !strings.Contains(w.Body.String(), `data-topic="`+links[0][len("/ops"):]+`"`) {
		t.Errorf("%s answers %d", links[0], w.Code)
	}
}
