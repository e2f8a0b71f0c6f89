package simulate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// harness is a running simulation whose workers get commands.
type harness struct {
	*testing.T
	simulation *simulate.Cluster
	replies    chan celery.Reply
	events     []string // bodies so far
}

// play runs a simulation in virtual time and calls f, which talks to it.
func play(t *testing.T, f func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		simulation, err := simulate.New(simulate.Options{Seed: 3, Start: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		h := &harness{T: t, simulation: simulation, replies: make(chan celery.Reply, 1000)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			err := simulation.Run(ctx, func(_ context.Context, m broker.Message) error {
				h.events = append(h.events, string(m.Body))
				return nil
			})
			if err != nil {
				t.Errorf("run: %v", err)
			}
		}()
		h.wait(3 * time.Second)
		f(h)
		cancel()
		<-done
	})
}

// wait lets the simulation go on.
func (h *harness) wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// ask sends a command to workers, all if there are none, and returns what they reply by name.
func (h *harness) ask(method string, args map[string]any, workers ...string) map[string]string {
	h.Helper()
	m, err := celery.Request{
		Method: method, Arguments: args, Destination: workers, Ticket: "t", ReplyTo: &broker.ReplyTo{RoutingKey: "me"},
	}.Publishing()
	if err != nil {
		h.Fatal(err)
	}
	for _, name := range h.simulation.Workers() {
		h.simulation.Request(name, m, func(to broker.ReplyTo, m broker.Publishing) {
			r, err := celery.ParseReply(m)
			if err != nil || r.Ticket != "t" || r.Clock < 1 || to.RoutingKey != "me" {
				h.Errorf("reply %s to %v: %+v, error %v", m.Body, to, r, err)
			}
			h.replies <- r
		})
	}
	h.wait(15 * time.Second) // a solo worker replies after its task
	answers := make(map[string]string)
	for len(h.replies) > 0 {
		r := <-h.replies
		answers[r.Node] = string(r.Value)
	}
	return answers
}

// saw reports whether an event holds all of texts.
func (h *harness) saw(texts ...string) bool {
	return slices.ContainsFunc(h.events, func(body string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(body, text) })
	})
}

func TestWorkersAnswer(t *testing.T) {
	t.Parallel()
	play(t, func(h *harness) {
		pong := h.ask("ping", nil)
		if len(pong) != 6 || pong["reports@web-1"] != `{"ok":"pong"}` {
			h.Errorf("ping answered by %v, want six pongs", pong)
		}
		if got := h.ask("ping", nil, "celery@web-1", "nobody@nowhere"); len(got) != 1 {
			h.Errorf("ping of one worker answered by %v", got)
		}
		for _, method := range []string{
			"stats", "active", "reserved", "scheduled", "revoked", "registered", "active_queues", "conf", "clock", "report", "memsample",
		} {
			for name, value := range h.ask(method, nil) {
				if value == "null" || strings.Contains(value, `"error"`) {
					h.Errorf("%s of %s = %s", method, name, value)
				}
			}
		}
		if got := h.ask("bogus", nil)["celery@web-1"]; !strings.Contains(got, "KeyError") {
			h.Errorf("unknown command answered with %s", got)
		}
	})
}

func TestWorkersObey(t *testing.T) {
	t.Parallel()
	const web, solo = "celery@web-1", "reports@web-1"
	tests := map[string]struct {
		method string
		args   map[string]any
		worker string
		want   string
		see    string // inspect command
		seen   string // in its reply
	}{
		"grow":           {"pool_grow", map[string]any{"n": 2}, web, `{"ok":"pool will grow"}`, "stats", `"max-concurrency":6`},
		"shrink too far": {"pool_shrink", map[string]any{"n": 40}, web, `{"error":"ValueError(\"Can't shrink pool. All processes busy!\")"}`, "stats", `"max-concurrency":4`},
		"grow solo":      {"pool_grow", nil, solo, `{"error":"AttributeError(\"'TaskPool' object has no attribute 'grow'\")"}`, "stats", `"max-concurrency":1`},
		"consume":        {"add_consumer", map[string]any{"queue": "new"}, web, `{"ok":"add consumer new"}`, "active_queues", `"name":"new"`},
		"rate":           {"rate_limit", map[string]any{"task_name": "fraud.score", "rate_limit": "2/m"}, web, `{"ok":"new rate limit set successfully"}`, "registered", `fraud.score [rate_limit=2/m]`},
		"rate of none":   {"rate_limit", map[string]any{"task_name": "x", "rate_limit": "2/m"}, web, `{"error":"unknown task"}`, "ping", "pong"},
		"time limits":    {"time_limit", map[string]any{"task_name": "fraud.score", "hard": 0.001}, web, `{"ok":"time limits set successfully"}`, "ping", "pong"},
		"revoke":         {"revoke", map[string]any{"task_id": "abc"}, web, `{"ok":"tasks {'abc'} flagged as revoked"}`, "revoked", `"abc"`},
		"terminate":      {"revoke", map[string]any{"task_id": "abc", "terminate": true}, web, `{"ok":"terminate: tasks unknown"}`, "revoked", `"abc"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(h *harness) {
				if diff := cmp.Diff(map[string]string{test.worker: test.want}, h.ask(test.method, test.args, test.worker)); diff != "" {
					h.Errorf("answers (-want +got):\n%s", diff)
				}
				if got := h.ask(test.see, nil, test.worker)[test.worker]; !strings.Contains(got, test.seen) {
					h.Errorf("%s = %s, want it to have %s", test.see, got, test.seen)
				}
			})
		})
	}
}

func TestCancelledConsumerGetsNothing(t *testing.T) {
	t.Parallel()
	play(t, func(h *harness) {
		for _, worker := range []string{"media@jobs-1", "reports@web-1"} {
			h.ask("cancel_consumer", map[string]any{"queue": "reports"}, worker)
		}
		if !h.simulation.Deliver(h.Context(), "reports", taskMessage("stays", "reports.nightly")) {
			h.Fatal("the queue took no task")
		}
		h.wait(time.Minute)
		for _, q := range h.simulation.Queues(h.Context()) {
			if q.Name == "reports" && (*q.Ready < 1 || *q.Consumers != 0) {
				h.Errorf("queue reports has %d ready and %d consumers, want one at least and none", *q.Ready, *q.Consumers)
			}
		}
	})
}

func TestShutdownIsWarmAndSilent(t *testing.T) {
	t.Parallel()
	play(t, func(h *harness) {
		if got := h.ask("shutdown", nil, "celery@web-1"); len(got) != 0 {
			h.Errorf("shutdown answered with %v", got)
		}
		if !h.saw(`"worker-offline"`, `"celery@web-1"`) {
			h.Error("the worker did not say goodbye")
		}
	})
}

func TestTasksFromOutsideRun(t *testing.T) {
	t.Parallel()
	play(t, func(h *harness) {
		for id, name := range map[string]string{"known": "fraud.score", "alien": "no.such_task", "called off": "fraud.score"} {
			if id == "called off" {
				h.ask("revoke", map[string]any{"task_id": id})
			}
			if !h.simulation.Deliver(h.Context(), "celery", taskMessage(id, name)) {
				h.Fatalf("task %s was not taken", id)
			}
		}
		if h.simulation.Deliver(h.Context(), "nowhere", taskMessage("x", "fraud.score")) {
			h.Error("a queue that is not there took a task")
		}
		h.wait(time.Minute)
		for _, want := range [][]string{
			{`"uuid": "known"`, "task-started"},
			{`"uuid": "alien"`, "task-failed", "NotRegistered('no.such_task')"},
			{`"uuid": "called off"`, "task-revoked"},
		} {
			if !h.saw(want...) {
				h.Errorf("no event with %q", want)
			}
		}
	})
}

func taskMessage(id, name string) broker.Publishing {
	return broker.Publishing{
		ContentType: "application/json", CorrelationID: id, Body: json.RawMessage(`[[1],{},{}]`),
		Headers: map[string]any{"id": id, "task": name, "root_id": id, "argsrepr": "(1,)", "kwargsrepr": "{}"},
	}
}
