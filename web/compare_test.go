package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// failedOrder is a task that failed, of another order than those of newBackend.
func failedOrder() []*state.Event {
	e := taskEvent(state.TaskReceived, "odd/one", 1000)
	e.Args = "(42,)"
	return []*state.Event{e, taskEvent(state.TaskStarted, "odd/one", 1001), taskEvent(state.TaskFailed, "odd/one", 1005)}
}

func TestTasksAreCompared(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.Apply(failedOrder()...)
	h := dashboard(t, b)
	w := visit(t, h, "/ops/tasks/odd%2Fone/compare")
	const with = "/ops/tasks/odd%2Fone/compare?with=task-27" // the last success before it
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != with {
		t.Fatalf("status %d, Location %q, want %q", w.Code, w.Header().Get("Location"), with)
	}
	page := visit(t, h, with).Body.String()
	for _, want := range []string{"args[0]", "<mark>42</mark>", "<mark>1</mark>", "ValueError", "this one 4 times as long", `data-topic="/tasks/odd%2Fone/compare?with=task-27"`} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %q", want)
		}
	}
	tests := map[string]struct {
		path, want string
		code       int
	}{
		"unknown task":     {"/ops/tasks/nobody/compare", "Unknown task", http.StatusNotFound},
		"unknown other":    {"/ops/tasks/odd%2Fone/compare?with=nobody", "Not retained.", http.StatusOK},
		"nothing before":   {"/ops/tasks/task-00/compare", "No success before it.", http.StatusOK},
		"other success":    {"/ops/tasks/task-01/compare?with=task-00", "Change sides", http.StatusOK},
		"itself":           {"/ops/tasks/odd%2Fone/compare?with=odd%2Fone", "", http.StatusSeeOther},
		"a task's own":     {"/ops/tasks/odd%2Fone", "Compare with the last success", http.StatusOK},
		"rank of a task":   {"/ops/tasks/odd%2Fone", "It ran for 4.0\u202fs: slower than 100\u202f% of the last 20.", http.StatusOK},
		"a task under way": {"/ops/tasks/task-02", "It has not ended.", http.StatusOK},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := visit(t, h, tt.path)
			if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("status %d, want %d with %q", w.Code, tt.code, tt.want)
			}
		})
	}
}

func TestComparisonsHideArguments(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.Apply(failedOrder()...)
	h := newWeb(t, web.Options{Backend: b, Auth: viewer{}})
	const path = "/tasks/odd%2Fone/compare?with=task-27"
	argument := regexp.MustCompile(`(?s)<main.*>[^<]*\b42\b`) // in a text, not in the address of an asset
	if page := visit(t, h, path).Body.String(); argument.MatchString(page) || !strings.Contains(page, "You may not see the arguments.") {
		t.Error("the arguments are shown to those who may not see them")
	}
	if page := visit(t, newWeb(t, web.Options{Backend: b}), path).Body.String(); !argument.MatchString(page) {
		t.Error("the arguments are not shown to others")
	}
}

func TestComparisonsInThePast(t *testing.T) {
	t.Parallel()
	o := web.Options{}
	withPast(t, &o)
	h := newWeb(t, o)
	w := visit(t, h, "/tasks/task-04/compare?"+after(60e9))
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther || to.Query().Get("with") != "task-03" || to.Query().Get("at") == "" {
		t.Fatalf("status %d, Location %q", w.Code, w.Header().Get("Location"))
	}
	if w := visit(t, h, to.RequestURI()); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}
