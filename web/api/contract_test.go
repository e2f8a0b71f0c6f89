package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/api"
)

// asked is a request and the status that it leads to.
type asked struct {
	status int
	target string
	body   string
	header []string // names and values, alternating
}

// asking has, by operation, a request for each documented status that is not common to all operations. The first one
// is all right.
func asking(group, call string) map[string][]asked {
	const forced = `{"name":"shop.pay","args":[1],"kwargs":{"a":{"b":null}},"countdown":1.5,"priority":3,"force":true}`
	key := func(k string) []string { return []string{"Idempotency-Key", k} }
	return map[string][]asked{
		"list-tasks":       {{200, "/tasks?q=name:shop.*&sort=-received&limit=2&state=SUCCESS&state=FAILURE", "", nil}},
		"export-tasks":     {{200, "/tasks/export?cols=id,name", "", nil}, {200, "/tasks/export?format=jsonl", "", nil}, {400, "/tasks/export?limit=1", "", nil}},
		"get-task":         {{200, "/tasks/" + taskID, "", nil}, {200, "/tasks/" + failedID, "", nil}, {404, "/tasks/none", "", nil}},
		"list-task-events": {{200, "/tasks/" + taskID + "/events", "", nil}, {404, "/tasks/none/events", "", nil}},
		"suggest":          {{200, "/suggest?q=state:fa&at=8", "", nil}},
		"search":           {{200, "/search?q=pay", "", nil}},
		"list-views":       {{200, "/views", "", nil}},
		"save-view": {
			{201, "/views", `{"name":"one","query":"run:>2s"}`, nil},
			{200, "/views", `{"name":"ONE"}`, nil},
			{400, "/views", `{"Name":"two"}`, nil},
			{400, "/views", `{"name":"two","colour":"red"}`, nil},
		},
		"get-view":        {{200, "/views/1", "", nil}, {404, "/views/99", "", nil}},
		"change-view":     {{200, "/views/1", `{"name":"one","cols":"id"}`, nil}, {404, "/views/99", `{"name":"x"}`, nil}, {400, "/views/1", `{"name":""}`, nil}},
		"delete-view":     {{204, "/views/1", "", nil}, {404, "/views/99", "", nil}},
		"list-marks":      {{200, "/marks?since=-7d&limit=1", "", nil}, {400, "/marks?since=x", "", nil}},
		"add-mark":        {{201, "/marks", `{"text":"v1"}`, nil}, {400, "/marks", `{"text":" "}`, nil}},
		"delete-mark":     {{204, "/marks/1", "", nil}, {404, "/marks/99", "", nil}},
		"list-failures":   {{200, "/failures?show=all", "", nil}},
		"get-failure":     {{200, "/failures/" + group, "", nil}, {404, "/failures/none", "", nil}},
		"resolve-failure": {{200, "/failures/" + group + "/resolve", "", nil}, {404, "/failures/none/resolve", "", nil}},
		"note-failure": {
			{200, "/failures/" + group + "/note", `{"note":"known","assignee":"ann"}`, nil},
			{404, "/failures/none/note", `{"note":"x"}`, nil},
			{400, "/failures/" + group + "/note", `{"node":"x"}`, nil},
		},
		"reopen-failure":       {{200, "/failures/" + group + "/reopen", "", nil}, {404, "/failures/none/reopen", "", nil}},
		"list-schedules":       {{200, "/schedules", "", nil}},
		"list-workflows":       {{200, "/workflows?state=running&name=shop.add&limit=1", "", nil}, {200, "/workflows", "", nil}},
		"export-workflow":      {{200, "/workflows/export?root=" + taskID, "", nil}, {200, "/workflows/export?format=otlp&root=" + taskID, "", nil}, {404, "/workflows/export?root=none", "", nil}},
		"export-trace":         {{200, "/trace?q=id:" + taskID, "", nil}, {200, "/trace?workflow=" + taskID, "", nil}, {404, "/trace?workflow=none", "", nil}, {400, "/trace?since=x", "", nil}},
		"get-workflow":         {{200, "/workflows/" + taskID, "", nil}, {404, "/workflows/none", "", nil}},
		"list-duplicates":      {{200, "/duplicates?verdict=rerun&name=shop.add&limit=1", "", nil}, {200, "/duplicates?sort=tasks", "", nil}},
		"get-duplicate":        {{200, "/duplicates/" + call, "", nil}, {200, "/duplicates/" + call + "?tasks=1", "", nil}, {404, "/duplicates/none", "", nil}},
		"list-duplicate-rules": {{200, "/duplicates/rules", "", nil}},
		"exclude-fields": {
			{200, "/exclude", `{"name":"shop.add","exclude":["[0]","order.at"]}`, nil},
			{200, "/exclude?dry_run=true", `{"name":"shop.add","exclude":[]}`, nil},
			{400, "/exclude", `{"name":"shop.add","exclude":["a..b"]}`, nil},
			{400, "/exclude", `{"name":"shop.add"}`, nil},
			{400, "/exclude", `{"name":"","exclude":[]}`, nil},
		},
		"get-task-type":   {{200, "/types/shop.add?last=30d", "", nil}, {404, "/types/none", "", nil}},
		"list-task-types": {{200, "/types?last=7d&sort=-failed", "", nil}},
		"get-series":      {{200, "/series?from=-24h&group=name", "", nil}, {200, "/series?q=valueerror", "", nil}},
		"list-workers":    {{200, "/workers?status=online&limit=1", "", nil}, {400, "/workers?cursor=!", "", nil}},
		"get-worker":      {{200, "/workers/celery@w1", "", nil}, {404, "/workers/none", "", nil}},
		"inspect-worker": {
			{200, "/inspect/celery@w1?refresh=true", "", nil}, {200, "/inspect/" + url.PathEscape(oddName), "", nil}, {404, "/inspect/none", "", nil},
		},
		"list-methods": {{200, "/methods", "", nil}},
		"get-topology": {{200, "/topology", "", nil}},

		"audit-idempotency": {{200, "/idempotency/audit", "", nil}},
		"list-queues":       {{200, "/queues?hidden=true&limit=1", "", nil}, {400, "/queues?limit=501", "", nil}},
		"get-queue":         {{200, "/queues/mail?peek=20", "", nil}, {404, "/queues/none", "", nil}},
		"get-overview":      {{200, "/overview", "", nil}},
		"get-status":        {{200, "/status", "", nil}},
		"get-openapi":       {{200, "/openapi.json", "", nil}},
		"get-result":        {{200, "/results/" + taskID, "", nil}, {404, "/results/none", "", nil}},
		"get-retry":         {{200, "/retry/" + taskID, "", nil}, {200, "/retry/" + failedID, "", nil}, {404, "/retry/none", "", nil}},
		"publish-task": {
			{202, "/publish", forced, key("publish-task")},
			{422, "/publish", `{"name":"other","force":true}`, key("publish-task")},
			{200, "/publish?dry_run=true", forced, nil},
			{400, "/publish", `{"nme":"x"}`, nil},
			{404, "/publish", `{"name":"shop.pya","queue":"mail"}`, nil},
			{409, "/publish", `{"name":"shop.add","queue":"none"}`, nil},
		},
		"retry-task": {
			{202, "/retry/" + failedID, `{"args":[],"kwargs":{},"force":true}`, key("retry-task")},
			{422, "/retry/" + failedID, `{"args":[2],"kwargs":{},"force":true}`, key("retry-task")},
			{200, "/retry/" + failedID + "?dry_run=true", `{"args":[],"kwargs":{},"force":true}`, nil},
			{404, "/retry/none", `{}`, nil},
			{409, "/retry/" + failedID, `{}`, nil},
			{400, "/retry/" + failedID, `{"args":7,"kwargs":{}}`, nil},
		},
		"act-on-tasks": {
			{202, "/bulk", `{"action":"revoke","ids":["` + oddJSON + `"]}`, key("act-on-tasks")},
			{422, "/bulk", `{"action":"revoke","q":"","cap":2}`, key("act-on-tasks")},
			{200, "/bulk?dry_run=true", `{"action":"revoke","q":""}`, nil},
			{409, "/bulk", `{"action":"revoke","q":"name:none"}`, nil},
			{400, "/bulk", `{"action":"revoke"}`, nil},
		},
		"forget-workers": {
			{200, "/forget", `{"workers":["celery@left"]}`, nil},
			{400, "/forget", `{"workers":[]}`, nil},
			{404, "/forget", `{"workers":["none"]}`, nil},
			{409, "/forget", `{"workers":["celery@w1"]}`, nil},
		},
		"dismiss-task": {
			{200, "/dismiss/" + url.PathEscape(oddID), "", nil}, {404, "/dismiss/none", "", nil}, {409, "/dismiss/" + taskID, "", nil},
		},
		"reinstate-task": {
			{200, "/reinstate/" + url.PathEscape(oddID), "", nil}, {404, "/reinstate/none", "", nil}, {409, "/reinstate/" + taskID, "", nil},
		},
		"control-workers": {
			{202, "/control?wait=20s", `{"method":"ping","workers":["celery@w1"]}`, key("control-workers")},
			{422, "/control", `{"method":"heartbeat"}`, key("control-workers")},
			{200, "/control?dry_run=true", `{"method":"shutdown"}`, nil},
			{404, "/control", `{"method":"ping","workers":["none"]}`, nil},
			{400, "/control", `{"method":"pool_grow","arguments":{"m":1}}`, nil},
		},
		"purge-queue": {
			{202, "/purge", `{"queue":"spare","confirm":"spare"}`, key("purge-queue")},
			{422, "/purge", `{"queue":"mail","confirm":"mail"}`, key("purge-queue")},
			{200, "/purge?dry_run=true", `{"queue":"mail"}`, nil},
			{404, "/purge", `{"queue":"none","confirm":"none"}`, nil},
			{400, "/purge", `{"queue":"mail"}`, nil},
		},
		"requeue-dead-letters": {
			{202, "/app-outboxes/shop/dead-letters/requeue", `{"ids":[1,3]}`, key("requeue-dead-letters")},
			{422, "/app-outboxes/shop/dead-letters/requeue", `{"ids":[2]}`, key("requeue-dead-letters")},
			{200, "/app-outboxes/shop/dead-letters/requeue?dry_run=true", `{"all":true}`, nil},
			{409, "/app-outboxes/shop/dead-letters/requeue", `{"ids":[3]}`, nil},
			{404, "/app-outboxes/none/dead-letters/requeue", `{"all":true}`, nil},
			{400, "/app-outboxes/shop/dead-letters/requeue", `{}`, nil},
		},
		"purge-dead-letters": {
			{202, "/app-outboxes/shop/dead-letters/purge", `{"all":true,"name":"shop.*","cap":500,"confirm":"shop"}`, key("purge-dead-letters")},
			{422, "/app-outboxes/shop/dead-letters/purge", `{"ids":[2],"confirm":"shop"}`, key("purge-dead-letters")},
			{200, "/app-outboxes/shop/dead-letters/purge?dry_run=true", `{"ids":[1]}`, nil},
			{409, "/app-outboxes/shop/dead-letters/purge", `{"ids":[3],"confirm":"shop"}`, nil},
			{404, "/app-outboxes/none/dead-letters/purge", `{"all":true,"confirm":"none"}`, nil},
			{400, "/app-outboxes/shop/dead-letters/purge", `{"ids":[1]}`, nil},
		},
		"list-locks": {{200, "/locks?mark=stuck&kind=idempotent&name=shop.pay", "", nil}, {200, "/locks", "", nil}},
		"get-lock":   {{200, "/locks/" + url.PathEscape(heldKey), "", nil}, {404, "/locks/none", "", nil}},
		"release-lock": {
			{202, "/release?wait=20s", heldJSON(heldVersion, "shop.pay"), key("release-lock")},
			{422, "/release", heldJSON(heldVersion, "shop.pya"), key("release-lock")},
			{200, "/release?dry_run=true", `{"key":"` + keptKey + `"}`, nil},
			{404, "/release", `{"key":"none"}`, nil},
			{409, "/release", `{"key":"` + keptKey + `","version":"0","confirm":"shop.pay"}`, nil},
			{400, "/release", `{"key":"` + keptKey + `","version":"` + heldVersion + `"}`, nil},
		},
		"list-commands":     {{200, "/commands?state=done&state=dead&kind=control&limit=3", "", nil}, {200, "/commands", "", nil}},
		"get-command":       {{200, "/commands/1", "", nil}, {404, "/commands/99999", "", nil}},
		"requeue-commands":  {{200, "/commands/requeue", `{"ids":[1,2]}`, nil}, {400, "/commands/requeue", `{"ids":[]}`, nil}},
		"discard-commands":  {{200, "/commands/discard", `{"ids":[1,2]}`, nil}, {400, "/commands/discard", `{"id":[1]}`, nil}},
		"list-peers":        {{200, "/peers", "", nil}},
		"get-outbox":        {{200, "/outbox", "", nil}},
		"get-task-outbox":   {{200, "/tasks/" + taskID + "/outbox", "", nil}, {404, "/tasks/nope/outbox", "", nil}},
		"list-app-outboxes": {{200, "/app-outboxes", "", nil}},
		"list-app-outbox-rows": {
			{200, "/app-outboxes/shop/rows?state=due&name=shop.*&limit=2", "", nil},
			{404, "/app-outboxes/none/rows", "", nil},
			{503, "/app-outboxes/shop/rows?name=away", "", nil},
			{400, "/app-outboxes/shop/rows?cursor=none", "", nil},
			{400, "/app-outboxes/shop/rows?state=x", "", nil},
		},
		"list-dead-letters": {{200, "/app-outboxes/shop/dead-letters", "", nil}, {404, "/app-outboxes/none/dead-letters", "", nil}},
		"list-audit":        {{200, "/audit?limit=2", "", nil}, {200, "/audit?kind=export&outcome=accepted&actor=ada&from=-1h&to=now", "", nil}, {400, "/audit?from=x", "", nil}},
		"export-audit":      {{200, "/audit/export", "", nil}, {400, "/audit/export?kind=x", "", nil}},
	}
}

// Keys of locks that do not expire, and their version.
const (
	heldKey     = "lock:celery:exec:shop.pay:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	keptKey     = "lock:celery:exec:shop.pay:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
	heldVersion = "f7b3ad2b797fc196"
)

// heldJSON asks to release the lock at heldKey.
func heldJSON(version, confirm string) string {
	return `{"key":"` + heldKey + `","version":"` + version + `","confirm":"` + confirm + `"}`
}

// oddJSON is oddID in JSON.
const oddJSON = `odd/../id?é%2F \"<x>&`

// TestEveryAnswerIsDocumented makes each operation answer with each status that it has in the document, and checks the
// answers against it.
func TestEveryAnswerIsDocumented(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.ops.Results = resultBackend{results.Result{TaskID: taskID, Status: "SUCCESS", Value: json.RawMessage(`{"a":[1]}`)}}
	f.answer(t)
	f.run(t)
	f.broker.Declare("spare")
	f.leave("celery@left")
	f.put(t, "mail", `[[1],{},{}]`)
	until(t, "queues are known", func() bool { return get(t, f, "/queues/mail").Code == http.StatusOK })
	c := newContract(t, f)
	h := served(t, f.back, f.ops, outboxes(t))
	cases := asking(failed(), repeated(t, f.back.(*backend)))
	for _, name := range tried(cases) {
		for i, a := range cases[name] {
			if w := c.ask(t, name, h, a); i == 0 && w.Code < http.StatusBadRequest {
				c.askWrongly(t, name, h, a)
			}
		}
	}
	c.askInVain(t, cases)
	for _, name := range slices.Sorted(maps.Keys(c.operations)) {
		for _, status := range c.operations[name].statuses {
			if common := status == http.StatusInternalServerError; !common && !c.seen[name][status] {
				t.Errorf("%s has %d in the document, and nothing leads to it", name, status)
			}
		}
	}
}

// tried are the operations in order, with those that delete something last.
func tried(cases map[string][]asked) []string {
	last := []string{"get-view", "change-view", "delete-view", "list-commands", "get-command", "export-audit", "list-audit"}
	list := slices.DeleteFunc(slices.Sorted(maps.Keys(cases)), func(name string) bool { return slices.Contains(last, name) })
	return append(list, last...)
}

// contract is what the document says.
type contract struct {
	validator  validator.Validator
	operations map[string]operation
	seen       map[string]map[int]bool
}

// operation is one of the document.
type operation struct {
	method   string
	body     bool
	statuses []int
}

// base is where the API is that open returns.
const base = "/ops/api/v1"

func newContract(t *testing.T, h http.Handler) *contract {
	t.Helper()
	text := get(t, h, "/openapi.json").Body.Bytes()
	c := &contract{operations: map[string]operation{}, seen: map[string]map[int]bool{}}
	var d struct {
		Paths map[string]map[string]struct {
			ID        string                     `json:"operationId"`
			Body      any                        `json:"requestBody"`
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, methods := range d.Paths {
		for method, op := range methods {
			o := operation{method: strings.ToUpper(method), body: op.Body != nil}
			for status := range op.Responses {
				n, err := strconv.Atoi(status)
				if err != nil {
					t.Errorf("%s has a response for %s", op.ID, status)
				}
				o.statuses = append(o.statuses, n)
			}
			c.operations[op.ID], c.seen[op.ID] = o, map[int]bool{}
		}
	}
	// The document allows fields to come. Today there must be none.
	strict := bytes.ReplaceAll(text, []byte(`"additionalProperties":true`), []byte(`"additionalProperties":false`))
	document, err := libopenapi.NewDocument(strict)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []error
	if c.validator, wrong = validator.NewValidator(document); len(wrong) > 0 {
		t.Fatal(errors.Join(wrong...))
	}
	if ok, wrong := c.validator.ValidateDocument(); !ok {
		t.Errorf("the document is no OpenAPI: %v", wrong)
	}
	return c
}

// ask makes a request, and checks the answer.
func (c *contract) ask(t *testing.T, name string, h http.Handler, a asked) *httptest.ResponseRecorder {
	t.Helper()
	op, ok := c.operations[name]
	if !ok {
		t.Fatalf("there is no operation %s", name)
	}
	made := func() *http.Request {
		r := httptest.NewRequest(op.method, base+a.target, strings.NewReader(a.body))
		if op.body {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i+1 < len(a.header); i += 2 {
			r.Header.Set(a.header[i], a.header[i+1])
		}
		return r
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, made())
	if w.Code != a.status || !slices.Contains(op.statuses, w.Code) {
		t.Errorf("%s: %s %.80s = %d %.300s, want %d; documented are %v", name, op.method, a.target, w.Code, w.Body, a.status, op.statuses)
		return w
	}
	c.seen[name][w.Code] = true
	if w.Code < http.StatusBadRequest {
		if ok, wrong := c.validator.ValidateHttpRequest(made()); !ok {
			t.Errorf("%s: %s %s is not as documented, and is answered: %v", name, op.method, a.target, wrong)
		}
	}
	answer := w.Result()
	if ok, wrong := c.validator.ValidateHttpResponse(made(), answer); !ok {
		t.Errorf("%s: the answer %d %s is not as documented: %v", name, w.Code, w.Body, wrong)
	}
	return w
}

// served is the API as a dashboard serves it.
func served(t *testing.T, b web.Backend, ops *command.Service, apps *outboxwatch.Watcher) http.Handler {
	t.Helper()
	o := web.Options{Backend: b, Commands: ops, AppOutboxes: apps, Prefix: "/ops", Auth: asSaid{}}
	if then, ok := b.(interface {
		At(ctx context.Context, at time.Time) (*view.Past, error)
	}); ok {
		o.Past = then.At
	}
	h, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// askWrongly makes a request that is all right wrong in ways that many operations have in common.
func (c *contract) askWrongly(t *testing.T, name string, h http.Handler, a asked) {
	t.Helper()
	op := c.operations[name]
	with := func(status int, header ...string) asked {
		return asked{status, a.target, a.body, append(slices.Clone(header), a.header...)}
	}
	c.ask(t, name, h, with(http.StatusUnauthorized, "As", "nobody"))
	if slices.Contains(op.statuses, http.StatusForbidden) {
		c.ask(t, name, h, with(http.StatusForbidden, "As", "viewer"))
	}
	if slices.Contains(op.statuses, http.StatusNotAcceptable) {
		c.ask(t, name, h, with(http.StatusNotAcceptable, "Accept", "image/png"))
	}
	if slices.Contains(op.statuses, http.StatusBadRequest) {
		join := "?"
		if strings.Contains(a.target, "?") {
			join = "&"
		}
		c.ask(t, name, h, asked{http.StatusBadRequest, a.target + join + "nonsense=1", a.body, nil})
	}
	if op.body {
		c.ask(t, name, h, with(http.StatusUnsupportedMediaType, "Content-Type", "text/plain"))
		c.ask(t, name, h, asked{http.StatusRequestEntityTooLarge, a.target, `{"x":"` + strings.Repeat("x", api.MaxBody) + `"}`, nil})
	}
}

// askInVain asks an API that can read and write nothing, and one that has a defect.
func (c *contract) askInVain(t *testing.T, cases map[string][]asked) {
	t.Helper()
	f := openWith(t, func(b *backend) web.Backend { return unavailableBackend{b} })
	f.answer(t)
	f.run(t)
	f.ops.Results = resultBackend{}
	f.leave("celery@left")
	if err := f.db.Close(); err != nil {
		t.Fatal(err)
	}
	h := served(t, f.back, f.ops, watching(t, awayOutbox{}))
	for name, op := range c.operations {
		if !slices.Contains(op.statuses, http.StatusServiceUnavailable) || len(cases[name]) == 0 {
			continue
		}
		a := cases[name][0]
		a.status = http.StatusServiceUnavailable
		if name == "get-result" {
			a.target = "/results/" + failedID
		}
		c.ask(t, name, h, a)
	}
	panics := served(t, &backend{}, nil, nil)
	c.ask(t, "list-workers", panics, asked{http.StatusInternalServerError, "/workers", "", nil})
}

// away is a backend whose history cannot be read.
type unavailableBackend struct{ *backend }

func (unavailableBackend) Duplicates(context.Context, history.DuplicateRequest) (view.DuplicatePage, error) {
	return view.DuplicatePage{}, errBroken
}

func (unavailableBackend) DuplicateGroup(context.Context, history.DuplicateKey, int) (view.DuplicateGroup, error) {
	return view.DuplicateGroup{}, errBroken
}

func (unavailableBackend) Tasks(context.Context, history.TaskRequest) (history.TaskPage, error) {
	return history.TaskPage{}, errBroken
}

func (unavailableBackend) Task(context.Context, string) (state.Task, error) {
	return state.Task{}, errBroken
}

func (unavailableBackend) Count(context.Context, query.Query) (history.Count, error) {
	return history.Count{}, errBroken
}

func (unavailableBackend) TaskEvents(context.Context, string) ([]state.TaskEvent, error) {
	return nil, errBroken
}

// answer has celery@w1 answer what it is asked.
func (f *fixture) answer(t *testing.T) {
	t.Helper()
	type object = map[string]any
	held := object{
		"id": "held", "name": "shop.add", "args": "(1,)", "kwargs": "{}", "time_start": 1_795_262_300.5, "worker_pid": 71,
		"delivery_info": object{"routing_key": "mail", "priority": 3, "redelivered": false}, "acknowledged": true,
	}
	answers := object{
		"stats": object{
			"pid": 40, "uptime": 60, "clock": "2048", "prefetch_count": 8, "total": object{"shop.add": 12},
			"pool": object{"implementation": "celery.concurrency.prefork:TaskPool", "max-concurrency": 2, "processes": []int{71, 72}},
		},
		"active": []object{held}, "reserved": []object{held}, "revoked": []string{"gone"},
		"scheduled":     []object{{"eta": "2026-11-22T09:00:00+00:00", "priority": 6, "request": held}},
		"registered":    []string{"shop.add [rate_limit=10/m]", "shop.pay"},
		"active_queues": []object{{"name": "mail", "exchange": object{"name": "mail", "type": "direct"}, "routing_key": "mail", "durable": true}},
		"conf":          object{"worker_concurrency": 2, "nested": object{"a": []any{nil, 1.5}}}, "report": object{"ok": "software"},
		"clock": object{"clock": 7}, "ping": object{"ok": "pong"},
	}
	t.Cleanup(f.broker.Listen(func(m broker.Publishing) {
		var r struct {
			Method      string         `json:"method"`
			Destination []string       `json:"destination"`
			Ticket      string         `json:"ticket"`
			ReplyTo     broker.ReplyTo `json:"reply_to"`
		}
		if json.Unmarshal(m.Body, &r) != nil || len(r.Destination) > 0 && !slices.Contains(r.Destination, "celery@w1") {
			return
		}
		body, err := json.Marshal(object{"celery@w1": answers[r.Method]})
		if err != nil {
			panic(err)
		}
		f.broker.Reply(r.ReplyTo, broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8",
			Headers: object{"ticket": r.Ticket, "clock": int64(7)}, Body: body,
		})
	}))
}
