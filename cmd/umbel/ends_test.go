package main_test

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndEnds has tasks end in the ways that events tell badly.
func TestEndToEndEnds(t *testing.T) {
	t.Parallel()
	for name, newBroker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watchEnds(t, newBroker(t))
		})
	}
}

// watchEnds has three workers, one of which sends its events in MessagePack.
func watchEnds(t *testing.T, broker string) {
	t.Helper()
	c := newCluster(t, broker)
	d := start(t, append(slices.Clone(c.env), "UMBEL_RESULT_BACKEND="+testenv.Redis(t)), "serve")
	d.connected(t)
	s := scene{cluster: c, dashboard: d}
	fork, green := c.start(t, "fork@test", "celery", "-P", "prefork", "-c", "2", "-E", "--without-gossip"),
		c.start(t, "green@test", "green", "-P", "gevent", "-c", "4", "-E", "--", "event_serializer=msgpack")
	warm := s.startWarm(t)
	fork.await(t, "fork@test ready.")
	green.await(t, "green@test ready.")
	for name, test := range map[string]func(t *testing.T, s scene){
		"replaced":             isReplaced,
		"hard time limit":      exceedsItsTime,
		"killed child":         losesItsProcess,
		"SystemExit":           exits,
		"terminated on gevent": isTerminatedOnGevent,
		"expired":              expires,
		"lost":                 isLostFromSight,
		"warm shutdown":        func(t *testing.T, s scene) { isGivenBack(t, s, warm) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// finds checks that a query finds a task.
func (s scene) finds(t *testing.T, query, id string) {
	t.Helper()
	eventually(t, timeout, func() error {
		page, _ := api[list[task]](t, s.dashboard, "tasks?limit=500&q="+url.QueryEscape(query))
		if !slices.ContainsFunc(page.Items, func(t task) bool { return t.ID == id }) {
			return fmt.Errorf("%s does not find task %s", query, id)
		}
		return nil
	})
}

func isReplaced(t *testing.T, s scene) {
	id := s.call(t, "become_sum", 2, 3)
	got := s.inState(t, id, "SUCCESS")
	for i := range got.Executions {
		got.Executions[i].PID = 0
	}
	want := []execution{
		{Name: "tasks.become_sum", Worker: "fork@test", State: "STARTED", Replaced: true},
		{Name: "tasks.add", Worker: "fork@test", State: "SUCCESS"},
	}
	if diff := cmp.Diff(want, got.Executions); diff != "" {
		t.Errorf("executions (-want +got):\n%s", diff)
	}
	if got.Redelivered || got.Name != "tasks.add" || got.Result != "5" {
		t.Errorf("redelivered %v, name %s, result %s, want false, tasks.add, 5", got.Redelivered, got.Name, got.Result)
	}
	s.finds(t, "name:tasks.become_sum", id)
	s.finds(t, "name:tasks.add", id)
}

func exceedsItsTime(t *testing.T, s scene) {
	id := s.do(t, clientCall{Call: "hold", Args: []any{"/nonexistent/gate"}, Options: map[string]any{"time_limit": 1}})[0]
	got := s.inState(t, id, "FAILURE")
	if got.Exception != "TimeLimitExceeded(1,)" || len(got.Executions) != 1 {
		t.Errorf("exception %s in %d executions, want TimeLimitExceeded(1,) in 1", got.Exception, len(got.Executions))
	}
	s.finds(t, "exc:TimeLimitExceeded", id)
}

// losesItsProcess kills the child of the pool that runs it.
func losesItsProcess(t *testing.T, s scene) {
	g := newGate(t)
	id := s.call(t, "hold_by_pid", string(g))
	var pid int
	eventually(t, timeout, func() error {
		text, err := os.ReadFile(string(g) + ".pid")
		if err == nil {
			pid, err = strconv.Atoi(string(text))
		}
		return err
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.losesItsWorker(t, id)
}

func exits(t *testing.T, s scene) { s.losesItsWorker(t, s.call(t, "leave")) }

func (s scene) losesItsWorker(t *testing.T, id string) {
	t.Helper()
	got := s.inState(t, id, "FAILURE")
	if !strings.HasPrefix(got.Exception, "WorkerLostError('Worker exited prematurely") {
		t.Errorf("exception %s, want WorkerLostError", got.Exception)
	}
	s.finds(t, "exc:WorkerLostError", id)
}

func isTerminatedOnGevent(t *testing.T, s scene) {
	id := s.do(t, clientCall{Call: "hold", Args: []any{"/nonexistent/gate"}, Options: map[string]any{"queue": "green"}})[0]
	s.inState(t, id, "STARTED")
	s.do(t, clientCall{Call: "revoke", Args: []any{id}, Kwargs: map[string]any{"terminate": true}})
	eventually(t, timeout, func() error { // the pool says that it has succeeded
		events, _ := api[list[struct {
			Type string `json:"type"`
		}]](t, s.dashboard, "tasks/"+id+"/events")
		if n := len(events.Items); n == 0 || events.Items[n-1].Type != "task-succeeded" {
			return fmt.Errorf("task %s has %d events, want task-succeeded last", id, n)
		}
		return nil
	})
	got := s.inState(t, id, "REVOKED")
	if got.RevokedReason != "terminated" || got.RevokedSignal != 15 || got.SucceededAt != nil {
		t.Errorf("revoked: %s with signal %d, succeeded at %v, want terminated with 15, never", got.RevokedReason, got.RevokedSignal, got.SucceededAt)
	}
}

func expires(t *testing.T, s scene) {
	id := s.do(t, clientCall{Call: "add", Args: []any{1, 1}, Options: map[string]any{"countdown": 2, "expires": 1}})[0]
	if got := s.inState(t, id, "REVOKED"); got.RevokedReason != "expired" || got.RevokedSignal != 0 {
		t.Errorf("revoked: %s with signal %d, want expired with none", got.RevokedReason, got.RevokedSignal)
	}
}

// isLostFromSight has tasks end of which no event tells, while another runs.
func isLostFromSight(t *testing.T, s scene) {
	g := newGate(t)
	queue := func(name string, more map[string]any) map[string]any {
		more["queue"] = name
		return more
	}
	held := s.do(t, clientCall{Call: "hold", Args: []any{string(g)}, Options: queue("green", map[string]any{})})[0]
	s.inState(t, held, "STARTED")
	ignored := s.call(t, "ignore")
	untaken := s.do(t, clientCall{Call: "add", Args: []any{1, 1}, Options: queue("nowhere", map[string]any{"expires": 1})})[0]
	unseen := s.do(t, clientCall{Call: "add_unseen", Args: []any{1, 1}, Options: map[string]any{"expires": 1}})[0]

	for _, want := range []struct{ id, state, reason, evidence string }{
		{ignored, "STARTED", "not_running", "fork@test has sent heartbeats since that count no running task"},
		{untaken, "PENDING", "expired", "no worker took it before it expired at "},
		{unseen, "PENDING", "backend", "the result backend says "}, // SUCCESS, or REVOKED on a slow machine
	} {
		got := s.until(t, want.id, func(t task) error {
			if t.Lost == nil || t.Lost.Reason != want.reason {
				return fmt.Errorf("task %s is %s and lost %+v, want %s", t.ID, t.State, t.Lost, want.reason)
			}
			return nil
		})
		if got.State != want.state || !strings.HasPrefix(got.Lost.Evidence, want.evidence) {
			t.Errorf("%s with evidence %q, want %s with %q", got.State, got.Lost.Evidence, want.state, want.evidence)
		}
		s.finds(t, "is:lost", want.id)
	}
	eventually(t, timeout, func() error { // once the other tests have ended
		active, counts := s.do(t, clientCall{Call: "active", Args: []any{3}}), s.overview(t).Counts
		if !slices.Equal(active, []string{held}) || counts.Running != 1 || counts.Lost != 3 {
			return fmt.Errorf("workers have %v active, %d run and %d are lost, want %s alone, 1 and 3", active, counts.Running, counts.Lost, held)
		}
		return nil
	})
	if got := s.inState(t, held, "STARTED"); got.Lost != nil {
		t.Errorf("a task that runs is lost: %+v", got.Lost)
	}
	g.open(t)
	s.inState(t, held, "SUCCESS")
}

func (s scene) startWarm(t *testing.T) *process {
	t.Helper()
	return s.start(t, "warm@test", "warm", "-P", "prefork", "-c", "1", "-E")
}

// isGivenBack shuts a worker down while it runs one task and holds two, and starts another.
func isGivenBack(t *testing.T, s scene, warm *process) {
	warm.await(t, "warm@test ready.")
	publish := func(name string, countdown int, args ...any) string {
		return s.do(t, clientCall{Call: name, Args: args, Options: map[string]any{"queue": "warm", "countdown": countdown}})[0]
	}
	g := newGate(t)
	running := publish("hold", 0, string(g))
	s.inState(t, running, "STARTED")
	later, next := publish("add", 600, 1, 1), publish("add", 0, 2, 2)
	s.inState(t, later, "RECEIVED")
	s.inState(t, next, "RECEIVED")
	if err := warm.cmd.Process.Signal(syscall.SIGTERM); err != nil { // the main process, which then waits for the task
		t.Fatalf("stop worker: %v", err)
	}
	s.worker(t, "warm@test", status("stopping"))
	g.open(t)
	s.inState(t, running, "SUCCESS")
	s.worker(t, "warm@test", status("offline"))
	for _, id := range []string{later, next} {
		if got := s.inState(t, id, "RECEIVED"); !got.Returned || got.Orphaned {
			t.Errorf("task %s: returned %v, orphaned %v, want true and false", id, got.Returned, got.Orphaned)
		}
	}
	if _, html := s.fetch(t, "tasks/"+next); !strings.Contains(string(html), "Returned to the queue.") {
		t.Error("the page of a task that was given back does not say so")
	}
	<-warm.exited
	again := s.startWarm(t)
	if got := s.inState(t, next, "SUCCESS"); got.Redelivered || got.Returned || len(got.Executions) != 2 {
		t.Errorf("redelivered %v, returned %v, %d executions, want false, false, 2", got.Redelivered, got.Returned, len(got.Executions))
	}
	s.until(t, later, func(t task) error {
		if t.Returned || t.Orphaned || t.Redelivered || len(t.Executions) != 2 {
			return fmt.Errorf("returned %v, orphaned %v, redelivered %v, %d executions", t.Returned, t.Orphaned, t.Redelivered, len(t.Executions))
		}
		return nil
	})
	// One that vanished might have taken a task that is about to expire, which another test waits for.
	if err := again.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("stop worker: %v", err)
	}
	<-again.exited
}
