package command_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/state"
)

func TestEndToEndActionsOnRabbitMQ(t *testing.T) {
	t.Parallel()
	actsOn(t, "RabbitMQ")
}

func TestEndToEndActionsOnRedis(t *testing.T) {
	t.Parallel()
	actsOn(t, "Redis")
}

// actsOn has real workers do what they are told by way of the outbox. One of them runs one task at a time.
func actsOn(t *testing.T, kind string) {
	t.Helper()
	c := clusterOn(t, kind)
	c.work(t, "one@test", "-P", "prefork", "-c", "1", "-Q", "celery,urgent")
	c.work(t, "two@test", "-P", "prefork", "-c", "2", "-Q", "other")
	eventually(t, "queues of both", func() bool { return len(c.Inspector.Topology(t.Context()).Queues) == 3 })
	for _, step := range []func(t *testing.T, c *cluster){
		publishes, showsAtOnce, warns, keepsTimes, keepsPriority, repeatsOneOfMany, repeatsAsItWas, repeatsWhatCameWithIt,
		tellsWhatShutdownGivesBack, revokesReserved, terminates, repeatsFailures, controls, movesConsumers, drains,
	} {
		step(t, c) // one after the other: they share the worker that runs one task at a time
	}
}

// echoed is what echo returns, as an event shows it.
func echoed(t *testing.T, s *string) string {
	t.Helper()
	if s == nil {
		t.Fatal("task has no result")
	}
	return strings.Trim(*s, "'")
}

func publishes(t *testing.T, c *cluster) {
	t.Helper()
	tests := map[string]struct{ args, kwargs, want string }{
		"nothing": {"", "", `[[], {}]`},
		"nested":  {`[1, [2.5, {"a": [null, true]}]]`, `{"b": {"c": []}}`, `[[1, [2.5, {"a": [null, true]}]], {"b": {"c": []}}]`},
		"unicode": {`["ü☃😀", "\ud83d\ude00"]`, `{"schlüssel": 1}`, `[["\u00fc\u2603\ud83d\ude00", "\ud83d\ude00"], {"schl\u00fcssel": 1}]`},
		"huge":    {`[123456789012345678901234567890, 1e300]`, ``, `[[123456789012345678901234567890, 1e+300], {}]`},
		"wrapped": {`[{"__type__": "decimal", "__value__": "1.10"}]`, ``, `[["1.10"], {}]`},
		"dates":   {`[{"__type__": "datetime", "__value__": "2026-11-21T00:49:15+00:00"}]`, ``, `[["2026-11-21 00:49:15+00:00"], {}]`},
	}
	ids := make(map[string]string)
	for name, tt := range tests {
		ids[name] = c.publish(t, command.TaskRequest{Name: "tasks.echo", Args: json.RawMessage(tt.args), Kwargs: json.RawMessage(tt.kwargs)})
	}
	for name, tt := range tests {
		if got := echoed(t, c.task(t, ids[name], state.Success).Result); got != tt.want {
			t.Errorf("%s: echo is %s, want %s", name, got, tt.want)
		}
	}
	_, err := c.Publish(t.Context(), by, command.TaskRequest{Name: "tasks.ecko"})
	if wrong, ok := err.(*command.Error); !ok || wrong.Nearest != "tasks.echo" { //nolint:errorlint // it is none that wraps
		t.Errorf("error for tasks.ecko = %v, want one that names tasks.echo", err)
	}
}

// warns checks what is said of times and priorities, which brokers take in different ways.
func warns(t *testing.T, c *cluster) {
	t.Helper()
	v, err := c.PreviewTask(t.Context(), command.TaskRequest{Name: "tasks.echo", Countdown: 2 * time.Hour, Priority: new(uint8(1))})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"RabbitMQ heeds the priority only"}
	if c.kind == "Redis" {
		want = []string{"Its ETA lies beyond the visibility timeout of 60 min", "On Redis priority 0 is the most urgent"}
	}
	if len(v.Warnings) != len(want) {
		t.Fatalf("warnings = %v, want those that begin with %q", v.Warnings, want)
	}
	for i := range want {
		if !strings.HasPrefix(v.Warnings[i].Message, want[i]) {
			t.Errorf("warning %q, want one that begins with %q", v.Warnings[i].Message, want[i])
		}
	}
}

func keepsTimes(t *testing.T, c *cluster) {
	t.Helper()
	later := c.publish(t, command.TaskRequest{Name: "tasks.echo", Countdown: time.Second, Queue: "other"})
	at := c.publish(t, command.TaskRequest{Name: "tasks.echo", ETA: time.Now().Add(time.Second), Queue: "other"})
	g := newGate(t)
	held := c.publish(t, command.TaskRequest{Name: "tasks.hold", Args: arguments(string(g))})
	c.task(t, held, state.Started)
	expires := time.Now().Add(1500 * time.Millisecond)
	late := c.publish(t, command.TaskRequest{Name: "tasks.echo", Expires: expires})
	c.task(t, late, state.Received, state.Revoked)
	eventually(t, "expiry", func() bool { return time.Now().After(expires) })
	g.open(t)
	c.task(t, late, state.Revoked)
	for _, id := range []string{later, at} {
		got := c.task(t, id, state.Success)
		eta, err := time.Parse(time.RFC3339Nano, *got.ETA)
		if err != nil || got.StartedAt < eta.UnixMicro() {
			t.Errorf("task with ETA %v, %v, began at %v", eta, err, time.UnixMicro(got.StartedAt))
		}
	}
}

// arguments is a JSON array of one text.
func arguments(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf("[%q]", text))
}

func keepsPriority(t *testing.T, c *cluster) {
	t.Helper()
	g := newGate(t)
	held := c.publish(t, command.TaskRequest{Name: "tasks.hold", Args: arguments(string(g)), Queue: "urgent"})
	c.task(t, held, state.Started)
	low, high := new(uint8(0)), new(uint8(9))
	if c.kind == "Redis" {
		low, high = high, low
	}
	fetched := c.publish(t, command.TaskRequest{Name: "tasks.echo", Queue: "urgent", Priority: low})
	c.task(t, fetched, state.Received)
	second := c.publish(t, command.TaskRequest{Name: "tasks.echo", Queue: "urgent", Priority: low})
	first := c.publish(t, command.TaskRequest{Name: "tasks.echo", Queue: "urgent", Priority: high})
	g.open(t)
	after, before := c.task(t, second, state.Success), c.task(t, first, state.Success)
	if before.StartedAt > after.StartedAt {
		t.Errorf("the urgent task began at %d, after the other at %d", before.StartedAt, after.StartedAt)
	}
}

// repeatsOneOfMany repeats a step of a chain and a member of a group by themselves.
func repeatsOneOfMany(t *testing.T, c *cluster) {
	t.Helper()
	p := c.client(t)
	c.task(t, p.Chain[2], state.Success)
	c.task(t, p.Group[1], state.Success)
	for _, tt := range []struct{ id, root string }{{p.Chain[1], p.Chain[0]}, {p.Group[0], p.Group[0]}} {
		old := c.task(t, tt.id, state.Success)
		o, source, err := c.Retry(t.Context(), old.ID)
		if err != nil || source != "result backend" {
			t.Fatalf("retry of %s: %q, %v, want the result backend", old.ID, source, err)
		}
		got := c.task(t, c.publish(t, o), state.Success)
		if echoed(t, got.Result) != echoed(t, old.Result) {
			t.Errorf("echo is %s, want %s", *got.Result, *old.Result)
		}
		if *got.RootID != tt.root || *got.ParentID != old.ID {
			t.Errorf("root %s and parent %s, want %s and %s", *got.RootID, *got.ParentID, tt.root, old.ID)
		}
	}
}

// TestEndToEndMessageIsAsCeleryWritesIt reads what Celery has published, writes it anew, and compares.
func TestEndToEndMessageIsAsCeleryWritesIt(t *testing.T) {
	t.Parallel()
	c := clusterOn(t, "Redis")
	id := c.client(t).Parked
	list, err := c.Client.Peek(t.Context(), "parked", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("peek = %v, %v, want one message", list, err)
	}
	theirs := list[0]
	m, err := celery.ParseMessage(theirs)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := m.Publishing(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != id || theirs.ReplyTo == "" {
		t.Errorf("message of %s, want %s", m.ID, id)
	}
	theirs.ReplyTo = "" // Umbel has no use for the queue of a client
	var expires [2]int
	for i, p := range []*broker.Publishing{&ours, &theirs} {
		if expires[i], err = strconv.Atoi(p.Expiration); err != nil {
			t.Errorf("expiration %q: %v", p.Expiration, err)
		}
		p.Expiration = ""
	}
	if late := expires[1] - expires[0]; late < 0 || late > 20_000 {
		t.Errorf("expiration differs by %d ms", late)
	}
	body := cmp.Transformer("body", func(b []byte) (v any) {
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		return v
	})
	// The publisher knows the values that JSON wraps by what they are.
	for _, p := range []broker.Publishing{ours, theirs} {
		delete(p.Headers, "argsrepr")
		delete(p.Headers, "kwargsrepr")
	}
	if diff := cmp.Diff(ours, theirs, body); diff != "" {
		t.Errorf("ours - theirs +\n%s", diff)
	}
}

func repeatsAsItWas(t *testing.T, c *cluster) {
	t.Helper()
	long := strings.Repeat("long ", 400)
	tests := map[string]struct {
		args   json.RawMessage
		source string
	}{
		"short": {arguments("short"), "outbox"},
		"long":  {arguments(long), "outbox"},
	}
	for name, tt := range tests {
		first := c.task(t, c.publish(t, command.TaskRequest{Name: "tasks.echo", Args: tt.args, Kwargs: json.RawMessage(`{"a":1}`)}), state.Success)
		o, source, err := c.Retry(t.Context(), first.ID)
		if err != nil || source != tt.source {
			t.Fatalf("%s: arguments from %q, %v, want %q", name, source, err, tt.source)
		}
		var got, want any
		if json.Unmarshal(o.Args, &got) != nil || json.Unmarshal(tt.args, &want) != nil || !cmp.Equal(got, want) || o.Queue != "celery" {
			t.Errorf("%s: would run with %s in queue %s", name, o.Args, o.Queue)
		}
		again := c.task(t, c.publish(t, o), state.Success)
		if *again.Result != *first.Result || again.ID == first.ID {
			t.Errorf("%s: ran again as %s with %s, want %s", name, again.ID, *again.Result, *first.Result)
		}
	}
}

func revokesReserved(t *testing.T, c *cluster) {
	t.Helper()
	g := newGate(t)
	held := c.publish(t, command.TaskRequest{Name: "tasks.hold", Args: arguments(string(g))})
	c.task(t, held, state.Started)
	const reserved = "reserved-by-the-worker"
	m, err := celery.Message{ID: reserved, Name: "tasks.echo", Args: arguments(reserved)}.Publishing(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Publish(t.Context(), "celery", m); err != nil { // of which Umbel keeps no record
		t.Fatal(err)
	}
	c.task(t, reserved, state.Received)
	want := map[string]string{"RabbitMQ": "worker", "Redis": "broker"}[c.kind]
	o, source, err := c.Retry(t.Context(), reserved)
	if err != nil || source != want || string(o.Args) != string(arguments(reserved)) || o.Queue != "celery" {
		t.Errorf("a reserved task would run again with %s in queue %s, from %q, %v, want it from the %s", o.Args, o.Queue, source, err, want)
	}
	r, err := c.Bulk(t.Context(), by, command.BulkRequest{Action: "revoke", IDs: []string{reserved}})
	if err != nil {
		t.Fatal(err)
	}
	got := c.settled(t, r)[0]
	if len(got.Replies) != 2 || !strings.Contains(got.Replies[0].Text, "revoked") {
		t.Errorf("answers = %v, want that of two workers", got.Replies)
	}
	g.open(t)
	c.task(t, reserved, state.Revoked)
	c.task(t, held, state.Success)
}

func terminates(t *testing.T, c *cluster) {
	t.Helper()
	held := c.publish(t, command.TaskRequest{Name: "tasks.hold", Args: arguments(string(newGate(t))), Queue: "other"})
	c.task(t, held, state.Started)
	r, err := c.Bulk(t.Context(), by, command.BulkRequest{Action: "terminate", IDs: []string{held}, Signal: "SIGKILL"})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, a := range c.settled(t, r)[0].Replies {
		said += a.Node + ": " + a.Text + "\n"
	}
	if !strings.Contains(said, "two@test: terminate: "+held) {
		t.Errorf("answers:\n%s", said)
	}
	c.task(t, held, state.Revoked)
}

func repeatsFailures(t *testing.T, c *cluster) {
	t.Helper()
	var ids []string
	for i := range 5 {
		ids = append(ids, c.publish(t, command.TaskRequest{Name: "tasks.boom", Args: arguments(fmt.Sprint(i)), Queue: "other"}))
	}
	for _, id := range ids {
		c.task(t, id, state.Failure)
	}
	v, err := c.PreviewBulk(t.Context(), command.BulkRequest{Action: "retry", IDs: ids})
	if err != nil || v.Selected != 5 {
		t.Fatalf("preflight = %+v, %v, want 5 tasks", v, err)
	}
	r, err := c.Bulk(t.Context(), by, command.BulkRequest{Action: "retry", IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	var failures []string
	for _, one := range c.settled(t, r) {
		failures = append(failures, *c.task(t, one.TaskID, state.Failure).Exception)
	}
	slices.Sort(failures)
	if diff := cmp.Diff(failures, []string{"ValueError('0')", "ValueError('1')", "ValueError('2')", "ValueError('3')", "ValueError('4')"}); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
}

func controls(t *testing.T, c *cluster) {
	t.Helper()
	args := func(pairs ...any) map[string]any {
		m := make(map[string]any)
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	for _, tt := range []struct {
		method  string
		args    map[string]any
		workers []string
		want    map[string]string
	}{
		{"ping", nil, nil, map[string]string{"one@test": "pong", "two@test": "pong"}},
		{
			"rate_limit", args("task_name", "tasks.boom", "rate_limit", "100/s"),
			[]string{"two@test"},
			map[string]string{"two@test": "new rate limit set successfully"},
		},
		{
			"rate_limit", args("task_name", "tasks.boom", "rate_limit", 0),
			[]string{"two@test"},
			map[string]string{"two@test": "rate limit disabled successfully"},
		},
		{
			"time_limit", args("task_name", "tasks.boom", "hard", 60.0, "soft", 30), nil,
			map[string]string{"one@test": "time limits set successfully", "two@test": "time limits set successfully"},
		},
		{"time_limit", args("task_name", "tasks.none", "hard", nil), []string{"one@test"}, map[string]string{"one@test": "error: unknown task"}},
		{"pool_grow", args("n", 1), []string{"two@test"}, map[string]string{"two@test": "pool will grow"}},
		{"pool_shrink", nil, []string{"two@test"}, map[string]string{"two@test": "pool will shrink"}},
		{
			"autoscale", args("min", 1, "max", 2),
			[]string{"two@test"},
			map[string]string{"two@test": "error: ValueError('Autoscale not enabled')"},
		},
	} {
		if got := c.control(t, tt.method, tt.args, tt.workers...); !maps.Equal(got, tt.want) {
			t.Errorf("%s %v is answered with %v, want %v", tt.method, tt.args, got, tt.want)
		}
	}
}

func movesConsumers(t *testing.T, c *cluster) {
	t.Helper()
	queue := map[string]any{"queue": "extra"}
	if got := c.control(t, "add_consumer", queue, "two@test"); got["two@test"] != "add consumer extra" {
		t.Errorf("add_consumer is answered with %v", got)
	}
	o := command.TaskRequest{Name: "tasks.echo", Queue: "extra"}
	v, err := c.PreviewTask(t.Context(), o)
	if err != nil || len(v.Warnings) > 0 {
		t.Errorf("a task right after add_consumer: %v, %v, want no warning", v.Warnings, err)
	}
	c.task(t, c.publish(t, o), state.Success)
	v, err = c.PreviewControl(t.Context(), command.ControlRequest{Method: "cancel_consumer", Arguments: queue})
	if err != nil || !slices.Contains(v.Warnings, command.Warning{Message: "This leaves queue extra with no consumer.", Severe: true}) {
		t.Errorf("preview = %v, %v", v, err)
	}
	if got := c.control(t, "cancel_consumer", queue, "two@test"); got["two@test"] != "no longer consuming from extra" {
		t.Errorf("cancel_consumer is answered with %v", got)
	}
	if _, err := c.Publish(t.Context(), by, command.TaskRequest{Name: "tasks.echo", Queue: "extra"}); err == nil {
		t.Error("a task is published to a queue without consumer")
	}
	c.publish(t, command.TaskRequest{Name: "tasks.echo", Args: arguments("waits"), Queue: "extra", Force: true})
	// A read that is under way on Redis may still take the task; it is put back then.
	eventually(t, "task in the queue", func() bool {
		s, err := c.Client.QueueStats(t.Context(), []string{"extra"})
		i := slices.IndexFunc(s.Queues, func(q broker.Queue) bool { return q.Name == "extra" })
		return err == nil && i >= 0 && s.Queues[i].Ready != nil && *s.Queues[i].Ready == 1
	})
	r, err := c.Purge(t.Context(), by, "extra", "extra")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.settled(t, r)[0]; len(got.Replies) != 1 || got.Replies[0].Text != "1 message removed" {
		t.Errorf("purge says %v, want that 1 message was removed", got.Replies)
	}
}
