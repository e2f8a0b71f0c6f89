package command_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
)

// published returns the message of a task that waits in a queue.
func (b *bench) published(t *testing.T, queue, id string) celery.Message {
	t.Helper()
	for _, m := range b.waiting(t, queue) {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("no message of %s in %s", id, queue)
	return celery.Message{}
}

// TestRetryKeepsWhatTheMessageHad repeats a task whose message waits, by way of the broker, and a failed one that only the
// outbox knows.
func TestRetryKeepsWhatTheMessageHad(t *testing.T) {
	t.Parallel()
	const link = `[{"task":"tasks.mail","args":[1],"kwargs":{},"options":{},"subtask_type":null,"immutable":false}]`
	message := func(t *testing.T, id string) broker.Publishing {
		t.Helper()
		m, err := celery.Message{
			ID: id, Name: "tasks.add", GroupID: "g", HardLimit: new(60.0), SoftLimit: new(30.5), Priority: new(uint8(7)), Shadow: "shown",
			Headers: map[string]any{"mine": map[string]any{"n": int64(5), "x": 2.5}, "group_index": int64(3), "ignore_result": true},
			Embed:   json.RawMessage(`{"callbacks":` + link + `,"errbacks":` + link + `,"chain":` + link + `,"chord":{"task":"tasks.add"}}`),
		}.Publishing(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	tests := map[string]struct {
		kind     state.Kind
		warnings []string
		callback string
	}{
		"waiting": {state.TaskSent, []string{
			"Task waiting is not finished (PENDING): it may run twice.", "This run has the errbacks of the task too.",
			"Its callbacks and the rest of its chain follow the task itself: they do not follow this run.",
			"It was in a chord: this run is not counted there, and the body does not get its result.",
		}, "null"},
		"failed": {state.TaskFailed, []string{
			"This run has the callbacks, errbacks and chain of the task too.",
			"It was in a chord: this run is not counted there, and the body does not get its result.",
		}, link},
		"succeeded": {state.TaskSucceeded, []string{
			"This run has the errbacks of the task too.",
			"Its callbacks and the rest of its chain follow the task itself: they do not follow this run.",
			"It was in a chord: this run is not counted there, and the body does not get its result.",
		}, "null"},
	}
	for id, tt := range tests {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, adders()...)
			b.put(t, "celery", message(t, id))
			b.task(id, tt.kind, nil)
			embed := b.again(t, id, "broker", tt.warnings)
			if embed["errbacks"] != link || embed["callbacks"] != tt.callback || embed["chain"] != tt.callback || embed["chord"] != "null" {
				t.Errorf("embed: %v", embed)
			}
			b.task("again "+id, state.TaskFailed, func(e *state.Event) { e.RootID, e.ParentID = id, id })
			what := "errbacks"
			if tt.callback != "null" {
				what = "callbacks, errbacks and chain"
			}
			if twice := b.again(t, "again "+id, "outbox", []string{"This run has the " + what + " of the task too."}); !maps.Equal(twice, embed) {
				t.Errorf("embed of the second repetition: %v", twice)
			}
		})
	}
}

// again repeats a task, checks the source, the warnings and the message, and returns what follows it.
func (b *bench) again(t *testing.T, id, source string, warnings []string) map[string]string {
	t.Helper()
	o, from, err := b.Retry(t.Context(), id)
	if err != nil || from != source {
		t.Fatalf("retry from %q, %v, want %q", from, err, source)
	}
	o.Original = nil // as a form has it
	v, err := b.PreviewTask(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(aboutRetries(v.Warnings), warnings); diff != "" {
		t.Errorf("warnings: got - want +\n%s", diff)
	}
	o.ID = "again " + id
	r, err := b.Publish(t.Context(), by, o)
	if err != nil {
		t.Fatal(err)
	}
	b.settled(t, r)
	got := b.published(t, "celery", o.ID)
	if *got.Priority != 7 || *got.HardLimit != 60 || *got.SoftLimit != 30.5 || got.Shadow != "shown" || got.GroupID != "" || got.ParentID != id {
		t.Errorf("message: %+v", got)
	}
	wantHeaders := map[string]any{
		"mine": map[string]any{"n": int64(5), "x": 2.5}, "ignore_result": true, "umbel_retry_of": id,
		"replaced_task_nesting": int64(0), "stamped_headers": nil, "stamps": map[string]any{}, "group_index": nil,
	}
	if diff := cmp.Diff(got.Headers, wantHeaders); diff != "" {
		t.Errorf("headers: got - want +\n%s", diff)
	}
	var embed map[string]json.RawMessage
	if err := json.Unmarshal(got.Embed, &embed); err != nil {
		t.Fatal(err)
	}
	parts := make(map[string]string)
	for name, raw := range embed {
		parts[name] = string(raw)
	}
	return parts
}

// aboutRetries leaves out what is said of any priority.
func aboutRetries(list []command.Warning) []string {
	var said []string
	for _, w := range list {
		if !strings.Contains(w.Message, "RabbitMQ") {
			said = append(said, w.Message)
		}
	}
	return said
}

func TestRetryWarnsOfWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	held := &worker{
		name: "w1", tasks: []string{"tasks.add"}, queues: []string{"celery"},
		held: map[string]any{"held": []any{"active", map[string]any{
			"id": "held", "type": "tasks.add", "args": []any{}, "kwargs": map[string]any{},
			"delivery_info": map[string]any{"exchange": "", "routing_key": "celery", "priority": 3},
		}}},
	}
	b := newBench(t, backend{record: results.Result{TaskID: "member", GroupID: "g"}}, held)
	none := func(*state.Event) {}
	b.task("held", state.TaskStarted, none)
	b.task("done", state.TaskSucceeded, none)
	b.task("member", state.TaskSucceeded, none)
	b.task("step", state.TaskSucceeded, func(e *state.Event) {
		e.RootID, e.ParentID, e.Present = "root", "before", e.Present|state.FieldParentID
	})
	const nothing = "No longer known: its priority, time limits, headers and callbacks. This run goes without."
	tests := map[string][]string{
		"held": {
			"Task held is not finished (STARTED): it may run twice.",
			"No longer known: its time limits, headers and callbacks. This run goes without.",
		},
		"done":   {nothing},
		"member": {nothing, "It was in a group: this run is not one of its members."},
		"step": {
			"No longer known: its priority, time limits and headers. This run goes without.",
			"It is part of a workflow: it is repeated alone, without the callbacks, chain, group or chord that it had.",
		},
	}
	for id, want := range tests {
		o, _, err := b.Retry(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		v, err := b.PreviewTask(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(aboutRetries(v.Warnings), want); diff != "" {
			t.Errorf("%s: got - want +\n%s", id, diff)
		}
	}
	found, err := b.PreviewBulk(t.Context(), command.BulkRequest{Action: "retry", IDs: []string{"done", "member", "step"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Some of the priority, time limits, headers and callbacks of 3 tasks are no longer known: they run without them.",
		"The group or chord of 1 task does not count this run.",
		"The arguments of 3 tasks are those that events show. The publisher may have replaced them with others (argsrepr).",
	}
	if diff := cmp.Diff(messages(found.Warnings), want); diff != "" {
		t.Errorf("all: got - want +\n%s", diff)
	}
}

// TestALoneTaskStaysAlone repeats a task, the same again, and its repetition: neither is a workflow.
func TestALoneTaskStaysAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	b.task("lone", state.TaskFailed, nil)
	for i, id := range []string{"lone", "lone", "again 1"} {
		o, _, err := b.Retry(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		v, err := b.PreviewTask(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(messages(v.Warnings), " "); strings.Contains(text, "workflow") {
			t.Errorf("run %d is said to be of a workflow: %s", i, text)
		}
		o.ID = []string{"again 0", "again 1", "again 2"}[i]
		r, err := b.Publish(t.Context(), by, o)
		if err != nil {
			t.Fatal(err)
		}
		b.settled(t, r)
		b.task(o.ID, state.TaskFailed, func(e *state.Event) { e.RootID, e.ParentID, e.Present = "lone", id, e.Present|state.FieldParentID })
	}
	b.task("child of its own", state.TaskReceived, func(e *state.Event) { e.RootID, e.ParentID, e.Present = "lone", "lone", e.Present|state.FieldParentID })
	if o, _, err := b.Retry(t.Context(), "lone"); err != nil || !o.Original.Workflow {
		t.Errorf("a task with a child of its own is said to be alone: %v", err)
	}
}

// TestSecondRetryIsWarnedOf retries one of two tasks, then both.
func TestSecondRetryIsWarnedOf(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	b.task("one", state.TaskFailed, nil)
	b.task("two", state.TaskFailed, nil)
	about := func(list []command.Warning) string {
		for _, w := range list {
			if strings.HasPrefix(w.Message, "Retried before") && w.Severe {
				return w.Message
			}
		}
		return ""
	}
	ask := func() (single, bulk string) {
		o, _, err := b.Retry(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		one, err := b.PreviewTask(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		both, err := b.PreviewBulk(t.Context(), command.BulkRequest{Action: "retry", IDs: []string{"one", "two"}})
		if err != nil {
			t.Fatal(err)
		}
		return about(one.Warnings), about(both.Warnings)
	}
	if single, bulk := ask(); single+bulk != "" {
		t.Errorf("before any retry: %q, %q", single, bulk)
	}
	o, _, err := b.Retry(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	o.ID = "again"
	r, err := b.Publish(t.Context(), by, o)
	if err != nil {
		t.Fatal(err)
	}
	b.settled(t, r)
	b.task("again", state.TaskSucceeded, func(e *state.Event) { e.RootID, e.ParentID, e.Present = "one", "one", e.Present|state.FieldParentID })
	single, bulk := ask()
	if !strings.Contains(single, "as task again, which is in state SUCCESS") || bulk != "Retried before: 1 of these tasks." {
		t.Errorf("warnings = %q, %q", single, bulk)
	}
	one, err := b.Cluster.Task(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := b.Retries(t.Context(), &one); err != nil || len(list) != 1 || list[0].ID != "again" || list[0].By != by.Actor {
		t.Errorf("retries = %+v, %v", list, err)
	}
}

func TestAuditHoldsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	detail := func(o command.TaskRequest) map[string]any {
		t.Helper()
		if _, err := b.Publish(t.Context(), by, o); err != nil {
			t.Fatal(err)
		}
		list, _, err := b.db.AuditLog(t.Context(), history.AuditFilter{Limit: 1})
		if err != nil || len(list) != 1 {
			t.Fatalf("audit = %v, %v", list, err)
		}
		var s struct{ Detail map[string]any }
		if err := json.Unmarshal([]byte(list[0].Detail), &s); err != nil {
			t.Fatal(err)
		}
		return s.Detail
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	got := detail(command.TaskRequest{Name: "tasks.add", Args: raw(`[1,{"a":[2]}]`), Kwargs: raw(`{"n":3,"api_key":"hush"}`)})
	if diff := cmp.Diff(got["args"], []any{1.0, map[string]any{"a": []any{2.0}}}); diff != "" {
		t.Errorf("args: got - want +\n%s", diff)
	}
	if diff := cmp.Diff(got["kwargs"], map[string]any{"n": 3.0, "api_key": "********"}); diff != "" {
		t.Errorf("kwargs: got - want +\n%s", diff)
	}
	got = detail(command.TaskRequest{Name: "tasks.add", Args: raw(`["` + strings.Repeat("long ", 10_000) + `"]`)})
	if text, ok := got["args"].(string); !ok || len(text) > 17_000 || !strings.HasSuffix(text, "(50004 bytes)") {
		t.Errorf("long args are recorded as %.40v of %d bytes", got["args"], len(text))
	}

	b.task("failed", state.TaskFailed, nil)
	edited := command.TaskRequest{
		Name: "tasks.add", RetryOf: "failed", Queue: "mixed", Args: raw(`[1,5,6]`), Kwargs: raw(`{"token":"x"}`), Hard: new(9.0),
	}
	got = detail(edited)
	want := map[string]any{
		"queue":   map[string]any{"from": "celery", "to": "mixed"},
		"hard":    map[string]any{"from": nil, "to": 9.0},
		"args[1]": map[string]any{"from": 2.0, "to": 5.0}, "args[2]": map[string]any{"from": nil, "to": 6.0},
		"kwargs.token": map[string]any{"from": nil, "to": "********"},
	}
	if diff := cmp.Diff(got["changes"], any(want)); diff != "" || got["source"] != "event" {
		t.Errorf("changes, source %v: got - want +\n%s", got["source"], diff)
	}
	o, _, err := b.Retry(t.Context(), "failed")
	if err != nil {
		t.Fatal(err)
	}
	if got = detail(o); got["changes"] != nil || got["retry_of"] != "failed" {
		t.Errorf("a retry as it was is recorded as %v", got)
	}
}
