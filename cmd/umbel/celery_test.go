package main_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

func TestEndToEndCelery(t *testing.T) {
	t.Parallel()
	for name, newBroker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watchCelery(t, newBroker(t))
		})
	}
}

// watchCelery has two workers do what tasks can do, and looks at a page all the while.
func watchCelery(t *testing.T, broker string) {
	t.Helper()
	c := newCluster(t, broker)
	solo := c.work(t, "solo@test", "solo", "-P", "solo")
	c.work(t, "fork@test", "celery", "-P", "prefork", "-c", "2", "-E")
	d := start(t, c.env, "serve")
	solo.await(t, "Events of group {task} enabled by remote.")
	browser := testbrowser.Open(t)
	s := scene{c, d, browser, openTab(t, browser, d.url+"tasks"), newTap(t, c.broker), new(fastest)}
	t.Cleanup(func() {
		if s.fastest.d > prompt {
			t.Errorf("no page showed an event within %v, the fastest took %v", prompt, s.fastest.d)
		}
	})

	tests := map[string]func(t *testing.T, s scene){
		"success":                succeeds,
		"success on a solo pool": succeedsOnSolo,
		"failure":                fails,
		"retries":                retries,
		"retries at once":        retriesAtOnce,
		"custom state":           makesProgress,
		"ETA":                    waitsForItsTime,
		"revoked while waiting":  isRevokedWhileWaiting,
		"revoked beforehand":     isRevokedBeforehand,
		"terminated":             isTerminated,
		"chain":                  chains,
		"group of a task":        fansOut,
		"chord":                  joins,
		"open page of a task":    isWatched,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func succeeds(t *testing.T, s scene) {
	got := s.inState(t, s.call(t, "add", 2, 3), "SUCCESS")
	s.lists(t, got.ID, "Success", "task-succeeded")
	want := task{
		ID: got.ID, Name: "tasks.add", State: "SUCCESS", Args: "[2, 3]", Kwargs: "{}", Result: "5",
		Worker: "fork@test", Client: got.Client, Queue: "celery", Retries: new(0), RootID: got.ID, Children: []string{},
		SentAt: got.SentAt, ReceivedAt: got.ReceivedAt, StartedAt: got.StartedAt, SucceededAt: got.SucceededAt,
		UpdatedAt: *got.SucceededAt, RuntimeSeconds: got.RuntimeSeconds, Executions: got.Executions,
		WaitSeconds: got.WaitSeconds, WaitRaw: got.WaitRaw, WaitLow: got.WaitLow, WaitHigh: got.WaitHigh,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
	if got.SentAt == nil || got.ReceivedAt == nil || got.StartedAt == nil || got.RuntimeSeconds == nil || len(got.Executions) != 1 {
		t.Errorf("task lacks a time, its runtime or its execution: %+v", got)
	}
	if !strings.HasPrefix(got.Client, "gen") {
		t.Errorf("client = %q, want Celery's gen…", got.Client)
	}
}

func succeedsOnSolo(t *testing.T, s scene) {
	id := s.do(t, clientCall{Call: "add", Args: []any{"a", "b"}, Options: map[string]any{"queue": "solo"}})[0]
	got := s.inState(t, id, "SUCCESS")
	s.lists(t, got.ID, "Success", "task-succeeded")
	if got.Worker != "solo@test" || got.Result != "'ab'" {
		t.Errorf("worker %q and result %q, want solo@test and 'ab'", got.Worker, got.Result)
	}
}

func fails(t *testing.T, s scene) {
	got := s.inState(t, s.call(t, "boom", "<b>☃</b>"), "FAILURE")
	s.lists(t, got.ID, "Failure", "task-failed")
	if want := "ValueError('<b>☃</b>')"; got.Exception != want {
		t.Errorf("exception = %q, want %q", got.Exception, want)
	}
	for _, want := range []string{"Traceback (most recent call last):", `tasks.py", line `, "in boom", "ValueError: <b>☃</b>"} {
		if !strings.Contains(got.Traceback, want) {
			t.Errorf("traceback lacks %q:\n%s", want, got.Traceback)
		}
	}
}

func retries(t *testing.T, s scene) {
	got := s.inState(t, s.call(t, "flaky", 2, 0.5), "SUCCESS")
	s.lists(t, got.ID, "Success", "task-succeeded")
	if got.Retries == nil || *got.Retries != 2 || got.Redelivered {
		t.Errorf("retries %v, redelivered %v, want 2 and false", got.Retries, got.Redelivered)
	}
	want := []execution{
		{Attempt: 0, Name: "tasks.flaky", Worker: "fork@test", State: "RETRY", Exception: "OSError('attempt 0 failed')"},
		{Attempt: 1, Name: "tasks.flaky", Worker: "fork@test", State: "RETRY", Exception: "OSError('attempt 1 failed')"},
		{Attempt: 2, Name: "tasks.flaky", Worker: "fork@test", State: "SUCCESS"},
	}
	for i := range got.Executions {
		got.Executions[i].PID = 0
	}
	if diff := cmp.Diff(want, got.Executions); diff != "" {
		t.Errorf("executions (-want +got):\n%s", diff)
	}
}

// retriesAtOnce has attempts that overlap: the worker may take the next one before it has reported the last,
// and report two of them in any order.
func retriesAtOnce(t *testing.T, s scene) {
	id := s.call(t, "flaky", 3, 0)
	got := s.until(t, id, func(t task) error {
		var states []string
		for _, e := range t.Executions {
			states = append(states, e.State)
		}
		if want := []string{"RETRY", "RETRY", "RETRY", "SUCCESS"}; t.State != "SUCCESS" || !slices.Equal(states, want) {
			return fmt.Errorf("task is %s with executions %v, want %v", t.State, states, want)
		}
		return nil
	})
	s.lists(t, id, "Success", "task-succeeded")
	if got.Exception != "" || got.Result != "3" {
		t.Errorf("exception %q and result %q, want none and 3", got.Exception, got.Result)
	}
}

func makesProgress(t *testing.T, s scene) {
	g := newGate(t)
	id := s.call(t, "progress", string(g))
	got := s.inState(t, id, "PROGRESS")
	s.lists(t, got.ID, "Progress", "task-progress")
	g.open(t)
	got = s.inState(t, id, "SUCCESS")
	s.lists(t, got.ID, "Success", "task-succeeded")
	if len(got.Executions) != 1 {
		t.Errorf("%d executions, want the pool child's event to be part of the only one", len(got.Executions))
	}
}

func waitsForItsTime(t *testing.T, s scene) {
	got := s.delayed(t, func(task) string { return "SUCCESS" })
	s.lists(t, got.ID, "Success", "task-succeeded")
	if got.ETA == nil || got.StartedAt.Before(*got.ETA) {
		t.Errorf("sent %v, ETA %v, started %v: want it to have waited", got.SentAt, got.ETA, got.StartedAt)
	}
}

func isRevokedWhileWaiting(t *testing.T, s scene) {
	got := s.delayed(t, func(received task) string {
		s.do(t, clientCall{Call: "revoke", Args: []any{received.ID}})
		return "REVOKED" // once its time has come
	})
	s.lists(t, got.ID, "Revoked", "task-revoked")
	if got.StartedAt != nil || len(got.Executions) != 1 {
		t.Errorf("started %v in %d executions, want never in 1", got.StartedAt, len(got.Executions))
	}
}

func isRevokedBeforehand(t *testing.T, s scene) {
	id := "revoked-beforehand"
	s.do(t, clientCall{Call: "revoke", Args: []any{id}})
	s.do(t, clientCall{Call: "add", Args: []any{1, 1}, Options: map[string]any{"task_id": id, "countdown": 1}})
	got := s.inState(t, id, "REVOKED")
	s.lists(t, got.ID, "Revoked", "task-revoked")
	if got.StartedAt != nil || got.Name != "tasks.add" {
		t.Errorf("started %v, name %q, want never, and the name of its task-sent", got.StartedAt, got.Name)
	}
}

func isTerminated(t *testing.T, s scene) {
	id := s.call(t, "hold", "/nonexistent/gate")
	started := s.inState(t, id, "STARTED")
	s.lists(t, started.ID, "Started", "task-started")
	s.do(t, clientCall{Call: "revoke", Args: []any{id}, Kwargs: map[string]any{"terminate": true}})
	got := s.inState(t, id, "REVOKED")
	s.lists(t, got.ID, "Revoked", "task-revoked")
	if len(got.Executions) != 1 || got.Orphaned {
		t.Errorf("%d executions, orphaned %v, want 1 and false", len(got.Executions), got.Orphaned)
	}
}

// family is where a task stands in its workflow.
type family struct {
	Root, Parent string
	Children     []string
}

func (s scene) families(t *testing.T, ids []string) []family {
	t.Helper()
	var all []family
	for _, id := range ids {
		got := s.inState(t, id, "SUCCESS")
		s.lists(t, got.ID, "Success", "task-succeeded")
		slices.Sort(got.Children)
		all = append(all, family{got.RootID, got.ParentID, got.Children})
	}
	return all
}

func chains(t *testing.T, s scene) {
	ids := s.do(t, clientCall{Call: "start_chain"})
	want := []family{
		{ids[0], "", []string{ids[1]}},
		{ids[0], ids[0], []string{ids[2]}},
		{ids[0], ids[1], []string{}},
	}
	if diff := cmp.Diff(want, s.families(t, ids)); diff != "" {
		t.Errorf("chain (-want +got):\n%s", diff)
	}
}

func fansOut(t *testing.T, s scene) {
	id := s.call(t, "fan_out", 3)
	parent := s.until(t, id, func(t task) error {
		if len(t.Children) != 3 {
			return fmt.Errorf("task has %d children, want 3", len(t.Children))
		}
		return nil
	})
	members := slices.Sorted(slices.Values(parent.Children))
	for _, m := range members {
		if !strings.Contains(s.inState(t, id, "SUCCESS").Result, m) {
			t.Errorf("child %s is not of the group", m)
		}
	}
	want := []family{{id, "", members}, {id, id, []string{}}, {id, id, []string{}}, {id, id, []string{}}}
	if diff := cmp.Diff(want, s.families(t, append([]string{id}, members...))); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
}

func joins(t *testing.T, s scene) {
	ids := s.do(t, clientCall{Call: "start_chord"})
	got := s.families(t, ids)
	body := s.inState(t, ids[2], "SUCCESS")
	// Whichever part of the header ended last publishes the body.
	if !slices.Contains(ids[:2], body.ParentID) || body.Result != "6" || body.RootID != body.ParentID {
		t.Errorf("body has parent %s, root %s, result %s, want one of %v twice, and 6", body.ParentID, body.RootID, body.Result, ids[:2])
	}
	for i, id := range ids[:2] {
		if children := got[i].Children; (id == body.ParentID) != slices.Contains(children, body.ID) {
			t.Errorf("task %s has the children %v, and the body's parent is %s", id, children, body.ParentID)
		}
	}
}

// isWatched follows a task on a page of its own.
func isWatched(t *testing.T, s scene) {
	g := newGate(t)
	id := s.call(t, "hold", string(g))
	s.inState(t, id, "STARTED")
	page := openTab(t, s.browser, s.url+"tasks/"+id)
	page.until(t, `document.querySelector("#task-head .state").textContent.trim() === "Started"`)
	g.open(t)
	s.inState(t, id, "SUCCESS")
	s.shows(t, page, "task-head", "Success", event{"task-succeeded", id})
	page.until(t, `document.querySelector("main").textContent.includes("'released'")`)
}

func TestEndToEndWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	for name, newBroker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watchWorkers(t, newBroker(t))
		})
	}
}

// watchWorkers has workers start and end in every way, and looks at a page all the while.
func watchWorkers(t *testing.T, broker string) {
	t.Helper()
	c := newCluster(t, broker)
	d := start(t, c.env, "serve")
	d.connected(t)
	browser := testbrowser.Open(t)
	s := scene{c, d, browser, openTab(t, browser, d.url+"workers"), nil, nil}
	for name, test := range map[string]func(t *testing.T, s scene){
		"killed and back": isKilledAndComesBack,
		"stopped":         stops,
		"silent":          fallsSilent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func isKilledAndComesBack(t *testing.T, s scene) {
	work := func() *process { return s.work(t, "killed@test", "killed", "-P", "prefork", "-c", "2", "-E") }
	hold := func(name string, g gate) string {
		id := s.do(t, clientCall{Call: name, Args: []any{string(g)}, Options: map[string]any{"queue": "killed"}})[0]
		s.inState(t, id, "STARTED")
		return id
	}
	first := work()
	g := newGate(t)
	lost, late := hold("hold", newGate(t)), hold("hold_late", g)
	before := s.worker(t, "killed@test", status("online"))
	first.end(t, syscall.SIGKILL)
	work()

	after := s.worker(t, "killed@test", func(w worker) error {
		if w.Restarts != 1 {
			return fmt.Errorf("worker has %d restarts, want 1", w.Restarts)
		}
		return status("online")(w)
	})
	if after.PID == before.PID || before.PID == 0 {
		t.Errorf("pid %d before and %d after the restart", before.PID, after.PID)
	}
	if got := s.inState(t, lost, "STARTED"); !got.Orphaned {
		t.Error("task of the killed process is not orphaned")
	}
	if _, html := s.fetch(t, "tasks/"+lost); !strings.Contains(string(html), "Orphaned.") {
		t.Error("the page of the lost task does not say that it is orphaned")
	}
	g.open(t)
	if strings.HasPrefix(s.broker, "redis://") {
		return // it delivers again after an hour, the visibility timeout
	}
	got := s.inState(t, late, "SUCCESS") // the broker delivered it again
	if !got.Redelivered || got.Orphaned || len(got.Executions) != 2 {
		t.Errorf("redelivered %v, orphaned %v, %d executions, want true, false, 2", got.Redelivered, got.Orphaned, len(got.Executions))
	}
}

func stops(t *testing.T, s scene) {
	p := s.work(t, "stopped@test", "stopped", "-P", "prefork", "-c", "1", "-E")
	g := newGate(t)
	id := s.do(t, clientCall{Call: "hold", Args: []any{string(g)}, Options: map[string]any{"queue": "stopped"}})[0]
	s.inState(t, id, "STARTED")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil { // the main process, which then waits for the task
		t.Fatalf("stop worker: %v", err)
	}
	s.worker(t, "stopped@test", status("stopping"))
	s.page.sees(t, "stopped%40test", "Stopping")
	g.open(t)
	s.inState(t, id, "SUCCESS")
	s.worker(t, "stopped@test", status("offline"))
	s.page.sees(t, "stopped%40test", "Offline")
}

// fallsSilent has a worker without -E, which says nothing of tasks until it is asked to, every time anew.
func fallsSilent(t *testing.T, s scene) {
	work := func() *process {
		p := s.work(t, "silent@test", "silent", "-P", "solo")
		p.await(t, "Events of group {task} enabled by remote.")
		return p
	}
	p := work()
	s.worker(t, "silent@test", status("online"))
	p.end(t, syscall.SIGKILL)
	for _, want := range []string{"Late", "Offline"} {
		s.worker(t, "silent@test", status(strings.ToLower(want)))
		s.page.sees(t, "silent%40test", want)
	}
	work()
	s.worker(t, "silent@test", status("online"))
	s.page.sees(t, "silent%40test", "Online")
	id := s.do(t, clientCall{Call: "add", Args: []any{1, 1}, Options: map[string]any{"queue": "silent"}})[0]
	s.inState(t, id, "SUCCESS")
}
