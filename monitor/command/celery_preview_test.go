package command_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/state"
)

// showsAtOnce publishes to a queue from which no worker consumes: only the event of the publisher tells of the task.
func showsAtOnce(t *testing.T, c *cluster) {
	t.Helper()
	if c.kind == "RabbitMQ" {
		c.client(t) // which declares the queue
	}
	o := command.TaskRequest{
		Name: "tasks.echo", Args: json.RawMessage(`[1]`), Kwargs: json.RawMessage(`{"a":null}`), Queue: "parked", Force: true,
	}
	got := c.task(t, c.publish(t, o), state.Pending)
	if *got.Name != o.Name || *got.Args != "(1,)" || *got.Kwargs != "{'a': None}" || *got.Queue != "parked" || got.SentAt == 0 {
		t.Errorf("task shows as %+v", got)
	}
}

// repeatsWhatCameWithIt repeats a task that Umbel has published: priority and time limits come along.
func repeatsWhatCameWithIt(t *testing.T, c *cluster) {
	t.Helper()
	first := c.task(t, c.publish(t, command.TaskRequest{
		Name: "tasks.request", Queue: "urgent", Priority: new(uint8(6)), Hard: new(30.0), Soft: new(20.5),
	}), state.Success)
	o, _, err := c.Retry(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	again := c.task(t, c.publish(t, o), state.Success)
	if got, want := echoed(t, again.Result), `[6, [30, 20.5], null, [], null]`; got != want || echoed(t, first.Result) != want {
		t.Errorf("it came with %s, then %s, want %s", *first.Result, got, want)
	}
}

// tellsWhatShutdownGivesBack looks at a worker that runs one task, has fetched another and holds one for later.
func tellsWhatShutdownGivesBack(t *testing.T, c *cluster) {
	t.Helper()
	g := newGate(t)
	running := c.publish(t, command.TaskRequest{Name: "tasks.hold", Args: arguments(string(g))})
	c.task(t, running, state.Started)
	later := c.publish(t, command.TaskRequest{Name: "tasks.echo", Countdown: time.Hour})
	c.task(t, later, state.Received)
	fetched := c.publish(t, command.TaskRequest{Name: "tasks.echo"})
	c.task(t, fetched, state.Received)
	var got []string
	eventually(t, "preview of the shutdown", func() bool { // what it has told of before is asked for again after a while
		v, err := c.PreviewControl(t.Context(), command.ControlRequest{Method: "shutdown", Workers: []string{"one@test"}})
		if err != nil {
			t.Fatal(err)
		}
		got = messages(v.Warnings)
		return slices.Contains(got, "1 task that has not started and 1 task that waits for its time return to the queue.")
	})
	if want := "1 task is running there: a warm shutdown lets it end first."; !slices.Contains(got, want) {
		t.Errorf("preview says %q, want %q", got, want)
	}
	g.open(t)
	c.task(t, fetched, state.Success)
	r, err := c.Bulk(t.Context(), by, command.BulkRequest{Action: "revoke", IDs: []string{later}})
	if err != nil {
		t.Fatal(err)
	}
	c.settled(t, r)
}

// TestEndToEndGreenlets acts on a worker that obeys some time after it has answered, and that kills no process.
func TestEndToEndGreenlets(t *testing.T) {
	t.Parallel()
	c := clusterOn(t, "RabbitMQ")
	c.work(t, "green@test", "-P", "gevent", "-c", "4", "-Q", "celery")
	c.control(t, "add_consumer", map[string]any{"queue": "extra"}, "green@test")
	o := command.TaskRequest{Name: "tasks.hold", Args: arguments(string(newGate(t))), Queue: "extra"}
	v, err := c.PreviewTask(t.Context(), o)
	if err != nil || len(v.Warnings) > 0 {
		t.Errorf("a task right after add_consumer: %v, %v, want no warning", v.Warnings, err)
	}
	held := c.publish(t, o)
	c.task(t, held, state.Started)
	order := command.BulkRequest{Action: "terminate", IDs: []string{held}}
	found, err := c.PreviewBulk(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1 task runs in a gevent pool: the greenlet is killed where it next waits, whatever the signal is. Older versions of Celery refuse."}
	if diff := cmp.Diff(messages(found.Warnings), want); diff != "" {
		t.Errorf("warnings: got - want +\n%s", diff)
	}
	r, err := c.Bulk(t.Context(), by, order)
	if err != nil {
		t.Fatal(err)
	}
	c.settled(t, r)
	eventually(t, "end of the greenlet", func() bool { return len(c.Inspector.Inspect(t.Context(), "green@test").Active) == 0 })
}
