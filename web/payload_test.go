package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
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
			&state.Event{
				Kind: state.TaskReceived, Hostname: "celery@a", PID: 7, ID: id, Name: "shop.pay", Clock: int64(3*i + 1), Micros: at, ReceivedMicros: at,
				Args: "('" + marker + "',)", Kwargs: "{'to': '" + marker + "'}",
				Present: state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldClock | state.FieldPID | state.FieldTimestamp,
			},
			&state.Event{
				Kind: state.TaskStarted, Hostname: "celery@a", PID: 7, ID: id, Clock: int64(3*i + 2), Micros: at, ReceivedMicros: at,
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp,
			},
			&state.Event{
				Kind: []state.Kind{state.TaskFailed, state.TaskSucceeded}[i], Hostname: "celery@a", PID: 7, ID: id, Clock: int64(3*i + 3),
				Micros: at, ReceivedMicros: at, Result: "'" + marker + "'", Exception: "ValueError('" + marker + "')", Traceback: "Traceback of " + marker,
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | []state.Fields{state.FieldException | state.FieldTraceback, state.FieldResult}[i],
			})
	}
	b.Apply(events...)
	o := web.Options{Backend: b, Auth: doorkeeper{}, AppOutboxes: watched(t, secretiveOutbox{})}
	workers := startWorkers(t, &o, &fakeResults{records: map[string]results.Result{"task-02": {TaskID: "task-02", Status: "SUCCESS", Value: []byte(`"` + marker + `"`)}}})
	running := []any{map[string]any{"id": "task-03", "name": "shop.pay", "args": "('" + marker + "',)", "kwargs": "{}", "time_start": 1.0, "worker_pid": 7}}
	workers.answer("active", running)
	workers.answer("reserved", running)
	workers.answer("scheduled", []any{map[string]any{"eta": "2026-11-22T09:00:00+00:00", "priority": 6, "request": running[0]}})
	held, err := locks.New(locks.Options{Source: heldLocks(), Tasks: b})
	if err != nil {
		t.Fatal(err)
	}
	workers.commands.Locks = held
	h := newWeb(t, o)
	for path, body := range map[string]string{
		"/api/v1/publish": `{"name":"billing.charge","args":["` + marker + `"],"force":true}`,
		"/api/v1/views":   `{"name":"Card","query":"args:` + marker + `"}`,
		"/api/v1/release": `{"key":"` + secretKey + `","version":"` + versionOf(t, h, secretKey) + `","confirm":"shop.pay"}`,
	} {
		if w := request(t, h, http.MethodPost, path, body, "As", "admin", "Content-Type", "application/json"); w.Code >= http.StatusBadRequest {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	return h
}

// secretKey is the lock of a call, as celery-once makes it of its arguments.
const secretKey = "qo_shop.pay_card-" + marker

func heldLocks() *locks.Memory {
	m := locks.NewMemory(locks.DefaultPatterns(), time.Now)
	m.Set(secretKey, "1", time.Now().Add(time.Hour), true)
	return m
}

// versionOf is the version of a lock as the API tells it.
func versionOf(t *testing.T, h *web.Handler, key string) string {
	t.Helper()
	w := request(t, h, http.MethodGet, "/api/v1/locks/"+key, "", "As", "admin")
	var l struct{ Version string }
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || l.Version == "" {
		t.Fatalf("lock: %d %s", w.Code, w.Body)
	}
	return l.Version
}

// secretiveOutbox is an application's outbox of messages with the marker.
type secretiveOutbox struct{ lettersOutbox }

func (secretiveOutbox) Stats(context.Context) (outboxwatch.Stats, error) {
	return outboxwatch.Stats{
		Now: time.Now(), DeadLetters: history.Count{N: 1, Exact: true}, States: map[outboxwatch.State]history.Count{},
		Reasons: []outboxwatch.NameCount{{Name: "refused " + marker, N: 1}},
	}, nil
}

func (secretiveOutbox) Rows(_ context.Context, r outboxwatch.RowRequest) (outboxwatch.RowPage, error) {
	row := outboxwatch.Row{ID: 1, TaskID: "task-01", TaskName: "shop.pay", State: outboxwatch.Pending, CreatedAt: time.Now(), SchemaVersion: 1}
	if r.Payload {
		row.Args = json.RawMessage(`["` + marker + `"]`)
	}
	return outboxwatch.RowPage{Rows: []outboxwatch.Row{row}}, nil
}

func (secretiveOutbox) DeadLetters(_ context.Context, r outboxwatch.DeadLetterRequest) (outboxwatch.DeadLetterPage, error) {
	l := outboxwatch.DeadLetter{ID: 1, TaskID: "task-02", TaskName: "shop.pay", CreatedAt: time.Now(), DeadAt: time.Now(), Reason: "ValueError('" + marker + "')", SchemaVersion: 1}
	if r.Payload {
		l.Args = json.RawMessage(`["` + marker + `"]`)
	}
	return outboxwatch.DeadLetterPage{DeadLetters: []outboxwatch.DeadLetter{l}}, nil
}

func (s secretiveOutbox) ByTask(ctx context.Context, ids []string) (rows []outboxwatch.Row, dead []outboxwatch.DeadLetter, err error) {
	page, _ := s.DeadLetters(ctx, outboxwatch.DeadLetterRequest{})
	if slices.Contains(ids, "task-02") {
		dead = page.DeadLetters
	}
	return nil, dead, nil
}

// addressesOf are all addresses that can be asked with GET, of the tasks above.
func addressesOf(t *testing.T, h *web.Handler) []string {
	t.Helper()
	var list []string
	err := chi.Walk(h.Routed(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodGet || pattern == "/ws" {
			return nil
		}
		for _, id := range []string{"task-01", "task-02", "celery@a", "1", "celery", "shop"} {
			path := pattern
			if i := strings.IndexAny(path, "{*"); i >= 0 {
				rest := ""
				if j := strings.Index(path, "}"); j > i {
					rest = path[j+1:]
				}
				path = path[:i] + id + rest
			}
			if !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(list, "/act/task?action=retry&id=task-01", "/act/publish?retry_of=task-01", "/act/task?action=retry&q=", "/tasks?cols=args,kwargs,result,exc,name",
		"/api/v1/tasks/export?format=jsonl", "/api/v1/tasks/export?cols=args,kwargs,result,exc", "/api/tasks", "/tasks/datatable?draw=1&start=0&length=10",
		"/api/v1/suggest?q=args:", "/api/v1/suggest?q=exc:", "/api/v1/search?q=task", "/failures?show=all", "/api/v1/queues/celery?peek=10", "/types/billing.charge", "/api/v1/types/billing.charge",
		"/types/shop.pay", "/api/v1/types/shop.pay", "/tasks/task-01/compare?with=task-02", "/outbox?state=sent", "/outbox?state=done", "/api/v1/search?q=card",
		"/act/worker?method=ping&worker=celery@a", "/act/worker?method=shutdown&worker=celery@a", "/act/purge?queue=celery", "/act/release?key="+secretKey,
		"/workflows/task-01?tab=graph", "/api/task/info/task-01", "/api/tasks?sort_by=name", "/api/v1/audit/export?format=jsonl", "/act/dismiss?id=task-01")
}

// previews are forms and requests that show what they would do, with their bodies.
func previews() map[string]string {
	return map[string]string{
		"/act/task":                          "check=1&action=retry&id=task-01",
		"/act/task?":                         "check=1&action=retry&q=state:failure",
		"/act/publish":                       "check=1&retry_of=task-01",
		"/act/publish?":                      "check=1&name=billing.charge&args=[",
		"/act/dead-letters":                  "check=1&action=requeue&outbox=shop&id=1",
		"/act/outbox":                        "check=1&action=requeue&id=1",
		"/act/dismiss":                       "check=1&id=task-01",
		"/act/exclude":                       "check=1&name=shop.pay",
		"/api/v1/bulk?dry_run=true":          `{"action":"retry","q":"state:failure"}`,
		"/api/v1/retry/task-01?dry_run=true": `{}`,
		"/api/v1/control":                    `{"method":"ping","destination":["celery@a"]}`,
		"/tasks/datatable":                   "draw=1&start=0&length=10&search[value]=" + marker,
	}
}

func TestThoseWhoMayNotSeePayloadsDoNot(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	type ask struct{ method, path, body string }
	var all []ask
	for _, path := range addressesOf(t, h) {
		all = append(all, ask{http.MethodGet, path, ""})
	}
	for path, body := range previews() {
		all = append(all, ask{http.MethodPost, path, body})
	}
	var seen atomic.Int32
	work := make(chan ask)
	var askers sync.WaitGroup
	for range 16 { // some wait for workers
		askers.Go(func() {
			for a := range work {
				kind := formType
				if strings.HasPrefix(a.path, "/api/v1/") {
					kind = "application/json"
				}
				if a.method == http.MethodGet { // others would change what is read
					if w := request(t, h, a.method, a.path, a.body, "As", "admin"); strings.Contains(w.Body.String(), marker) {
						seen.Add(1)
					}
				}
				for _, role := range []string{"viewer/", "operator/", "admin/"} {
					w := request(t, h, a.method, a.path, a.body, "As", role, "Content-Type", kind)
					if at := strings.Index(strings.ReplaceAll(w.Body.String(), "search[value]="+marker, ""), marker); at >= 0 {
						t.Errorf("%s %s as %s shows …%.200s", a.method, a.path, role, w.Body.String()[max(0, at-100):])
					}
				}
			}
		})
	}
	for _, a := range all {
		work <- a
	}
	close(work)
	askers.Wait()
	if seen.Load() < 20 {
		t.Errorf("only %d addresses show the marker to those who may see it: the test sees too little", seen.Load())
	}
}

func TestTopicsShowNoPayloadsToThoseWhoMayNotSeeThem(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	seen := 0
	for _, path := range addressesOf(t, h) {
		for _, role := range []auth.Role{auth.Viewer, auth.Operator, auth.Admin} {
			hidden, _ := h.Snapshot(t.Context(), auth.Audience{Role: role}, path)
			if text := fmt.Sprint(hidden); strings.Contains(text, marker) {
				t.Errorf("%s as %s shows %.300s", path, role, text[max(0, strings.Index(text, marker)-100):])
			}
		}
		if full, _ := h.Snapshot(t.Context(), auth.Everything, path); strings.Contains(fmt.Sprint(full), marker) {
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("only %d topics show the marker to those who may see it: the test sees too little", seen)
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

// Who may publish tasks could else guess the arguments of others: a task with the same ones would be a duplicate.
func TestQueriesTellNoEqualArguments(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	for _, value := range []string{"any", "overlapping", "rerun", "skipped"} {
		for path, role := range map[string]string{"/api/v1/tasks?q=": "viewer/", "/api/v1/series?q=state:success+": "operator/"} {
			if w := request(t, h, http.MethodGet, path+"dup:"+value, "", "As", role); w.Code != http.StatusBadRequest {
				t.Errorf("%s of dup:%s: %d, want 400", path, value, w.Code)
			}
		}
	}
	if w := request(t, h, http.MethodGet, "/api/v1/tasks?q=dup:redelivery", "", "As", "viewer/"); w.Code != http.StatusOK {
		t.Errorf("dup:redelivery: %d, want 200", w.Code)
	}
}

// Flower's search says that a field is not for everybody, whether or not something matches.
func TestFlowersSearchTellsNothingOfHiddenPayloads(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	for _, field := range []string{"args", "kwargs", "result", "kwargs:to"} {
		for _, q := range []string{field + ":" + marker, "(name:pay OR " + field + ":" + marker + ")", field + ":absent"} {
			w := request(t, h, http.MethodGet, "/api/tasks?search="+url.QueryEscape(q), "", "As", "viewer/")
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "You may not search by args, kwargs and result.") {
				t.Errorf("/api/tasks with %s: %d %s", q, w.Code, w.Body)
			}
			w = request(t, h, http.MethodGet, "/tasks/datatable?draw=1&start=0&length=5&order[0][column]=0&search[value]="+url.QueryEscape(q), "", "As", "viewer/")
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"searchError": "You may not search`) {
				t.Errorf("/tasks/datatable with %s: %d %s", q, w.Code, w.Body)
			}
		}
	}
	if w := request(t, h, http.MethodGet, "/api/tasks?search=args:"+marker, "", "As", "viewer"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "task-01") {
		t.Errorf("/api/tasks of one who may see payloads: %d %s", w.Code, w.Body)
	}
}

// A view with a query for payloads is there for nobody who may not see them, and what they save is what they can see.
func TestViewsOfPayloadsAreHidden(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	save := func(method, path, body string) int {
		return request(t, h, method, "/api/v1/views"+path, body, "As", "operator/", "Content-Type", "application/json").Code
	}
	const hidden = "/1"
	if got := save(http.MethodPut, hidden, `{"name":"Card","query":"state:failure"}`); got != http.StatusNotFound {
		t.Errorf("change of a hidden view: %d, want 404", got)
	}
	if got := save(http.MethodDelete, hidden, ""); got != http.StatusNotFound {
		t.Errorf("deletion of a hidden view: %d, want 404", got)
	}
	for body, want := range map[string]int{
		`{"name":"card","query":"state:failure"}`: http.StatusBadRequest, // the name of the hidden one
		`{"name":"Mine","query":"args:x"}`:        http.StatusBadRequest,
		`{"name":"Own","query":"pay"}`:            http.StatusCreated,
	} {
		if got := save(http.MethodPost, "", body); got != want {
			t.Errorf("save %s: %d, want %d", body, got, want)
		}
	}
	list := request(t, h, http.MethodGet, "/api/v1/views", "", "As", "viewer/").Body.String()
	if !strings.Contains(list, "Own") || strings.Contains(list, "Card") {
		t.Errorf("views without payloads: %s", list)
	}
	if list := request(t, h, http.MethodGet, "/views", "", "As", "viewer").Body.String(); !strings.Contains(list, "Card") {
		t.Error("a view of payloads is hidden from those who may see them")
	}
}

// Nothing on a page is said to be missing that is hidden, and no link leads to a refusal.
func TestPagesOfThoseWhoMayNotSeePayloadsSaySo(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	for _, role := range []string{"viewer/", "operator/", "admin/"} {
		page := request(t, h, http.MethodGet, "/tasks/task-01", "", "As", role).Body.String()
		if !strings.Contains(page, "You may not see the arguments and the result.") || strings.Contains(page, "No task-sent or task-received event") {
			t.Errorf("the page of a task does not say to %s that its arguments are hidden", role)
		}
		page += request(t, h, http.MethodGet, "/tasks", "", "As", role).Body.String()
		for _, link := range find(`href="(/[^"#]*)"`, page) {
			w := request(t, h, http.MethodGet, html.UnescapeString(link), "", "As", role)
			if w.Code == http.StatusForbidden || strings.Contains(w.Body.String(), "annot search by") {
				t.Errorf("%s is led to %s, which is refused", role, link)
			}
		}
	}
}
