package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
)

// adders are workers that do for most tests.
func adders() []*worker {
	return []*worker{
		{name: "w1", tasks: []string{"tasks.add"}, queues: []string{"celery", "mixed"}},
		{name: "w2", tasks: []string{"tasks.mail"}, queues: []string{"mail", "mixed"}},
	}
}

// waiting returns the messages that wait in a queue.
func (b *bench) waiting(t *testing.T, queue string) []celery.Message {
	t.Helper()
	line, err := b.broker.OpenControl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	}()
	list, err := line.Peek(t.Context(), queue, 1_000)
	if err != nil {
		t.Fatal(err)
	}
	var messages []celery.Message
	for _, p := range list {
		m, err := celery.ParseMessage(p)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

func TestPublish(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	b.task("old", state.TaskSucceeded, func(e *state.Event) { e.RootID = "root" })
	expires := time.Now().Add(time.Hour).UTC()
	o := command.TaskRequest{
		Name: "tasks.add", Args: json.RawMessage(`[1, "ü"]`), Kwargs: json.RawMessage(`{"a": [2]}`), Countdown: time.Minute,
		Expires: expires, Priority: new(uint8(4)), Hard: new(9.0), Soft: new(3.0), RetryOf: "old",
	}
	before := time.Now()
	r, err := b.Publish(t.Context(), by, o)
	if err != nil {
		t.Fatal(err)
	}
	c := b.settled(t, r)[0]
	if c.State != history.CommandDone || c.Target != "queue celery" || c.Group != "queue celery" || !c.ExpiresAt.Equal(expires.Truncate(time.Microsecond)) {
		t.Errorf("command = %+v", c)
	}
	list := b.waiting(t, "celery")
	if len(list) != 1 {
		t.Fatalf("%d messages, want 1", len(list))
	}
	got := list[0]
	if got.ID != c.TaskID || len(got.ID) != 36 || got.ETA.Before(before.Add(time.Minute).Truncate(time.Microsecond)) || !strings.HasPrefix(got.Origin, "gen") {
		t.Errorf("id %s of command %s, eta %s, origin %s", got.ID, c.TaskID, got.ETA, got.Origin)
	}
	want := celery.Message{
		Name: "tasks.add", Args: o.Args, Kwargs: o.Kwargs, RootID: "root", ParentID: "old", Expires: expires.Truncate(time.Microsecond),
		Priority: o.Priority, HardLimit: o.Hard, SoftLimit: o.Soft,
		Embed: json.RawMessage(`{"callbacks": null, "errbacks": null, "chain": null, "chord": null}`),
		Headers: map[string]any{
			"umbel_retry_of": "old", "group_index": nil, "ignore_result": false, "replaced_task_nesting": int64(0),
			"stamped_headers": nil, "stamps": map[string]any{},
		},
	}
	ignore := cmp.Options{
		cmpopts.IgnoreFields(celery.Message{}, "ID", "ETA", "Origin"),
		cmp.Transformer("JSON", func(raw json.RawMessage) string { return string(raw) }),
	}
	if diff := cmp.Diff(compact(t, got), compact(t, want), ignore); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	records, _, err := b.db.AuditLog(t.Context(), history.AuditFilter{Limit: 1})
	if err != nil || records[0].Action != "retry" || !strings.Contains(records[0].Detail, `"args":[1,"ü"]`) {
		t.Errorf("audit = %+v, %v, want a retry with arguments", records, err)
	}
}

// compact returns m without the white space in its JSON.
func compact(t *testing.T, m celery.Message) celery.Message {
	t.Helper()
	for _, raw := range []*json.RawMessage{&m.Args, &m.Kwargs, &m.Embed} {
		var v any
		if err := json.Unmarshal(*raw, &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		*raw = b
	}
	return m
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	b.task("known", state.TaskReceived, nil)
	soon := time.Now().Add(time.Hour)
	tests := map[string]struct {
		order command.TaskRequest
		want  command.Error
		force bool // it can be
	}{
		"no name":      {order: command.TaskRequest{}, want: command.Error{Field: "name"}},
		"unknown name": {order: command.TaskRequest{Name: "tasks.ad"}, want: command.Error{Kind: command.NotFound, Field: "name", Nearest: "tasks.add"}, force: true},
		"no consumer": {
			order: command.TaskRequest{Name: "tasks.add", Queue: "mial"},
			want:  command.Error{Kind: command.Conflict, Field: "queue", Nearest: "mail"}, force: true,
		},
		"mailbox":    {order: command.TaskRequest{Name: "tasks.add", Queue: "w1.celery.pidbox"}, want: command.Error{Field: "queue"}},
		"long queue": {order: command.TaskRequest{Name: "tasks.add", Queue: strings.Repeat("q", 256)}, want: command.Error{Field: "queue"}},
		"args":       {order: command.TaskRequest{Name: "tasks.add", Args: json.RawMessage(`[{"price": 1e999}]`)}, want: command.Error{Field: "args[0].price"}},
		"no JSON":    {order: command.TaskRequest{Name: "tasks.add", Args: json.RawMessage(`[`)}, want: command.Error{Field: "args"}},
		"kwargs":     {order: command.TaskRequest{Name: "tasks.add", Kwargs: json.RawMessage(`[]`)}, want: command.Error{Field: "kwargs"}},
		"two times":  {order: command.TaskRequest{Name: "tasks.add", Countdown: 1, ETA: soon}, want: command.Error{Field: "eta"}},
		"expired":    {order: command.TaskRequest{Name: "tasks.add", Expires: time.Unix(1, 0)}, want: command.Error{Field: "expires"}},
		"priority":   {order: command.TaskRequest{Name: "tasks.add", Priority: new(uint8(10))}, want: command.Error{Field: "priority"}},
		"known id": {
			order: command.TaskRequest{Name: "tasks.add", ID: "known"}, want: command.Error{Kind: command.Conflict, Field: "id"}, force: true,
		},
		"guessed args":   {order: command.TaskRequest{Name: "tasks.add", RetryOf: "known", Kwargs: json.RawMessage(`{}`)}, want: command.Error{Field: "args"}},
		"guessed kwargs": {order: command.TaskRequest{Name: "tasks.add", RetryOf: "known", Args: json.RawMessage(`[]`)}, want: command.Error{Field: "kwargs"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keyed := by
			keyed.IdempotencyKey = name
			_, err := b.Publish(t.Context(), keyed, tt.order)
			got, ok := errors.AsType[*command.Error](err)
			if !ok {
				t.Fatalf("error = %v, want an *action.Error", err)
			}
			if diff := cmp.Diff(*got, tt.want, cmpopts.IgnoreFields(command.Error{}, "Message")); diff != "" {
				t.Errorf("%v: got - want +\n%s", got, diff)
			}
			tt.order.Force = true
			v, err := b.PreviewTask(t.Context(), tt.order)
			if (err == nil) != tt.force {
				t.Errorf("forced: %v, want success %v", err, tt.force)
			}
			if err == nil && !slices.ContainsFunc(v.Warnings, func(w command.Warning) bool { return w.Severe }) {
				t.Errorf("forced: warnings %v, want a grave one", v.Warnings)
			}
		})
	}
}

func TestPublishWarns(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	b.task("running", state.TaskStarted, func(e *state.Event) { e.RootID = "root" })
	tests := map[string]struct {
		order command.TaskRequest
		want  []command.Warning
	}{
		"workers that lack the task": {
			command.TaskRequest{Name: "tasks.add", Queue: "mixed"},
			[]command.Warning{{Message: "w2 consumes from queue mixed without having registered task tasks.add: it discards what it receives of it.", Severe: true}},
		},
		"nobody who has the task": {
			command.TaskRequest{Name: "tasks.add", Queue: "mail"},
			[]command.Warning{{Message: "w2 consumes from queue mail without having registered task tasks.add: it discards what it receives of it.", Severe: true}},
		},
		"again while it runs": {
			command.TaskRequest{Name: "tasks.add", RetryOf: "running", Args: json.RawMessage(`[]`), Kwargs: json.RawMessage(`{}`)},
			[]command.Warning{
				{Message: "Task running is not finished (STARTED): it may run twice.", Severe: true},
				{Message: "No longer known: its priority, time limits and headers. This run goes without."},
				{Message: "It is part of a workflow: it is repeated alone, without the callbacks, chain, group or chord that it had."},
			},
		},
		"nothing": {command.TaskRequest{Name: "tasks.add"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := b.PreviewTask(t.Context(), tt.order)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.Warnings, tt.want); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
		})
	}
}

func TestPublishWithoutWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.broker.Declare("celery")
	_, err := b.Publish(t.Context(), by, command.TaskRequest{Name: "tasks.add"})
	if wrong, ok := errors.AsType[*command.Error](err); !ok || wrong.Kind != command.Conflict {
		t.Fatalf("error = %v, want a conflict", err)
	}
	r, err := b.Publish(t.Context(), by, command.TaskRequest{Name: "tasks.add", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if b.settled(t, r); len(b.waiting(t, "celery")) != 1 {
		t.Errorf("messages = %v, want one", b.waiting(t, "celery"))
	}
}

func TestPublishToNoQueueIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	r, err := b.Publish(t.Context(), by, command.TaskRequest{Name: "tasks.add", Queue: "none", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	got := b.settled(t, r)[0]
	if got.State != history.CommandDead || !strings.Contains(got.LastError, "no such queue") {
		t.Errorf("state %s, error %q, want dead for want of a queue", got.State, got.LastError)
	}
	if n, err := b.Requeue(t.Context(), by, []int64{got.ID, got.ID}); n != 1 || err != nil {
		t.Errorf("requeued %d, %v, want 1", n, err)
	}
	b.settled(t, r)
	if n, err := b.Discard(t.Context(), by, []int64{got.ID}); n != 1 || err != nil {
		t.Errorf("discarded %d, %v, want 1", n, err)
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	r, err := b.Publish(t.Context(), by, command.TaskRequest{Name: "tasks.mail", Queue: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	b.settled(t, r)
	v, err := b.PreviewPurge(t.Context(), "mail")
	if err != nil {
		t.Fatal(err)
	}
	want := command.Preview{Summary: "Purge queue mail", Targets: []string{"queue mail"}, Confirm: "mail", Warnings: []command.Warning{
		{Message: "1 waiting message is lost for good.", Severe: true},
	}}
	if diff := cmp.Diff(v, want); diff != "" {
		t.Errorf("preview: got - want +\n%s", diff)
	}
	for _, wrong := range []struct{ queue, confirm, field string }{{"mail", "mial", "confirm"}, {"nomail", "nomail", "queue"}, {"", "", "queue"}} {
		_, err := b.Purge(t.Context(), by, wrong.queue, wrong.confirm)
		if e, ok := errors.AsType[*command.Error](err); !ok || e.Field != wrong.field {
			t.Errorf("purge %q with %q: %v, want field %s", wrong.queue, wrong.confirm, err, wrong.field)
		}
	}
	if r, err = b.Purge(t.Context(), by, "mail", "mail"); err != nil {
		t.Fatal(err)
	}
	c := b.settled(t, r)[0]
	if c.State != history.CommandDone || len(b.waiting(t, "mail")) > 0 {
		t.Errorf("command is %s with %v in the queue", c.State, b.waiting(t, "mail"))
	}
	if len(c.Replies) != 1 || c.Replies[0].Text != "1 message removed" {
		t.Errorf("answers = %v, want that 1 message was removed", c.Replies)
	}
}

// backend has one record.
type backend struct {
	results.Backend

	record results.Result
}

func (b backend) Result(_ context.Context, id string) (results.Result, error) {
	if id != b.record.TaskID {
		return results.Result{}, results.ErrMissing
	}
	return b.record, nil
}

func TestRetryTakesArgumentsFromWhereTheyAreWhole(t *testing.T) {
	t.Parallel()
	stored := backend{record: results.Result{
		TaskID: "stored", Name: "tasks.mail", Queue: "mail", Args: json.RawMessage(`["from the result"]`), Kwargs: json.RawMessage(`{}`),
	}}
	held := &worker{
		name: "w1", tasks: []string{"tasks.add"}, queues: []string{"celery"},
		held: map[string]any{"held": []any{"active", map[string]any{
			"id": "held", "name": "shown", "type": "tasks.add", "args": []any{"from the worker"}, "kwargs": map[string]any{},
			"delivery_info": map[string]any{"exchange": "", "routing_key": "special", "priority": 3},
		}}},
	}
	b := newBench(t, stored, held)
	b.task("waiting", state.TaskSent, nil)
	b.task("held", state.TaskStarted, nil)
	b.task("stored", state.TaskSucceeded, nil)
	b.task("event", state.TaskSucceeded, nil)
	b.task("cut", state.TaskSucceeded, func(e *state.Event) { e.Args = "(1, 2..., ...)" })
	b.task("nan", state.TaskSucceeded, func(e *state.Event) { e.Args = "(nan,)" })
	b.task("unqueued", state.TaskSucceeded, func(e *state.Event) {
		e.Queue, e.Present = "", e.Present&^state.FieldQueue
	})
	m, err := celery.Message{
		ID: "waiting", Name: "tasks.add", Args: json.RawMessage(`["from the broker"]`), HardLimit: new(5.0), Priority: new(uint8(2)),
	}.Publishing(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, "celery", m)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := map[string]struct {
		want   command.TaskRequest
		source string
	}{
		"waiting": {command.TaskRequest{
			Name: "tasks.add", Queue: "celery", Args: raw(`["from the broker"]`), Kwargs: raw(`{}`), Hard: new(5.0), Priority: new(uint8(2)),
		}, "broker"},
		"held": {command.TaskRequest{
			Name: "tasks.add", Queue: "special", Args: raw(`["from the worker"]`), Kwargs: raw(`{}`), Priority: new(uint8(3)),
		}, "worker"},
		"stored":   {command.TaskRequest{Name: "tasks.mail", Queue: "celery", Args: raw(`["from the result"]`), Kwargs: raw(`{}`)}, "result backend"},
		"event":    {command.TaskRequest{Name: "tasks.add", Queue: "celery", Args: raw(`[1,2]`), Kwargs: raw(`{}`)}, "event"},
		"unqueued": {command.TaskRequest{Name: "tasks.add", Queue: "celery", Args: raw(`[1,2]`), Kwargs: raw(`{}`)}, "event"},
		"cut":      {command.TaskRequest{Name: "tasks.add", Queue: "celery"}, ""},
		"nan":      {command.TaskRequest{Name: "tasks.add", Queue: "celery"}, ""},
	}
	for id, tt := range tests {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			got, source, err := b.Retry(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.RetryOf = id
			if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(command.TaskRequest{}, "Original")); diff != "" || source != tt.source {
				t.Errorf("source %q, want %q; got - want +\n%s", source, tt.source, diff)
			}
		})
	}
	_, _, err = b.Retry(t.Context(), "none")
	if wrong, ok := errors.AsType[*command.Error](err); !ok || wrong.Kind != command.NotFound {
		t.Errorf("error for no task = %v, want Unknown", err)
	}
}

// put publishes a message as anybody may.
func (b *bench) put(t *testing.T, queue string, m broker.Publishing) {
	t.Helper()
	line, err := b.broker.OpenControl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(line.Publish(t.Context(), queue, m), line.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestRetryDoesNotTakeWhatWasAltered(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{"perhaps NaN": `[null]`, "no text": "[\"\uFFFD\"]", "no text, escaped": `["\ufffd"]`, "no array": `"(1,)"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, backend{record: results.Result{TaskID: "t", Args: json.RawMessage(args), Kwargs: json.RawMessage(`{}`)}}, adders()...)
			b.task("t", state.TaskSucceeded, func(e *state.Event) { e.Args = "(nan,)" })
			if o, source, err := b.Retry(t.Context(), "t"); err != nil || source != "" || o.Args != nil {
				t.Errorf("args %s from %q, %v, want none", o.Args, source, err)
			}
		})
	}
}
