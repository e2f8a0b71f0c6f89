package web_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// treeEvent is an event of a task of the workflow r.
func treeEvent(kind state.Kind, id, parent, name string, second int) *state.Event {
	e := taskEvent(kind, id, second)
	if kind == state.TaskReceived {
		e.Name, e.RootID, e.ParentID = name, "r", parent
		e.Present |= state.FieldRootID
		if parent != "" {
			e.Present |= state.FieldParentID
		}
	}
	return e
}

// treeEvents are those of a workflow: a root that sends n tasks, of which the second sends one more.
func treeEvents(n int) []*state.Event {
	events := []*state.Event{treeEvent(state.TaskReceived, "r", "", "shop.order", 0), treeEvent(state.TaskStarted, "r", "", "", 1)}
	second := 2
	add := func(id, parent, name string) {
		for _, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
			events = append(events, treeEvent(kind, id, parent, name, second))
			second++
		}
	}
	for i := range n {
		add("part-"+strconv.Itoa(i), "r", "shop.price")
	}
	add("body", "part-1", "shop.total")
	return append(events, treeEvent(state.TaskSucceeded, "r", "", "", second))
}

func TestGraphOfAWorkflowFoldsAndOpens(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.Apply(treeEvents(30)...)
	h := dashboard(t, b)
	folded := visit(t, h, "/ops/workflows/r?tab=graph").Body.String()
	if n := strings.Count(folded, `class="box"`); n != 3 || !strings.Contains(folded, "30 × price") {
		t.Errorf("the graph has %d nodes, want 3", n)
	}
	open := find(`href="(/ops/workflows/r\?open=[^"#]*)`, folded)
	if len(open) == 0 {
		t.Fatal("no node can be opened")
	}
	if n := strings.Count(visit(t, h, open[0]).Body.String(), `class="box"`); n != 32 {
		t.Errorf("opened, the graph has %d nodes, want 32", n)
	}
	if !strings.Contains(folded, "no result backend") {
		t.Error("the page does not say that groups are unknown")
	}
}

// The result of a task that sent a group names its members, that of the body of a chord its header.
func TestGraphTakesGroupsFromStoredResults(t *testing.T) {
	t.Parallel()
	s := &fakeResults{records: map[string]results.Result{
		"r":    {TaskID: "r", Status: "SUCCESS", Groups: []results.Group{{ID: "group-1", Members: []string{"part-0", "part-1", "part-2"}}}},
		"body": {TaskID: "body", Status: "SUCCESS", GroupID: "group-1"},
	}}
	beside(t, s, func(t *testing.T, h http.Handler) {
		page := visit(t, h, "/ops/workflows/r?tab=graph").Body.String()
		if n := strings.Count(page, `class="arrow waits" d=`); n != 3 {
			t.Errorf("%d tasks lead to the body of the chord, want 3", n)
		}
	}, treeEvents(3)...)
}

func TestSpaceTimeOfTasksAndWorkflows(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.Apply(treeEvents(200)...)
	h := dashboard(t, b)
	for target, want := range map[string][]string{
		"/ops/workflows/r?tab=spacetime":            {`data-event="248"`, "Later tasks", "from=83"},
		"/ops/workflows/r?tab=spacetime&from=83":    {`data-event="200"`, "Earlier tasks", "Tasks 84 to 1"},
		"/ops/workflows/r?order=time&tab=spacetime": {"Distances follow time", "Later tasks"},
		"/ops/tasks/part-1":                         {`class="dot about"`, "task-succeeded of shop.price part-1", ">child</li>"},
		"/ops/tasks/part-1?order=time":              {"Distances follow time"},
		"/ops/tasks/r":                              {"20 of 200 are drawn"},
	} {
		page := visit(t, h, target).Body.String()
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s does not have %q", target, text)
			}
		}
	}
}

// The page of a task has a row for the one that sent it, those sent next to it, and those that it sent.
func TestTaskHasAWaterfallOfItsFamily(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.Apply(treeEvents(40)...)
	h := dashboard(t, b)
	for id, want := range map[string][]string{
		"part-1":  {"w-r", "w-part-0", "w-part-1", "w-part-2", "w-part-8", "w-body", "Of 39 other tasks of the same parent, 8 are drawn."},
		"part-39": {"w-r", "w-part-31", "w-part-38"},
		"r":       {"w-r", "w-part-0", "w-part-19", "Of 40 tasks that it sent, 20 are drawn."},
		"body":    {"w-part-1", `href="/ops/workflows/r">Whole workflow`},
	} {
		page := visit(t, h, "/ops/tasks/"+id).Body.String()
		for _, text := range want {
			if strings.HasPrefix(text, "w-") {
				text = `<tr id="` + text + `"`
			}
			if !strings.Contains(page, text) {
				t.Errorf("the page of %s does not have %q", id, text)
			}
		}
		if n := strings.Count(page, `<tr id="w-`); n > 30 {
			t.Errorf("the page of %s has %d rows", id, n)
		}
	}
	if page := visit(t, h, "/ops/tasks/task-03").Body.String(); strings.Contains(page, `<tr id="w-`) {
		t.Error("a task without a family has a waterfall")
	}
}

// BenchmarkWorkflow5000 serves the drawings of a workflow with 5,000 tasks: held in memory, and read from the history.
func BenchmarkWorkflow5000(b *testing.B) {
	b.Run("held", func(b *testing.B) { benchmarkWorkflow(b, state.Options{}) })
	b.Run("stored", func(b *testing.B) { benchmarkWorkflow(b, state.Options{MaxTasks: 100}) })
}

func benchmarkWorkflow(b *testing.B, o state.Options) {
	b.Helper()
	c := newBackend(b, o)
	c.Apply(treeEvents(4998)...)
	h, err := web.New(web.Options{Backend: c, Prefix: "/ops"})
	if err != nil {
		b.Fatal(err)
	}
	for _, query := range []string{"", "?open=r", "?tab=graph", "?tab=spacetime"} {
		b.Run(cmp.Or(strings.TrimPrefix(query, "?"), "waterfall"), func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/ops/workflows/r"+query, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
