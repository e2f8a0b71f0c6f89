package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// crowd is a bench with a task in every condition.
func crowd(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, nil,
		&worker{name: "w1", tasks: []string{"tasks.add"}, queues: []string{"celery"}, size: 2},
		&worker{name: "threads", pool: "threads"}, &worker{name: "gone", silent: time.Minute},
	)
	on := func(worker string) func(e *state.Event) {
		return func(e *state.Event) {
			if e.Kind != state.TaskSent {
				e.Hostname = worker
			}
		}
	}
	b.task("sent", state.TaskSent, nil)
	b.task("received", state.TaskReceived, nil)
	b.task("running", state.TaskStarted, nil)
	b.task("running in a thread", state.TaskStarted, on("threads"))
	b.task("running nowhere", state.TaskStarted, on("gone"))
	b.task("done", state.TaskSucceeded, nil)
	b.task("failed", state.TaskFailed, nil)
	b.task("failed with cut args", state.TaskFailed, func(e *state.Event) { e.Args = "('long...',)" })
	b.task("failed elsewhere", state.TaskFailed, func(e *state.Event) { e.Queue = "other" })
	b.task("failed of another name", state.TaskFailed, func(e *state.Event) { e.Name = "tasks.gone" })
	return b
}

var everyID = []string{
	"sent", "received", "running", "running in a thread", "running nowhere", "done", "failed", "failed with cut args", "failed elsewhere",
	"failed of another name", "none", "sent",
}

func TestBulkPreviewListsBlockedTasks(t *testing.T) {
	t.Parallel()
	b := crowd(t)
	finished := command.Blocked{
		Reason: "already finished", N: 5, IDs: []string{"done", "failed", "failed with cut args", "failed elsewhere", "failed of another name"},
	}
	none := command.Blocked{Reason: "no such task", N: 1, IDs: []string{"none"}}
	tests := map[string]command.BulkPreview{
		"revoke": {
			Preview: command.Preview{Summary: "Revoke 2 tasks", Targets: []string{"every worker"}},
			Matched: history.Count{N: 11, Exact: true}, Selected: 2, States: map[state.State]int{state.Pending: 1, state.Received: 1},
			Blocked: []command.Blocked{
				none,
				{Reason: "already running: only terminate ends it", N: 3, IDs: []string{"running", "running in a thread", "running nowhere"}},
				finished,
			},
		},
		"terminate": {
			Preview: command.Preview{Summary: "Terminate 1 task with SIGTERM", Targets: []string{"every worker"}, Confirm: "terminate"},
			Matched: history.Count{N: 11, Exact: true}, Selected: 1, States: map[state.State]int{state.Started: 1},
			Blocked: []command.Blocked{
				none,
				{Reason: "never received", N: 1, IDs: []string{"sent"}},
				{Reason: "not running", N: 1, IDs: []string{"received"}},
				{Reason: "in a threads pool, which cannot end a task", N: 1, IDs: []string{"running in a thread"}},
				{Reason: "on an offline worker", N: 1, IDs: []string{"running nowhere"}},
				finished,
			},
		},
		"retry": {
			Preview: command.Preview{Summary: "Run 2 tasks again", Targets: []string{"queue celery"}},
			Matched: history.Count{N: 11, Exact: true}, Selected: 2, States: map[state.State]int{state.Success: 1, state.Failure: 1},
			Blocked: []command.Blocked{
				none,
				{Reason: "not finished", N: 5, IDs: []string{"sent", "received", "running", "running in a thread", "running nowhere"}},
				{Reason: "arguments cut short, or not known for certain", N: 1, IDs: []string{"failed with cut args"}, Typed: true},
				{Reason: "no worker that replied consumes from queue other", N: 1, IDs: []string{"failed elsewhere"}},
				{Reason: "no worker that replied has registered task tasks.gone", N: 1, IDs: []string{"failed of another name"}},
			},
		},
	}
	for act, want := range tests {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			got, err := b.PreviewBulk(t.Context(), command.BulkRequest{Action: act, IDs: everyID})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(command.Preview{}, "Warnings"), cmpopts.IgnoreFields(command.Blocked{}, "Remedy")); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
			if want := map[string]int{"revoke": 1, "terminate": 1, "retry": 2}[act]; len(got.Warnings) != want {
				t.Errorf("warnings = %v, want %d", got.Warnings, want)
			}
		})
	}
}

func TestTerminationWarnsByPool(t *testing.T) {
	t.Parallel()
	var workers []*worker
	for _, pool := range []string{"prefork", "gevent", "eventlet", "solo"} {
		workers = append(workers, &worker{name: pool, pool: pool, size: 1})
	}
	b := newBench(t, nil, workers...)
	for _, w := range workers {
		b.task("on "+w.name, state.TaskStarted, func(e *state.Event) {
			if e.Kind != state.TaskSent {
				e.Hostname = w.name
			}
		})
	}
	const (
		process = "The pool process is killed, with whatever it runs by then."
		green   = "1 task runs in a %s pool: the greenlet is killed where it next waits, whatever the signal is. Older versions of Celery refuse."
	)
	tests := map[string]struct{ ids, want []string }{
		"prefork":  {[]string{"on prefork"}, []string{process}},
		"gevent":   {[]string{"on gevent"}, []string{fmt.Sprintf(green, "gevent")}},
		"eventlet": {[]string{"on eventlet", "on solo"}, []string{fmt.Sprintf(green, "eventlet")}},
		"both":     {[]string{"on prefork", "on gevent"}, []string{process, fmt.Sprintf(green, "gevent")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := b.PreviewBulk(t.Context(), command.BulkRequest{Action: "terminate", IDs: tt.ids})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(messages(got.Warnings), tt.want); diff != "" {
				t.Errorf("warnings: got - want +\n%s", diff)
			}
		})
	}
}

// messages are the sentences of warnings.
func messages(list []command.Warning) (said []string) {
	for _, w := range list {
		said = append(said, w.Message)
	}
	return said
}

// TestWhatIsOfferedIsTaken compares what pages offer with what is accepted, also where a worker knows more than events.
func TestWhatIsOfferedIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, &worker{
		name: "w1", size: 2, running: []string{"runs already", "unheard of"}, reserved: []string{"received", "waits unheard of"},
	}, &worker{name: "restarted", size: 2})
	b.task("runs already", state.TaskReceived, nil)
	b.task("received", state.TaskReceived, nil)
	heartbeat := func(pid int64, at time.Time) state.Event {
		return state.Event{
			Kind: state.WorkerHeartbeat, Hostname: "restarted", PID: pid, Clock: pid, Micros: at.UnixMicro(), ReceivedMicros: at.UnixMicro(),
			Present: state.FieldClock | state.FieldTimestamp,
		}
	}
	b.apply(heartbeat(7, time.UnixMicro(1795222153_000000)))
	b.task("orphaned", state.TaskStarted, func(e *state.Event) {
		if e.Kind != state.TaskSent {
			e.Hostname, e.PID = "restarted", 7
		}
	})
	b.apply(heartbeat(1, time.Now()))
	b.task("running", state.TaskStarted, nil)
	b.task("done", state.TaskSucceeded, nil)
	if _, err := b.PreviewControl(t.Context(), command.ControlRequest{Method: "pool_grow", Workers: []string{"w1"}}); err != nil {
		t.Fatal(err) // which has the worker asked
	}
	want := map[string]string{
		"runs already": "terminate", "unheard of": "terminate", "received": "revoke", "waits unheard of": "revoke", "running": "terminate", "done": "",
		"orphaned": "revoke",
	}
	for id, offered := range want {
		seen := []state.Task{{ID: id, State: state.Pending}}
		b.View(func(c state.View) {
			if known, ok := c.Task(id); ok {
				seen[0] = known
			}
		})
		for _, act := range []string{"revoke", "terminate"} {
			if got := b.Ineligible(act, seen)[0] == ""; got != (act == offered) {
				t.Errorf("%s of %s is offered: %v", act, id, got)
			}
			v, err := b.PreviewBulk(t.Context(), command.BulkRequest{Action: act, IDs: []string{id}})
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Selected == 1; got != (act == offered) {
				t.Errorf("%s of %s is taken: %v, blocked %v", act, id, got, v.Blocked)
			}
		}
	}
}

func TestBulkRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	b.task("done", state.TaskSucceeded, nil)
	b.task("8c51f2a0-11aa", state.TaskSucceeded, nil)
	tests := map[string]struct {
		order command.BulkRequest
		want  command.Error
	}{
		"signal":       {command.BulkRequest{Action: "terminate", Signal: "kill", IDs: []string{"done"}}, command.Error{Field: "signal", Nearest: "SIGKILL"}},
		"needless":     {command.BulkRequest{Action: "revoke", Signal: "SIGKILL", IDs: []string{"done"}}, command.Error{Field: "signal"}},
		"ids":          {command.BulkRequest{Action: "revoke", IDs: make([]string, 10_001)}, command.Error{Field: "ids"}},
		"no such task": {command.BulkRequest{Action: "revoke", IDs: []string{"none"}}, command.Error{Kind: command.NotFound, Field: "ids[0]"}},
		"piece of id": {
			command.BulkRequest{Action: "revoke", IDs: []string{"8c51f2a0"}},
			command.Error{Kind: command.NotFound, Field: "ids[0]", Nearest: "8c51f2a0-11aa"},
		},
		"end of id": {
			command.BulkRequest{Action: "revoke", IDs: []string{"8c51f2a0-11ab"}},
			command.Error{Kind: command.NotFound, Field: "ids[0]", Nearest: "8c51f2a0-11aa"},
		},
		"finished": {command.BulkRequest{Action: "revoke", IDs: []string{"done"}}, command.Error{Kind: command.Conflict}},
		"no match": {
			command.BulkRequest{Action: "revoke", Query: query.New(query.Equal(query.State, "FAILURE"))},
			command.Error{Kind: command.Conflict},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := b.Bulk(t.Context(), by, tt.order)
			got, ok := errors.AsType[*command.Error](err)
			if !ok {
				t.Fatalf("error = %v, want an *action.Error", err)
			}
			if diff := cmp.Diff(*got, tt.want, cmpopts.IgnoreFields(command.Error{}, "Message")); diff != "" {
				t.Errorf("%v: got - want +\n%s", got, diff)
			}
		})
	}
}

func TestBulkNamesAHundredTasksAtATime(t *testing.T) {
	t.Parallel()
	w := &worker{name: "w1", tasks: []string{"tasks.add"}, queues: []string{"celery"}}
	b := newBench(t, nil, w)
	for i := range 620 {
		b.task(fmt.Sprintf("t%d", i), state.TaskReceived, nil)
	}
	o := command.BulkRequest{Action: "revoke", Cap: 250}
	v, err := b.PreviewBulk(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if v.Selected != 250 || !v.Capped || v.Matched.N != 620 || v.Confirm != "revoke" {
		t.Errorf("chosen %d of %d, capped %v, confirm %q, want 250 of 620, true and revoke", v.Selected, v.Matched.N, v.Capped, v.Confirm)
	}
	r, err := b.Bulk(t.Context(), by, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.settled(t, r) {
		if c.State != history.CommandDone || len(c.Replies) != 1 || !c.Replies[0].OK {
			t.Errorf("command %s is %s with %v, want done and answered", c.Summary, c.State, c.Replies)
		}
	}
	var sizes []int
	seen := make(map[any]bool)
	for _, heard := range w.requests("revoke") {
		ids := heard.Arguments["task_id"].([]any)
		sizes = append(sizes, len(ids))
		for _, id := range ids {
			seen[id] = true
		}
	}
	if diff := cmp.Diff(sizes, []int{100, 100, 50}); diff != "" || len(seen) != 250 {
		t.Errorf("%d tasks were named in %v, want 250", len(seen), sizes)
	}
}

func TestBulkRetriesEachTaskByItself(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	for i := range 12 {
		b.task(fmt.Sprintf("t%02d", i), state.TaskFailed, func(e *state.Event) { e.Args = fmt.Sprintf("(%d,)", i) })
	}
	r, err := b.Bulk(t.Context(), by, command.BulkRequest{Action: "retry", Query: query.New(query.Equal(query.State, "FAILURE"))})
	if err != nil {
		t.Fatal(err)
	}
	b.settled(t, r)
	args := make(map[string]string)
	for _, m := range b.waiting(t, "celery") {
		args[m.ParentID] = string(m.Args)
	}
	for i := range 12 {
		if got, want := args[fmt.Sprintf("t%02d", i)], fmt.Sprintf("[%d]", i); got != want {
			t.Errorf("task %d runs again with %s, want %s", i, got, want)
		}
	}
}

// TestBulkRetriesWhatJSONLacks retries tasks whose arguments have Decimals, or are cut: encoded, or typed in once for all.
func TestBulkRetriesWhatJSONLacks(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	set := func(args, kwargs string) func(e *state.Event) {
		return func(e *state.Event) { e.Args, e.Kwargs = args, kwargs }
	}
	b.task("plain", state.TaskFailed, set("(1,)", "{}"))
	b.task("decimal", state.TaskFailed, set("(Decimal('12.50'),)", "{'on': datetime.date(2026, 11, 3)}"))
	b.task("cut", state.TaskFailed, set("(2,)", "{'lines': [...]}"))
	all := command.BulkRequest{Action: "retry", Query: query.New(query.Equal(query.State, "FAILURE"))}
	preview := func(o command.BulkRequest) (selected int, blocked string) {
		v, err := b.PreviewBulk(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range v.Blocked {
			if !x.Typed || x.Remedy == "" {
				t.Errorf("%q has no remedy: %+v", x.Reason, x)
			}
			blocked += fmt.Sprintf("%v %v ", x.IDs, x.Objects)
		}
		return v.Selected, blocked
	}
	if n, blocked := preview(all); n != 1 || !strings.Contains(blocked, "[decimal] true") || !strings.Contains(blocked, "[cut] false") {
		t.Errorf("as it is: %d selected, blocked %s", n, blocked)
	}
	all.Objects = true
	if n, blocked := preview(all); n != 2 || blocked != "[cut] false " {
		t.Errorf("encoded: %d selected, blocked %s", n, blocked)
	}
	all.Kwargs = []byte(`{"lines":[]}`)
	if n, blocked := preview(all); n != 3 || blocked != "" {
		t.Errorf("typed in: %d selected, blocked %s", n, blocked)
	}
	r, err := b.Bulk(t.Context(), by, all)
	if err != nil {
		t.Fatal(err)
	}
	b.settled(t, r)
	got := make(map[string]string)
	for _, m := range b.waiting(t, "celery") {
		got[m.ParentID] = string(m.Args) + " " + string(m.Kwargs)
	}
	want := map[string]string{
		"plain":   "[1] {}",
		"decimal": `[{"__type__":"decimal","__value__":"12.50"}] {"on":{"__type__":"date","__value__":"2026-11-03"}}`,
		"cut":     `[2] {"lines":[]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for _, wrong := range []command.BulkRequest{
		{Action: "retry", IDs: []string{"cut"}, Kwargs: []byte(`[]`)},
		{Action: "retry", IDs: []string{"cut"}, Args: []byte(`null`)},
		{Action: "revoke", IDs: []string{"cut"}, Objects: true},
	} {
		if _, err := b.PreviewBulk(t.Context(), wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

func TestTerminateSendsTheSignal(t *testing.T) {
	t.Parallel()
	w := &worker{name: "w1", tasks: []string{"tasks.add"}, queues: []string{"celery"}}
	b := newBench(t, nil, w)
	b.task("t1", state.TaskStarted, nil)
	r, err := b.Bulk(t.Context(), by, command.BulkRequest{Action: "terminate", IDs: []string{"t1"}, Signal: "SIGKILL"})
	if err != nil {
		t.Fatal(err)
	}
	c := b.settled(t, r)[0]
	if c.TaskID != "t1" || c.Target != "every worker" || c.Summary != "Terminate task t1 with SIGKILL" {
		t.Errorf("command = %+v", c)
	}
	want := map[string]any{"task_id": []any{"t1"}, "terminate": true, "signal": "SIGKILL"}
	if diff := cmp.Diff(w.requests("revoke")[0].Arguments, want); diff != "" {
		t.Errorf("arguments: got - want +\n%s", diff)
	}
}

func TestSendRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	command := func(kind, payload string) history.Command {
		return history.Command{Schema: history.CommandSchema, Kind: kind, Payload: []byte(payload)}
	}
	foreign := command("purge", `{"queue": "mail"}`)
	foreign.Schema++
	expired := command("control", `{"method": "ping"}`)
	expired.ExpiresAt = expired.ExpiresAt.AddDate(2000, 0, 0)
	tests := map[string]struct {
		command history.Command
		want    string
	}{
		"kind":         {command("mail", `{}`), "no command is of kind"},
		"schema":       {foreign, "schema"},
		"expired":      {expired, "expired"},
		"payload":      {command("task", `[`), "read payload"},
		"method":       {command("control", `{"method": "election"}`), "no method"},
		"argument":     {command("control", `{"method": "add_consumer"}`), "queue"},
		"bad message":  {command("task", `{"queue": "celery", "name": "tasks.add"}`), "id"},
		"expired task": {command("task", `{"queue": "celery", "name": "tasks.add", "id": "i", "expires": "2001-01-01T00:00:00Z"}`), "expires"},
		"no queue":     {command("task", `{"queue": "none", "name": "tasks.add", "id": "i"}`), "no such queue"},
		"purge":        {command("purge", `{"queue": "none"}`), "no such queue"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := b.Send(t.Context(), tt.command)
			if !errors.Is(err, relay.ErrPermanent) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want a permanent one with %q", err, tt.want)
			}
		})
	}
}

func TestSendWaitsForTheBroker(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	b.broker.Refuse(errors.New("away"))
	b.broker.Fail(broker.ErrClosed)
	for _, c := range []history.Command{
		{Schema: history.CommandSchema, Kind: "task", Payload: []byte(`{"queue": "celery", "name": "tasks.add", "id": "i"}`)},
		{Schema: history.CommandSchema, Kind: "control", Payload: []byte(`{"method": "ping"}`)},
		{Schema: history.CommandSchema, Kind: "purge", Payload: []byte(`{"queue": "mail"}`)},
	} {
		if _, err := b.Send(t.Context(), c); !errors.Is(err, relay.ErrUnavailable) {
			t.Errorf("%s: error = %v, want ErrUnavailable", c.Kind, err)
		}
	}
	gone, end := context.WithCancel(t.Context())
	end()
	if _, err := b.Send(gone, history.Command{Schema: 1, Kind: "purge", Payload: []byte(`{"queue": "mail"}`)}); !errors.Is(err, relay.ErrUnavailable) {
		t.Errorf("error after the end = %v, want ErrUnavailable", err)
	}
}
