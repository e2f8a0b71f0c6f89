package command_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

func TestControlPreviewWarns(t *testing.T) {
	t.Parallel()
	workers := func() []*worker {
		return []*worker{
			{name: "w1", tasks: []string{"tasks.add", "celery.chain"}, queues: []string{"celery", "mail"}, size: 2, active: 2, running: []string{"a", "b"}, reserved: []string{"c"}},
			{
				name: "w2", tasks: []string{"tasks.add", "tasks.mail"}, queues: []string{"celery"}, pool: "threads",
				reserved: []string{"d"}, scheduled: []string{"e", "f"},
			},
			{name: "w3", tasks: []string{"tasks.add"}, queues: []string{"celery"}, size: 2, scaled: true},
			{name: "w4", tasks: []string{"tasks.add"}, queues: []string{"celery"}, active: 1, deaf: []string{"reserved"}},
			{name: "gone", silent: 40 * time.Second},
		}
	}
	args := func(pairs ...any) map[string]any {
		m := make(map[string]any)
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	tests := map[string]struct {
		order command.ControlRequest
		want  command.Preview
	}{
		"ping": {
			command.ControlRequest{Method: "ping"},
			command.Preview{Summary: "Ping", Targets: []string{"every worker"}},
		},
		"last consumer": {
			command.ControlRequest{Method: "cancel_consumer", Arguments: args("queue", "mail"), Workers: []string{"w1"}},
			command.Preview{Summary: "Stop consuming from queue mail", Targets: []string{"w1"}, Warnings: []command.Warning{
				{Message: "This leaves queue mail with no consumer.", Severe: true},
			}},
		},
		"one consumer of many": {
			command.ControlRequest{Method: "cancel_consumer", Arguments: args("queue", "celery"), Workers: []string{"w1", "w1"}},
			command.Preview{Summary: "Stop consuming from queue celery", Targets: []string{"w1"}},
		},
		"all consumers together": {
			command.ControlRequest{Method: "cancel_consumer", Arguments: args("queue", "celery")},
			command.Preview{Summary: "Stop consuming from queue celery", Targets: []string{"every worker"}, Warnings: []command.Warning{
				{Message: "This leaves queue celery with no consumer.", Severe: true},
			}},
		},
		"no consumer": {
			command.ControlRequest{Method: "cancel_consumer", Arguments: args("queue", "mial"), Workers: []string{"w2"}},
			command.Preview{Summary: "Stop consuming from queue mial", Targets: []string{"w2"}, Warnings: []command.Warning{
				{Message: "w2 does not consume from queue mial. Perhaps mail was meant.", Severe: true},
			}},
		},
		"shutdown of one": {
			command.ControlRequest{Method: "shutdown", Workers: []string{"w2"}},
			command.Preview{Summary: "Shut down", Targets: []string{"w2"}, Warnings: []command.Warning{
				{Message: "1 task that has not started and 2 tasks that wait for their time return to the queue."},
				{Message: "w2 is the only worker that runs tasks.mail.", Severe: true},
			}},
		},
		"shutdown of one that does not answer": {
			command.ControlRequest{Method: "shutdown", Workers: []string{"w4"}},
			command.Preview{Summary: "Shut down", Targets: []string{"w4"}, Warnings: []command.Warning{
				{Message: "1 task is running there: a warm shutdown lets it end first."},
				{Message: "w4 did not report its tasks: these numbers come from heartbeats and events."},
			}},
		},
		"shutdown of two": {
			command.ControlRequest{Method: "shutdown", Workers: []string{"w1", "w2"}},
			command.Preview{Summary: "Shut down", Targets: []string{"w1", "w2"}, Confirm: "shutdown", Warnings: []command.Warning{
				{Message: "2 tasks are running there: a warm shutdown lets them end first."},
				{Message: "2 tasks that have not started and 2 tasks that wait for their time return to the queue."},
				{Message: "This leaves queue mail with no consumer.", Severe: true},
				{Message: "These 2 workers are all that run tasks.mail.", Severe: true},
			}},
		},
		"shutdown of all": {
			command.ControlRequest{Method: "shutdown"},
			command.Preview{Summary: "Shut down", Targets: []string{"every worker"}, Confirm: "shutdown", Warnings: []command.Warning{
				{Message: "3 tasks are running there: a warm shutdown lets them end first."},
				{Message: "2 tasks that have not started and 2 tasks that wait for their time return to the queue."},
				{Message: "w4 did not report its tasks: these numbers come from heartbeats and events."},
				{Message: "No worker is left after this.", Severe: true},
			}},
		},
		"offline": {
			command.ControlRequest{Method: "ping", Workers: []string{"gone"}},
			command.Preview{Summary: "Ping", Targets: []string{"gone"}, Warnings: []command.Warning{
				{Message: "gone has sent no heartbeat for 40 s: it will not receive this.", Severe: true},
			}},
		},
		"busy pool": {
			command.ControlRequest{Method: "pool_shrink", Workers: []string{"w1"}},
			command.Preview{Summary: "Shrink pool by 1", Targets: []string{"w1"}, Warnings: []command.Warning{
				{Message: "w1 runs 2 tasks in a pool of 2: it shrinks by no more than 0 now.", Severe: true},
			}},
		},
		"pools of all kinds": {
			command.ControlRequest{Method: "pool_grow", Arguments: args("n", 2)},
			command.Preview{Summary: "Grow pool by 2", Targets: []string{"every worker"}, Warnings: []command.Warning{
				{Message: "w2 has a threads pool, which cannot do this: it will refuse.", Severe: true},
				{Message: "w3 is autoscaled: it will refuse. Change the range of its autoscaler instead.", Severe: true},
			}},
		},
		"no autoscaler": {
			command.ControlRequest{Method: "autoscale", Arguments: args("max", 4, "min", 1), Workers: []string{"w1", "w3"}},
			command.Preview{Summary: "Autoscale: max 4, min 1", Targets: []string{"w1", "w3"}, Warnings: []command.Warning{
				{Message: "w1 was not started with --autoscale: it will refuse.", Severe: true},
			}},
		},
		"unknown task": {
			command.ControlRequest{Method: "rate_limit", Arguments: args("task_name", "tasks.ad", "rate_limit", "5/m"), Workers: []string{"w1"}},
			command.Preview{Summary: "Limit tasks.ad to 5/m", Targets: []string{"w1"}, Warnings: []command.Warning{
				{Message: "w1 has not registered task tasks.ad: it will reply that the task is unknown. Perhaps tasks.add was meant.", Severe: true},
			}},
		},
		"no rate limit": {
			command.ControlRequest{Method: "rate_limit", Arguments: args("task_name", "tasks.add", "rate_limit", 0)},
			command.Preview{Summary: "Lift the rate limit of tasks.add", Targets: []string{"every worker"}},
		},
		"time limits": {
			command.ControlRequest{Method: "time_limit", Arguments: args("task_name", "tasks.add", "hard", 10.5, "soft", nil)},
			command.Preview{Summary: "Set time limits of tasks.add: hard 10.5 s, soft none", Targets: []string{"every worker"}},
		},
		"new queue": {
			command.ControlRequest{Method: "add_consumer", Arguments: args("queue", "new"), Workers: []string{"w1"}},
			command.Preview{Summary: "Consume from queue new", Targets: []string{"w1"}, Warnings: []command.Warning{
				{Message: "No worker consumes from queue new so far: it is created if there is none."},
			}},
		},
		"revocation at one worker": {
			command.ControlRequest{Method: "terminate", Arguments: args("task_id", "t1", "signal", "SIGKILL"), Workers: []string{"w1"}},
			command.Preview{Summary: "Terminate task t1 with SIGKILL", Targets: []string{"w1"}, Warnings: []command.Warning{
				{Message: "Only w1 will revoke it: a task that another worker receives runs."},
			}},
		},
	}
	b := newBench(t, nil, workers()...)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := b.PreviewControl(t.Context(), tt.order)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Warnings { // time passes
				got.Warnings[i].Message = regexp.MustCompile(`for \d+ (s|min)`).ReplaceAllString(got.Warnings[i].Message, "for 40 s")
			}
			if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(command.Preview{}, "Held")); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
		})
	}
}

func TestShutdownPreviewNamesTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil,
		&worker{name: "w1", queues: []string{"celery"}, running: []string{"a", "b"}, reserved: []string{"c"}, scheduled: []string{"d"}},
		&worker{name: "w2", deaf: []string{"reserved"}, running: []string{"unheard"}},
	)
	onTwo := func(e *state.Event) {
		if e.Kind != state.TaskSent {
			e.Hostname = "w2"
		}
	}
	b.task("t1", state.TaskStarted, onTwo)
	b.task("t2", state.TaskReceived, onTwo)
	ids := func(list []command.HeldTask) (ids []string) {
		for _, h := range list {
			ids = append(ids, fmt.Sprint(h.Worker, " ", h.ID, " ", h.ByEvents))
		}
		slices.Sort(ids)
		return ids
	}
	got, err := b.PreviewControl(t.Context(), command.ControlRequest{Method: "shutdown"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"w1 a false", "w1 b false", "w2 t1 true"}, ids(got.Held.Running)); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"w1 c false", "w1 d false", "w2 t2 true"}, ids(got.Held.Waiting)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if got, err = b.PreviewControl(t.Context(), command.ControlRequest{Method: "ping"}); err != nil || got.Held != nil {
		t.Errorf("a ping concerns %v, %v, want no tasks", got.Held, err)
	}
}

func TestControlRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, &worker{name: "celery@w1"})
	tests := map[string]struct {
		order command.ControlRequest
		want  command.Error
	}{
		"method":   {command.ControlRequest{Method: "shutdwon"}, command.Error{Field: "method", Nearest: "shutdown"}},
		"harmful":  {command.ControlRequest{Method: "election"}, command.Error{Field: "method"}},
		"argument": {command.ControlRequest{Method: "add_consumer"}, command.Error{Field: "arguments.queue"}},
		"mistyped": {
			command.ControlRequest{Method: "pool_grow", Arguments: map[string]any{"n": "2"}},
			command.Error{Field: "arguments.n"},
		},
		"worker": {
			command.ControlRequest{Method: "ping", Workers: []string{"celery@w1", "celery@w2"}},
			command.Error{Kind: command.NotFound, Field: "workers[1]", Nearest: "celery@w1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := b.Control(t.Context(), by, tt.order)
			got, ok := errors.AsType[*command.Error](err)
			if !ok {
				t.Fatalf("error = %v, want an *action.Error", err)
			}
			if diff := cmp.Diff(*got, tt.want, cmpopts.IgnoreFields(command.Error{}, "Message")); diff != "" || got.Message == "" {
				t.Errorf("%v: got - want +\n%s", got, diff)
			}
		})
	}
	if list, _, err := b.db.Commands(t.Context(), history.CommandFilter{Limit: 10}); err != nil || len(list) > 0 {
		t.Errorf("outbox holds %v, %v, want nothing", list, err)
	}
}

func TestRepliesAreRecordedInTheOutbox(t *testing.T) {
	t.Parallel()
	w1, w2 := &worker{name: "w1", deaf: []string{"enable_events"}}, &worker{name: "w2"}
	b := newBench(t, nil, w1, w2)

	grow, err := b.Control(t.Context(), by, command.ControlRequest{Method: "pool_grow", Workers: []string{"w1", "w2"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []history.Command
	for _, c := range b.settled(t, grow) {
		c.Payload = nil
		got = append(got, c)
	}
	answer := func(node string) []history.Reply {
		return []history.Reply{{Node: node, Text: "TypeError('no')", Clock: 5}}
	}
	want := []history.Command{
		{Kind: "control", Group: "control", Target: "w1", Summary: "Grow pool by 1", State: history.CommandDone, Expected: []string{"w1"}, Replies: answer("w1"), Actor: "ada", Schema: 1},
		{Kind: "control", Group: "control", Target: "w2", Summary: "Grow pool by 1", State: history.CommandDone, Expected: []string{"w2"}, Replies: answer("w2"), Actor: "ada", Schema: 1},
	}
	ignore := cmp.Options{
		cmpopts.IgnoreFields(history.Command{}, "ID", "RequestID", "CreatedAt", "DueAt", "ExpiresAt", "ClaimedAt", "SentAt", "DoneAt"),
		cmpopts.IgnoreFields(history.Reply{}, "At"),
	}
	if diff := cmp.Diff(got, want, ignore); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	if left := got[0].ExpiresAt.Sub(got[0].CreatedAt); left > time.Minute || left < 40*time.Second {
		t.Errorf("expires after %s, want 1m", left)
	}

	events, err := b.Control(t.Context(), by, command.ControlRequest{Method: "enable_events"})
	if err != nil {
		t.Fatal(err)
	}
	one := b.settled(t, events)[0]
	if one.State != history.CommandNoReply || len(one.Replies) != 1 || len(one.Expected) != 2 || !one.Replies[0].OK {
		t.Errorf("state %s, answers %v of %v, want silent, one of two", one.State, one.Replies, one.Expected)
	}

	down, err := b.Control(t.Context(), by, command.ControlRequest{Method: "shutdown", Workers: []string{"w2"}})
	if err != nil {
		t.Fatal(err)
	}
	if one := b.settled(t, down)[0]; one.State != history.CommandDone || len(one.Replies) > 0 {
		t.Errorf("shutdown is %s with %v, want done with no answer", one.State, one.Replies)
	}
	if n, m := len(w1.requests("shutdown")), len(w2.requests("shutdown")); n != 0 || m != 1 {
		t.Errorf("shutdown was heard %d and %d times, want 0 and 1", n, m)
	}
}

func TestRequestsAreAudited(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, &worker{name: "w1"})
	if _, err := b.Control(t.Context(), by, command.ControlRequest{Method: "ping", Workers: []string{"w1"}}); err != nil {
		t.Fatal(err)
	}
	list, _, err := b.db.AuditLog(t.Context(), history.AuditFilter{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Fatalf("audit = %v, %v, want one record", list, err)
	}
	got := list[0]
	if got.Actor != "ada" || got.RemoteAddr != "192.0.2.1" || got.Action != "ping" || got.Target != "w1" || got.Commands != 1 {
		t.Errorf("record = %+v", got)
	}
	if got.Endpoint != "a test" || !strings.Contains(got.Detail, "w1") {
		t.Errorf("endpoint = %q, detail = %s, want the endpoint and the request", got.Endpoint, got.Detail)
	}
}

func TestAnIdempotencyKeyIsOneRequest(t *testing.T) {
	t.Parallel()
	w := &worker{name: "w1", tasks: []string{"tasks.add"}, queues: []string{"celery"}}
	b := newBench(t, nil, w)
	b.task("t1", state.TaskReceived, nil)
	keyed := by
	keyed.IdempotencyKey = "key"
	order := command.BulkRequest{Action: "revoke", IDs: []string{"t1"}}
	first, err := b.Bulk(t.Context(), keyed, order)
	if err != nil {
		t.Fatal(err)
	}
	b.settled(t, first)
	b.task("t1", state.TaskRevoked, nil) // and now it could not be revoked any more
	again, err := b.Bulk(t.Context(), keyed, order)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Replayed || first.Replayed || again.Commands[0].ID != first.Commands[0].ID {
		t.Errorf("replayed %v as %d, want true as %d", again.Replayed, again.Commands[0].ID, first.Commands[0].ID)
	}
	if n := len(w.requests("revoke")); n != 1 {
		t.Errorf("revoked %d times, want once", n)
	}
	if _, err = b.Bulk(t.Context(), keyed, command.BulkRequest{Action: "revoke", IDs: []string{"t2"}}); !errors.Is(err, history.ErrKeyReused) {
		t.Errorf("error for another order = %v, want ErrKeyReused", err)
	}
}
