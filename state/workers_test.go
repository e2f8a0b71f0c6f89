package state_test

import (
	"testing"

	"github.com/umbelhq/umbel/state"
)

func TestTaskIsOrphanedOnceItsProcessIsReplaced(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}), ev(state.TaskReceived, "a", "w1", 10, 1), ev(state.TaskStarted, "a", "w1", 10, 2))
	if mustTask(t, c, "a").Orphaned {
		t.Error("orphaned while its process lives")
	}
	apply(c, heartbeat(11, 4))
	got := mustTask(t, c, "a")
	if !got.Orphaned || got.OrphanReason == "" || got.State != state.Started {
		t.Errorf("got orphaned %v (%q) in %s, want true with a reason in STARTED", got.Orphaned, got.OrphanReason, got.State)
	}
	if n := c.Counts().Orphaned; n != 1 {
		t.Errorf("counted %d orphans, want 1", n)
	}
	apply(c, ev(state.TaskSucceeded, "a", "w1", 10, 3))
	if got := mustTask(t, c, "a"); got.Orphaned || c.Counts().Orphaned != 0 {
		t.Error("still orphaned after its end was heard of")
	}
}

func heartbeat(pid int64, second float64) state.Event {
	e := ev(state.WorkerHeartbeat, "", "w1", pid, second)
	e.Freq, e.Active, e.Processed = 2, 1, 5
	e.Present |= state.FieldFreq | state.FieldActive | state.FieldProcessed
	return e
}

func TestWorkerStatus(t *testing.T) {
	t.Parallel()
	offline := ev(state.WorkerOffline, "", "w1", 10, 3)
	forced := ev(state.WorkerHeartbeat, "", "w1", 10, 2)
	forced.Freq, forced.FreqIsInt, forced.Present = 5, true, forced.Present|state.FieldFreq
	forcedLater := ev(state.WorkerHeartbeat, "", "w1", 10, 3.5)
	forcedLater.Freq, forcedLater.FreqIsInt, forcedLater.Present = 5, true, forcedLater.Present|state.FieldFreq
	for name, tc := range map[string]struct {
		events []state.Event
		now    float64
		want   state.Status
	}{
		"fresh":                             {[]state.Event{heartbeat(10, 1)}, 1, state.Online},
		"10 s of silence":                   {[]state.Event{heartbeat(10, 1)}, 11, state.Online},
		"more than 10 s":                    {[]state.Event{heartbeat(10, 1)}, 11.5, state.Late},
		"half as long again":                {[]state.Event{heartbeat(10, 1)}, 16.5, state.Offline},
		"a task is a sign of life":          {[]state.Event{heartbeat(10, 1), ev(state.TaskStarted, "a", "w1", 10, 20)}, 21, state.Online},
		"said goodbye":                      {[]state.Event{heartbeat(10, 1), offline}, 4, state.Offline},
		"said goodbye, still working":       {[]state.Event{heartbeat(10, 1), ev(state.TaskStarted, "a", "w1", 10, 2), offline}, 4, state.Stopping},
		"said goodbye, working for long":    {[]state.Event{heartbeat(10, 1), ev(state.TaskStarted, "a", "w1", 10, 2), offline}, 3500, state.Stopping},
		"said goodbye, not heard again":     {[]state.Event{heartbeat(10, 1), ev(state.TaskStarted, "a", "w1", 10, 2), offline}, 3700, state.Offline},
		"said goodbye, then ended its task": {[]state.Event{heartbeat(10, 1), ev(state.TaskStarted, "a", "w1", 10, 2), offline, ev(state.TaskSucceeded, "a", "w1", 10, 900)}, 901, state.Offline},
		"a late heartbeat does not revive":  {[]state.Event{offline, heartbeat(10, 1)}, 4, state.Offline},
		"a newer heartbeat revives":         {[]state.Event{offline, heartbeat(10, 4)}, 5, state.Online},
		"a new pid revives":                 {[]state.Event{heartbeat(10, 1), offline, heartbeat(11, 4)}, 5, state.Online},
		"a forced heartbeat is a life sign": {[]state.Event{heartbeat(10, 1), forced}, 12, state.Online},
		"a forced one does not revive":      {[]state.Event{heartbeat(10, 1), ev(state.TaskStarted, "a", "w1", 10, 2), offline, forcedLater}, 4, state.Stopping},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := apply(state.New(state.Options{}), tc.events...)
			c.Expire(at(tc.now))
			got, _ := c.Worker("w1")
			if got.Status != tc.want {
				t.Errorf("status at %v s = %s, want %s", tc.now, got.Status, tc.want)
			}
		})
	}
}

func TestForcedHeartbeatChangesNoReport(t *testing.T) {
	t.Parallel()
	forced := ev(state.WorkerHeartbeat, "", "w1", 10, 2)
	forced.Freq, forced.FreqIsInt, forced.Present = 5, true, forced.Present|state.FieldFreq
	c := apply(state.New(state.Options{}), heartbeat(10, 1), forced)
	got, _ := c.Worker("w1")
	if got.FreqSeconds != 2 || got.Active == nil || *got.Active != 1 {
		t.Errorf("freq %v, active %v after a forced heartbeat, want 2 and 1", got.FreqSeconds, got.Active)
	}
}

func TestRestartsAreCountedByProcess(t *testing.T) {
	t.Parallel()
	again := heartbeat(12, 9)
	again.Clock = 1
	c := apply(state.New(state.Options{}), heartbeat(10, 1), heartbeat(11, 2), heartbeat(10, 1.5), heartbeat(12, 3), again)
	if got, _ := c.Worker("w1"); got.Restarts != 3 || got.PID != 12 {
		t.Errorf("restarts %d, pid %d, want 3 (pids 10, 11, 12 and 12 again) and 12", got.Restarts, got.PID)
	}
}

// TestLateEventsOfForgottenProcessesCountNothing has a worker that restarted more often than is remembered.
func TestLateEventsOfForgottenProcessesCountNothing(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}), ev(state.TaskStarted, "a", "w1", 100, 5))
	for pid := range int64(20) {
		apply(c, heartbeat(100+pid, float64(10*pid+5)))
	}
	want, _ := c.Worker("w1")
	if want.Restarts != 19 {
		t.Fatalf("restarts = %d, want 19", want.Restarts)
	}
	goodbye := ev(state.WorkerOffline, "", "w1", 101, 16)
	goodbye.Clock = 1 << 40
	apply(c, goodbye, heartbeat(100, 6), heartbeat(103, 36), heartbeat(103, 37))
	if got, _ := c.Worker("w1"); got.Restarts != want.Restarts || got.PID != want.PID || got.Status != state.Online {
		t.Errorf("after late events: %d restarts, pid %d, %s, want %d, %d, online", got.Restarts, got.PID, got.Status, want.Restarts, want.PID)
	}
	if got := mustTask(t, c, "a"); !got.Orphaned || c.Counts().Orphaned != 1 {
		t.Errorf("task of a forgotten process: orphaned %v, %d counted, want true and 1", got.Orphaned, c.Counts().Orphaned)
	}
}

func TestTasksOfAProcessThatRestartedUnderItsPidAreOrphans(t *testing.T) {
	t.Parallel()
	again := heartbeat(10, 20)
	again.Clock = 1
	running := ev(state.TaskReceived, "new", "w1", 10, 21)
	running.Clock = 2
	c := apply(state.New(state.Options{}),
		heartbeat(10, 1), ev(state.TaskStarted, "old", "w1", 10, 2), ev(state.TaskReceived, "done", "w1", 10, 3), again, running,
		ev(state.TaskSucceeded, "done", "w1", 10, 4))
	for id, want := range map[string]bool{"old": true, "done": false, "new": false} {
		if got := mustTask(t, c, id); got.Orphaned != want {
			t.Errorf("task %s: orphaned %v (%q), want %v", id, got.Orphaned, got.OrphanReason, want)
		}
	}
	if n := c.Counts().Orphaned; n != 1 {
		t.Errorf("counted %d orphans, want 1", n)
	}
}

func TestProcessesThatShareANodeNameAreNoOrphans(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}),
		heartbeat(10, 1), ev(state.TaskStarted, "a", "w1", 10, 2), heartbeat(11, 3), ev(state.TaskStarted, "b", "w1", 11, 4))
	for second := 5; second < 30; second += 2 {
		apply(c, heartbeat(10, float64(second)), heartbeat(11, float64(second+1)))
		if n := c.Counts().Orphaned; n != 0 {
			t.Fatalf("second %d: %d orphans of two live processes", second, n)
		}
	}
	apply(c, heartbeat(11, 41)) // and pid 10 has been silent
	if a, b := mustTask(t, c, "a"), mustTask(t, c, "b"); !a.Orphaned || b.Orphaned {
		t.Errorf("orphaned: %v and %v, want the silent process's task alone", a.Orphaned, b.Orphaned)
	}
}

// TestTasksThatWereNotStartedReturnToTheQueue has a worker that ends, in every way, with one task started and one not.
func TestTasksThatWereNotStartedReturnToTheQueue(t *testing.T) {
	t.Parallel()
	goodbye := ev(state.WorkerOffline, "", "w1", 10, 5)
	restarted := heartbeat(10, 20)
	restarted.Clock = 1
	for name, end := range map[string]func(c *state.Cluster){
		"shut down": func(c *state.Cluster) { apply(c, ev(state.TaskSucceeded, "a", "w1", 10, 4), goodbye) },
		"silent":    func(c *state.Cluster) { c.Expire(at(3700)) },
		"replaced":  func(c *state.Cluster) { apply(c, heartbeat(11, 6)) },
		"restarted": func(c *state.Cluster) { apply(c, restarted) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := apply(state.New(state.Options{}), heartbeat(10, 1),
				ev(state.TaskReceived, "a", "w1", 10, 2), ev(state.TaskStarted, "a", "w1", 10, 2.5), ev(state.TaskReceived, "b", "w1", 10, 3))
			if got := mustTask(t, c, "b"); got.Returned || got.OrphanReason != "" {
				t.Errorf("returned (%q) while its worker holds it", got.OrphanReason)
			}
			end(c)
			wantOrphans := 1
			if name == "shut down" {
				wantOrphans = 0
			}
			a, b := mustTask(t, c, "a"), mustTask(t, c, "b")
			if a.Orphaned != (wantOrphans == 1) || a.Returned {
				t.Errorf("started task: orphaned %v, returned %v", a.Orphaned, a.Returned)
			}
			if !b.Returned || b.Orphaned || b.OrphanReason == "" || b.State != state.Received {
				t.Errorf("received task: returned %v, orphaned %v (%q), %s", b.Returned, b.Orphaned, b.OrphanReason, b.State)
			}
			if n := c.Counts(); n.Orphaned != wantOrphans || n.Returned != 1 {
				t.Errorf("counted %d orphaned and %d returned, want %d and 1", n.Orphaned, n.Returned, wantOrphans)
			}
			apply(c, ev(state.TaskReceived, "b", "w2", 30, 3701))
			if b := mustTask(t, c, "b"); b.Returned || b.Redelivered || len(b.Executions) != 2 {
				t.Errorf("received again: returned %v, redelivered %v, %d executions, want false, false, 2", b.Returned, b.Redelivered, len(b.Executions))
			}
		})
	}
}
