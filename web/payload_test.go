package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// marker is in every text that a task carries.
const marker = "sesame"

// secretive is a dashboard of tasks that carry the marker, with all that may show it.
func secretive(t *testing.T) *web.Handler {
	t.Helper()
	b := &backend{Cluster: testcluster.New(t, state.Options{}), health: newBackend(t, state.Options{}).health}
	var events []*state.Event
	for i, id := range []string{"task-01", "task-02"} {
		at := noon + int64(i)
		events = append(events,
			&state.Event{Kind: state.TaskReceived, Hostname: "celery@a", PID: 7, ID: id, Name: "shop.pay", Clock: int64(3*i + 1), Micros: at, ReceivedMicros: at,
				Args: "('" + marker + "',)", Kwargs: "{'to': '" + marker + "'}",
				Present: state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldClock | state.FieldPID | state.FieldTimestamp},
			&state.Event{Kind: state.TaskStarted, Hostname: "celery@a", PID: 7, ID: id, Clock: int64(3*i + 2), Micros: at, ReceivedMicros: at,
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp},
			&state.Event{Kind: []state.Kind{state.TaskFailed, state.TaskSucceeded}[i], Hostname: "celery@a", PID: 7, ID: id, Clock: int64(3*i + 3),
				Micros: at, ReceivedMicros: at, Result: "'" + marker + "'", Exception: "ValueError('" + marker + "')", Traceback: "Traceback of " + marker,
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | []state.Fields{state.FieldException | state.FieldTraceback, state.FieldResult}[i]})
	}
	b.Apply(events...)
	o := web.Options{Backend: b, Auth: doorkeeper{}}
	startWorkers(t, &o, &fakeResults{records: map[string]results.Result{"task-02": {TaskID: "task-02", Status: "SUCCESS", Value: []byte(`"` + marker + `"`)}}})
	return newWeb(t, o)
}

// addressesOf are all addresses that can be asked with GET, of the tasks above.
func addressesOf(t *testing.T, h *web.Handler) []string {
	t.Helper()
	var list []string
	err := chi.Walk(h.Routed(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodGet || pattern == "/ws" {
			return nil
		}
		for _, id := range []string{"task-01", "task-02", "celery@a"} {
			path := pattern
			if i := strings.IndexAny(path, "{*"); i >= 0 {
				rest := ""
				if j := strings.Index(path, "}"); j > i {
					rest = path[j+1:]
				}
				path = path[:i] + id + rest
			}
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(list, "/act/task?action=retry&id=task-01", "/act/publish?retry_of=task-01", "/act/task?action=retry&q=", "/tasks?cols=args,kwargs,result,exc,name",
		"/api/v1/tasks/export?format=jsonl", "/api/v1/tasks/export?cols=args,kwargs,result,exc", "/api/tasks", "/tasks/datatable?draw=1&start=0&length=10",
		"/api/v1/suggest?q=args:", "/api/v1/suggest?q=exc:", "/failures?show=all", "/api/v1/queues/celery?peek=10")
}

func TestThoseWhoMayNotSeePayloadsDoNot(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	seen := 0
	for _, path := range addressesOf(t, h) {
		if w := request(t, h, http.MethodGet, path, "", "As", "admin"); strings.Contains(w.Body.String(), marker) {
			seen++
		}
		for _, role := range []string{"viewer/", "operator/", "admin/"} {
			w := request(t, h, http.MethodGet, path, "", "As", role)
			if at := strings.Index(w.Body.String(), marker); at >= 0 {
				t.Errorf("%s as %s shows …%.200s", path, role, w.Body.String()[max(0, at-100):])
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d addresses show the marker to those who may see it: the test sees too little", seen)
	}
}

// Whether a query matches what is hidden must make no difference to what is answered.
func TestQueriesTellNothingOfHiddenPayloads(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	for _, q := range []string{"%s", "args:%s", "kwargs:%s", "result:%s", "exc:%s", "tb:%s", "-%s", "(state:failure or args:%s)", "state:failure %s"} {
		for _, path := range []string{"/api/v1/tasks?q=", "/api/v1/tasks/export?q=", "/api/v1/series?q=", "/tasks?q="} {
			var answers [2]string
			for i, word := range []string{marker, "absent"} {
				w := request(t, h, http.MethodGet, path+url.QueryEscape(strings.ReplaceAll(q, "%s", word)), "", "As", "viewer/")
				answers[i] = http.StatusText(w.Code) + strings.ReplaceAll(strings.ReplaceAll(w.Body.String(), word, "…"), w.Header().Get("Content-Disposition"), "")
			}
			if path != "/tasks?q=" && answers[0] != answers[1] {
				t.Errorf("%s%s tells a match:\n%.300s\n%.300s", path, q, answers[0], answers[1])
			}
			if path == "/tasks?q=" && strings.Count(answers[0], "task-0") != strings.Count(answers[1], "task-0") {
				t.Errorf("%s%s tells a match", path, q)
			}
		}
	}
	for i, word := range []string{marker, "absent"} {
		w := request(t, h, http.MethodPost, "/api/v1/bulk?dry_run=true", `{"action":"retry","q":"args:`+word+`"}`, "As", "operator/", "Content-Type", "application/json")
		if w.Code != http.StatusBadRequest {
			t.Errorf("%d: a dry run by args is answered %d %s", i, w.Code, w.Body)
		}
	}
}
