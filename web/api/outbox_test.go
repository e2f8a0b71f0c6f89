package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/api"
)

// enqueue enqueues a request of commands and returns their IDs.
func (f *fixture) enqueue(t *testing.T, actor string, kinds ...string) []int64 {
	t.Helper()
	o := history.CommandRequest{Audit: history.AuditRecord{At: time.UnixMicro(start), Actor: actor, Action: "test", Target: "x", Detail: `{"a":1}`}}
	for i, kind := range kinds {
		o.Commands = append(o.Commands, history.Command{
			Schema: history.CommandSchema, Kind: kind, Group: fmt.Sprint(actor, i), Target: "celery@w1", Summary: "Do " + kind,
			Payload: []byte(`{}`), Actor: actor, CreatedAt: time.UnixMicro(start), DueAt: time.UnixMicro(start),
		})
	}
	commands, _, err := f.db.Enqueue(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, len(commands))
	for i, c := range commands {
		ids[i] = c.ID
	}
	return ids
}

// settle says what became of commands.
func (f *fixture) settle(t *testing.T, outcomes ...history.Outcome) {
	t.Helper()
	now := time.UnixMicro(start).Add(time.Second)
	if _, err := f.db.Claim(t.Context(), "relay", now, 500, 500); err != nil {
		t.Fatal(err)
	}
	if err := f.db.RecordOutcomes(t.Context(), "relay", now, outcomes); err != nil {
		t.Fatal(err)
	}
}

// commandIDs are those of a list of commands, oldest first.
func commandIDs(t *testing.T, f *fixture, target string) (ids []string, next string) {
	t.Helper()
	body := decode(t, get(t, f, target).Body.String())
	for _, item := range body["items"].([]any) {
		ids = append(ids, fmt.Sprint(item.(map[string]any)["id"]))
	}
	next, _ = body["next"].(string)
	return ids, next
}

func TestCommandsAreFiltered(t *testing.T) {
	t.Parallel()
	f := open(t)
	ada := f.enqueue(t, "ada", "control", "task")
	bob := f.enqueue(t, "bob", "control")
	f.settle(t,
		history.Outcome{ID: ada[0], State: history.CommandDead, Attempts: 8, Error: "no such queue: mail"},
		history.Outcome{ID: bob[0], State: history.CommandSent, Expected: []string{"celery@w1", "celery@w2"}, SentAt: time.UnixMicro(start)},
		history.Outcome{ID: ada[1], State: history.CommandPending, DueAt: time.UnixMicro(start).Add(time.Hour), Error: "away", Deferrals: 2},
	)
	answer := history.Reply{Node: "celery@w1", At: time.UnixMicro(start), Text: "pong", OK: true, Clock: 7}
	reply := history.CommandReplies{ID: bob[0], Replies: []history.Reply{answer}, State: history.CommandNoReply}
	if err := f.db.AddReplies(t.Context(), time.UnixMicro(start), []history.CommandReplies{reply}); err != nil {
		t.Fatal(err)
	}
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	for target, want := range map[string][]string{
		"/commands":                          {id(bob[0]), id(ada[1]), id(ada[0])},
		"/commands?state=dead,pending":       {id(ada[1]), id(ada[0])},
		"/commands?kind=control&actor=ada":   {id(ada[0])},
		"/commands?worker=celery@w2":         {id(bob[0])},
		"/commands?request=" + id(ada[0]):    {id(ada[1]), id(ada[0])},
		"/commands?task=none":                nil,
		"/commands?limit=2":                  {id(bob[0]), id(ada[1])},
		"/commands?limit=2&cursor=" + id(2):  {id(ada[0])},
		"/commands?actor=ada&state=pending,": {id(ada[1])},
	} {
		if got, _ := commandIDs(t, f, target); !cmp.Equal(got, want) {
			t.Errorf("GET %s = %v, want %v", target, got, want)
		}
	}
	if _, next := commandIDs(t, f, "/commands?limit=2"); next != id(ada[1]) {
		t.Errorf("next = %q, want %d", next, ada[1])
	}
	got := decode(t, get(t, f, "/commands/"+id(bob[0])).Body.String())
	for field, want := range map[string]string{
		"state": "no_reply", "expected": "[celery@w1 celery@w2]", "missing": "[celery@w2]", "actor": "bob", "last_error": "<nil>",
		"replies": "[map[at:2026-11-21T00:00:00.000000Z clock:7 node:celery@w1 ok:true text:pong]]",
		"sent_at": "2026-11-21T00:00:00.000000Z", "expires_at": "<nil>", "task_id": "<nil>",
	} {
		if fmt.Sprint(got[field]) != want {
			t.Errorf("%s = %v, want %s", field, got[field], want)
		}
	}
	for _, target := range []string{"/commands/99", "/commands/x", "/commands/"} {
		if w := get(t, f, target); w.Code != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", target, w.Code)
		}
	}
	for target, parameter := range map[string]string{
		"/commands?state=lost": "state", "/commands?q=x": "q", "/audit?limit=0": "limit", "/outbox?x=1": "x", "/commands/1?x=1": "x",
	} {
		w := get(t, f, target)
		if got := decode(t, w.Body.String()); w.Code != http.StatusBadRequest || got["parameter"] != parameter {
			t.Errorf("GET %s = %d %s, want 400 for %s", target, w.Code, w.Body, parameter)
		}
	}
}

func TestDeadLettersAreRequeuedOrDiscarded(t *testing.T) {
	t.Parallel()
	f := open(t)
	ids := f.enqueue(t, "ada", "control", "control", "control")
	f.settle(t,
		history.Outcome{ID: ids[0], State: history.CommandDead, Error: "no such queue: mail"},
		history.Outcome{ID: ids[1], State: history.CommandDead, Error: "no such queue: mail"},
		history.Outcome{ID: ids[2], State: history.CommandDone},
	)
	stats := func() map[string]any { return decode(t, get(t, f, "/outbox").Body.String()) }
	if got := stats(); fmt.Sprint(got["dead_letters"]) != "2" || fmt.Sprint(got["top_errors"]) != "[map[count:2 error:no such queue: mail]]" {
		t.Errorf("outbox with two dead letters = %v", got)
	}
	for _, tc := range []struct {
		target, body, changed string
	}{
		{"/commands/requeue", fmt.Sprintf(`{"ids":[%d,%d,99]}`, ids[0], ids[2]), "1"},
		{"/commands/requeue", fmt.Sprintf(`{"ids":[%d]}`, ids[2]), "0"},
		{"/commands/discard", fmt.Sprintf(`{"ids":[%d,%d,%d]}`, ids[0], ids[1], ids[2]), "2"},
	} {
		w := send(t, f, http.MethodPost, tc.target, tc.body)
		if got := decode(t, w.Body.String()); w.Code != http.StatusOK || fmt.Sprint(got["changed"]) != tc.changed {
			t.Errorf("POST %s %s = %d %s, want %s changed", tc.target, tc.body, w.Code, w.Body, tc.changed)
		}
	}
	if got := stats(); fmt.Sprint(got["dead_letters"]) != "0" || fmt.Sprint(got["states"].(map[string]any)["discarded"]) != "2" {
		t.Errorf("outbox after all = %v", got)
	}
	var actions []string
	for _, item := range decode(t, get(t, f, "/audit").Body.String())["items"].([]any) {
		actions = append(actions, fmt.Sprint(item.(map[string]any)["action"]))
	}
	if diff := cmp.Diff([]string{"discard", "requeue", "test"}, actions); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

func TestQueuesAreToldAsSeen(t *testing.T) {
	t.Parallel()
	f := open(t)
	before := decode(t, get(t, f, "/queues").Body.String())
	if before["at"] != nil || len(before["items"].([]any)) != 0 {
		t.Errorf("queues before the first look = %v, want nothing", before)
	}
	f.broker.Declare("celery@w1.celery.pidbox")
	f.run(t)
	f.put(t, "mail", `[[1],{"b":2},{}]`, `not JSON`)
	items := func(target string) (names []string) {
		for _, item := range decode(t, get(t, f, target).Body.String())["items"].([]any) {
			names = append(names, fmt.Sprint(item.(map[string]any)["name"]))
		}
		return names
	}
	until(t, "the queues are seen", func() bool {
		return cmp.Equal(items("/queues"), []string{"celery", "mail"}) && len(items("/queues?hidden=true")) == 3
	})
	until(t, "both messages are seen", func() bool {
		return strings.Contains(get(t, f, "/queues/mail").Body.String(), `"ready":2`)
	})
	if got := decode(t, get(t, f, "/queues/celery").Body.String()); got["missing"] != true || got["ready"] != nil {
		t.Errorf("queue that only events tell of = %v, want it missing and nothing of it known", got)
	}
	mail := decode(t, get(t, f, "/queues/mail?peek=5").Body.String())
	waiting, _ := mail["waiting"].([]any)
	if len(waiting) != 2 {
		t.Fatalf("waiting = %v, want two messages", mail["waiting"])
	}
	first, second := waiting[0].(map[string]any), waiting[1].(map[string]any)
	if first["name"] != "mail.send" || first["task_id"] != "task-0" || first["args"] != "(1,)" || first["kwargs"] != "{'b': 2}" || first["error"] != nil {
		t.Errorf("first message = %v", first)
	}
	if second["error"] == nil || second["args"] != nil {
		t.Errorf("message that is no JSON = %v, want an error", second)
	}
	if w := get(t, f, "/queues/mial"); w.Code != http.StatusNotFound || decode(t, w.Body.String())["nearest"] != "mail" {
		t.Errorf("unknown queue = %d %s, want 404 naming mail", w.Code, w.Body)
	}
	for target, parameter := range map[string]string{
		"/queues?hidden=2": "hidden", "/queues?all=1": "all", "/queues/mail?peek=101": "peek", "/queues/mail?peek=x": "peek", "/queues/mail?x=1": "x",
	} {
		w := get(t, f, target)
		if got := decode(t, w.Body.String()); w.Code != http.StatusBadRequest || got["parameter"] != parameter {
			t.Errorf("GET %s = %d %s, want 400 for %s", target, w.Code, w.Body, parameter)
		}
	}
}

func TestQueuesAndCommandsNeedOperations(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for _, target := range []string{"/queues", "/queues/mail", "/commands", "/commands/1", "/outbox", "/audit"} {
		if w := get(t, h, target); w.Code != http.StatusNotFound {
			t.Errorf("GET %s without operations = %d, want 404", target, w.Code)
		}
	}
}
