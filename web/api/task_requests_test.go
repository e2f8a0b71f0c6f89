package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/web/api"
)

func TestPublishIsTakenOnce(t *testing.T) {
	t.Parallel()
	h := newCommandsAPI(t)
	const order = `{"name":"shop.pay","args":[1,{"price":"9.50"}],"kwargs":{"n":12345678901234567890},"queue":"celery","priority":3,"force":true}`
	dry := decode(t, send(t, h, http.MethodPost, "/publish?dry_run=true", order).Body.String())
	if got, want := dry["summary"], "Run shop.pay"; got != want {
		t.Errorf("summary = %v, want %s", got, want)
	}
	if list, _ := dry["warnings"].([]any); len(list) == 0 {
		t.Error("a dry run warns of nothing though no worker answers")
	}
	var ids []any
	for i := range 2 {
		w := request(h, http.MethodPost, "/publish", order, "Idempotency-Key", "once")
		body := decode(t, w.Body.String())
		if w.Code != http.StatusAccepted || body["replayed"] != (i == 1) {
			t.Fatalf("POST /publish = %d %s, want 202, replayed %v", w.Code, w.Body, i == 1)
		}
		commands, _ := body["commands"].([]any)
		if len(commands) != 1 {
			t.Fatalf("commands = %v, want one", commands)
		}
		c := commands[0].(map[string]any)
		ids = append(ids, c["task_id"])
		if diff := cmp.Diff([]any{"task", "queue celery", "ada"}, []any{c["kind"], c["target"], c["actor"]}); diff != "" {
			t.Errorf("command (-want +got):\n%s", diff)
		}
	}
	if ids[0] != ids[1] || fmt.Sprint(ids[0]) == "" {
		t.Errorf("ids of the task = %v, want the same twice", ids)
	}
}

func TestTaskOrdersSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := newCommandsAPI(t)
	tests := map[string]struct {
		target, body string
		status       int
		location     string
	}{
		"deep in the arguments":  {"/publish", `{"name":"n","args":[1,2,{"price":"\ud800"}],"force":true}`, 400, "body.args[2].price"},
		"NaN in the arguments":   {"/publish", `{"name":"n","args":[[1],2,{"a":{},"price":NaN}]}`, 400, "body"},
		"infinite argument":      {"/publish", `{"args":[1,-Infinity]}`, 400, "body"},
		"cut short":              {"/publish", `{"name":"n","kwargs":{"a":[1,`, 400, "body"},
		"endless nesting":        {"/publish", `{"args":` + strings.Repeat("[", 1<<19), 400, "body"},
		"no JSON at all":         {"/publish", `name=n`, 400, "body"},
		"arguments no array":     {"/publish", `{"name":"n","args":{"a":1},"force":true}`, 400, "body.args"},
		"keywords no object":     {"/publish", `{"name":"n","kwargs":[1],"force":true}`, 400, "body.kwargs"},
		"no name":                {"/publish", `{"args":[1],"force":true}`, 400, "body"},
		"priority too high":      {"/publish", `{"name":"n","priority":10,"force":true}`, 400, "body.priority"},
		"priority no number":     {"/publish", `{"name":"n","priority":"high"}`, 400, "body.priority"},
		"countdown is negative":  {"/publish", `{"name":"n","countdown":-1,"force":true}`, 400, "body.countdown"},
		"countdown is endless":   {"/publish", `{"name":"n","countdown":1e300,"force":true}`, 400, "body.countdown"},
		"countdown and ETA":      {"/publish", `{"name":"n","countdown":1,"eta":"2026-11-22T00:00:00Z","force":true}`, 400, "body.eta"},
		"no time":                {"/publish", `{"name":"n","eta":"tomorrow"}`, 400, "body.eta"},
		"expires in the past":    {"/publish", `{"name":"n","expires":"2001-01-01T00:00:00Z","force":true}`, 400, "body.expires"},
		"soft above hard":        {"/publish", `{"name":"n","soft":3,"hard":2,"force":true}`, 400, "body.soft"},
		"name taken for another": {"/publish", `{"nme":"n"}`, 400, "body"},
		"id is known":            {"/publish", `{"id":"` + taskID + `","name":"n"}`, 409, "body.id"},
		"retry, wrong arguments": {"/retry/" + taskID, `{"args":"x","force":true}`, 400, "body.args"},
		"retry of nothing":       {"/retry/nope", `{}`, 404, "body.id"},
		"bulk without tasks":     {"/bulk", `{"action":"revoke"}`, 400, "body.ids"},
		"bulk, ids and query":    {"/bulk", `{"action":"revoke","ids":["x"],"q":""}`, 400, "body.ids"},
		"bulk, wrong query":      {"/bulk", `{"action":"revoke","q":"state:("}`, 400, "body.q"},
		"bulk, wrong action":     {"/bulk", `{"action":"kill","ids":["x"]}`, 400, "body.action"},
		"bulk, wrong cap":        {"/bulk", `{"action":"revoke","q":"","cap":10001}`, 400, "body.cap"},
		"bulk, no signal":        {"/bulk", `{"action":"revoke","q":"","signal":"SIGKILL"}`, 400, "body.signal"},
		"bulk, one unknown":      {"/bulk", `{"action":"revoke","ids":["nope"]}`, 404, "body.ids[0]"},
		"bulk, finished":         {"/bulk", `{"action":"revoke","ids":["` + taskID + `"]}`, 409, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := send(t, h, http.MethodPost, tt.target, tt.body)
			body := decode(t, w.Body.String())
			location := ""
			if list, _ := body["errors"].([]any); len(list) > 0 {
				location = fmt.Sprint(list[0].(map[string]any)["location"])
			}
			if w.Code != tt.status || location != tt.location {
				t.Errorf("POST %s %.200s = %d %.400s, want %d at %q", tt.target, tt.body, w.Code, w.Body, tt.status, tt.location)
			}
		})
	}
}

func TestPublishWithoutWorkersMustBeForced(t *testing.T) {
	t.Parallel()
	w := send(t, newCommandsAPI(t), http.MethodPost, "/publish", `{"name":"shop.pay"}`)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "o worker") {
		t.Errorf("POST /publish = %d %s, want 409", w.Code, w.Body)
	}
}

func TestRetryRepeatsOrChanges(t *testing.T) {
	t.Parallel()
	h := newCommandsAPI(t)
	plan := decode(t, get(t, h, "/retry/"+taskID).Body.String())
	want := map[string]any{"name": "shop.add", "args": []any{json.Number("1"), json.Number("2")}, "kwargs": map[string]any{}, "queue": "celery"}
	if diff := cmp.Diff(want, plan["request"]); diff != "" {
		t.Errorf("order that repeats the task (-want +got):\n%s", diff)
	}
	if plan["source"] != "event" || plan["args"] != "(1, 2)" {
		t.Errorf("plan = %v, want from the event", plan)
	}
	if w := get(t, h, "/retry/nope"); w.Code != http.StatusNotFound {
		t.Errorf("GET /retry/nope = %d %s, want 404", w.Code, w.Body)
	}
	for body, want := range map[string]string{`{"force":true}`: "queue celery", `{"args":[7],"queue":"mail","force":true}`: "queue mail"} {
		w := send(t, h, http.MethodPost, "/retry/"+taskID, body)
		receipt := decode(t, w.Body.String())
		commands, _ := receipt["commands"].([]any)
		if w.Code != http.StatusAccepted || len(commands) != 1 {
			t.Fatalf("POST /retry %s = %d %s, want 202", body, w.Code, w.Body)
		}
		c := commands[0].(map[string]any)
		if c["target"] != want || c["task_id"] == taskID {
			t.Errorf("command of %s = %v, want another task to %s", body, c, want)
		}
	}
}

func TestBulkSaysWhomItLeavesOut(t *testing.T) {
	t.Parallel()
	h := newCommandsAPI(t)
	body := decode(t, send(t, h, http.MethodPost, "/bulk?dry_run=true", `{"action":"revoke","q":"name:shop.*"}`).Body.String())
	got := map[string]any{}
	for _, k := range []string{"matched", "chosen", "states", "capped", "confirm", "blocked"} {
		got[k] = body[k]
	}
	want := map[string]any{
		"matched": json.Number("3"), "chosen": json.Number("1"), "states": map[string]any{"RECEIVED": json.Number("1")}, "capped": false, "confirm": nil,
		"blocked": []any{map[string]any{"reason": "already finished", "count": json.Number("2"), "ids": []any{failedID, taskID}, "remedy": nil}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("preflight (-want +got):\n%s", diff)
	}
	w := send(t, h, http.MethodPost, "/bulk", `{"action":"revoke","q":"name:shop.*"}`)
	if w.Code != http.StatusAccepted || w.Header().Get("Location") != "/ops/api/v1/commands?request=1" {
		t.Errorf("POST /bulk = %d %s at %s", w.Code, w.Body, w.Header().Get("Location"))
	}
}

// drawer is a result backend with one record.
type resultBackend struct{ record results.Result }

func (d resultBackend) Result(_ context.Context, id string) (results.Result, error) {
	switch id {
	case d.record.TaskID:
		return d.record, nil
	case failedID:
		return results.Result{}, fmt.Errorf("dial redis://:secret@redis: %w", context.DeadlineExceeded)
	}
	return results.Result{}, results.ErrMissing
}

func (resultBackend) String() string { return "redis://:***@redis:6379/1" }

func (resultBackend) Close() error { return nil }

func TestResults(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	o := options(t, b)
	if w := get(t, newAPI(o), "/results/"+taskID); w.Code != http.StatusNotFound {
		t.Errorf("result without a backend = %d %s, want 404", w.Code, w.Body)
	}
	o.Commands.Results = resultBackend{results.Result{
		TaskID: taskID, Status: "FAILURE", Value: json.RawMessage(`{"n":NaN}`), Exception: "KeyError: 'x'",
		DoneAt: time.UnixMicro(start).Add(time.Hour), NaiveTime: true, Args: json.RawMessage(`[1]`), Retries: new(int64(1 << 60)),
	}}
	h := newAPI(o)
	w := get(t, h, "/results/"+taskID)
	got := decode(t, w.Body.String())
	want := map[string]any{
		"task_id": taskID, "source": "redis://:***@redis:6379/1", "status": "FAILURE", "value": nil, "undecodable": nil,
		"exception": "KeyError: 'x'", "traceback": nil, "done_at": "2026-11-21T01:00:00.000000Z", "naive_time": true,
		"parent_id": nil, "group_id": nil, "children": []any{}, "name": nil, "args": []any{json.Number("1")}, "kwargs": nil, "worker": nil,
		"queue": nil, "retries": "1152921504606846976",
		"differences": []any{
			"Events say SUCCESS, the backend says FAILURE.",
			"By the backend it ended 59m55s later than by its events. The backend's time has no zone: it may be local time, UTC+1.",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if w := get(t, h, "/results/nope"); w.Code != http.StatusNotFound {
		t.Errorf("result of an unknown task = %d %s, want 404", w.Code, w.Body)
	}
	w = get(t, h, "/results/"+failedID)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("result of an unreachable backend = %d %s, want 503 without its password", w.Code, w.Body)
	}
}

func TestReadOnlyTakesNoOrderForTasks(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	h := newAPI(api.Options{Backend: b, Commands: operating(t, b, true), ReadOnly: true})
	for _, target := range []string{"/publish", "/retry/" + taskID, "/bulk"} {
		if w := send(t, h, http.MethodPost, target, `{}`); w.Code != http.StatusNotFound {
			t.Errorf("POST %s = %d %s, want 404", target, w.Code, w.Body)
		}
	}
}
