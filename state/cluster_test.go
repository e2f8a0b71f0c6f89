package state_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/history"
	"github.com/umbelhq/umbel/state"
)

const t0 = 1_790_000_000_000_000 // µs

// seconds after t0, in µs.
func at(seconds float64) int64 { return t0 + int64(seconds*1e6) }

// ev is an event of a task at a second, with the raw clock 10 × that second.
func ev(kind state.Kind, id, host string, pid int64, second float64) state.Event {
	e := state.Event{
		Kind: kind, ID: id, Hostname: host, PID: pid, Clock: int64(second * 10), Micros: at(second), ReceivedMicros: at(second),
		Present: state.FieldClock | state.FieldTimestamp,
	}
	if kind == state.TaskReceived || kind == state.TaskSent {
		e.Name, e.Args = "shop.pay", "(1,)"
		e.Present |= state.FieldName | state.FieldArgs | state.FieldRetries
	}
	return e
}

func retry(e state.Event, attempt int64) state.Event {
	e.Retries = attempt
	return e
}

func apply(c *state.Cluster, events ...state.Event) *state.Cluster {
	for i := range events {
		c.Apply(&events[i])
	}
	return c
}

func mustTask(t *testing.T, c *state.Cluster, id string) state.Task {
	t.Helper()
	task, ok := c.Task(id)
	if !ok {
		t.Fatalf("task %s is not held", id)
	}
	return task
}

func TestCausalRules(t *testing.T) {
	t.Parallel()
	sent := ev(state.TaskSent, "a", "gen1@web", 1, 1)
	received := ev(state.TaskReceived, "a", "w1", 10, 2)
	started := ev(state.TaskStarted, "a", "w1", 10, 3)
	failed := ev(state.TaskFailed, "a", "w1", 10, 5)
	succeeded := ev(state.TaskSucceeded, "a", "w1", 10, 6)
	retried := ev(state.TaskRetried, "a", "w1", 10, 4)
	revokedElsewhere := ev(state.TaskRevoked, "a", "w2", 20, 8)
	again := retry(ev(state.TaskReceived, "a", "w2", 20, 7), 1)
	progress := ev(state.TaskCustom, "a", "w1", 11, 3.5)
	progress.Subject = "progress"
	redelivered := ev(state.TaskReceived, "a", "w2", 20, 9)
	for name, tc := range map[string]struct {
		events     []state.Event
		state      state.State
		worker     string
		executions int
	}{
		"only sent is pending":                         {[]state.Event{sent}, state.Pending, "", 0},
		"sent after received":                          {[]state.Event{received, sent}, state.Received, "w1", 1},
		"a late start does not undo success":           {[]state.Event{received, succeeded, started}, state.Success, "w1", 1},
		"success outranks failure":                     {[]state.Event{received, failed, succeeded}, state.Success, "w1", 1},
		"a late failure changes nothing":               {[]state.Event{succeeded, failed, received}, state.Success, "w1", 1},
		"waiting for a retry":                          {[]state.Event{received, started, retried}, state.Retry, "w1", 1},
		"a sent retry still waits":                     {[]state.Event{received, retried, retry(sent, 1)}, state.Retry, "w1", 1},
		"a retry taken by another worker":              {[]state.Event{again, received, started, retried}, state.Received, "w2", 2},
		"a late retried of the old attempt":            {[]state.Event{received, started, again, retried}, state.Received, "w2", 2},
		"a retry received before it is reported":       {[]state.Event{received, started, retry(ev(state.TaskReceived, "a", "w1", 10, 4), 1), ev(state.TaskRetried, "a", "w1", 10, 4.5), ev(state.TaskStarted, "a", "w1", 10, 5)}, state.Started, "w1", 2},
		"redelivery runs again, visibly":               {[]state.Event{received, started, failed, redelivered}, state.Received, "w2", 2},
		"custom state over started":                    {[]state.Event{received, started, progress}, "PROGRESS", "w1", 1},
		"revoked over custom":                          {[]state.Event{received, started, progress, ev(state.TaskRevoked, "a", "w1", 10, 4)}, state.Revoked, "w1", 1},
		"rejected over started":                        {[]state.Event{received, started, ev(state.TaskRejected, "a", "w1", 10, 4)}, state.Rejected, "w1", 1},
		"revoked by a worker that never took it":       {[]state.Event{sent, revokedElsewhere}, state.Revoked, "w2", 1},
		"revoked while waiting for a retry":            {[]state.Event{received, started, retried, revokedElsewhere}, state.Revoked, "w2", 2},
		"revoked on the same worker after a retry":     {[]state.Event{received, started, retried, ev(state.TaskRevoked, "a", "w1", 10, 8)}, state.Revoked, "w1", 2},
		"progress before its task-received is seen":    {[]state.Event{progress, received, started}, "PROGRESS", "w1", 1},
		"an execution known only by its end":           {[]state.Event{succeeded}, state.Success, "w1", 1},
		"progress of a task that nothing else says of": {[]state.Event{progress}, "PROGRESS", "w1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustTask(t, apply(state.New(state.Options{}), tc.events...), "a")
			if got.State != tc.state || len(got.Executions) != tc.executions || deref(got.Worker) != tc.worker {
				t.Errorf("got %s on %q in %d executions, want %s on %q in %d",
					got.State, deref(got.Worker), len(got.Executions), tc.state, tc.worker, tc.executions)
			}
		})
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestFieldsOfAnOldAttemptStayThere(t *testing.T) {
	t.Parallel()
	failed := ev(state.TaskRetried, "a", "w1", 10, 3)
	failed.Exception, failed.Traceback, failed.Present = "ValueError()", "Traceback", failed.Present|state.FieldException|state.FieldTraceback
	c := apply(state.New(state.Options{}),
		ev(state.TaskReceived, "a", "w1", 10, 1), failed, retry(ev(state.TaskReceived, "a", "w2", 20, 4), 1))
	got := mustTask(t, c, "a")
	if got.Exception != nil || got.RetriedAt != 0 {
		t.Errorf("exception %q and retry time %d leaked into the new attempt", deref(got.Exception), got.RetriedAt)
	}
	if first := got.Executions[0]; deref(first.Exception) != "ValueError()" || first.RetriedAt != at(3) {
		t.Errorf("the old attempt lost its fields: %+v", first)
	}
	if *got.Retries != 1 {
		t.Errorf("retries = %d, want 1", *got.Retries)
	}
}

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
		"a late heartbeat does not revive":  {[]state.Event{offline, heartbeat(10, 1)}, 4, state.Offline},
		"a newer heartbeat revives":         {[]state.Event{offline, heartbeat(10, 4)}, 5, state.Online},
		"a new pid revives":                 {[]state.Event{heartbeat(10, 1), offline, heartbeat(11, 4)}, 5, state.Online},
		"a forced heartbeat is a life sign": {[]state.Event{heartbeat(10, 1), forced}, 12, state.Online},
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

func TestChildrenFindTheirParentInAnyOrder(t *testing.T) {
	t.Parallel()
	child := func(id string, second float64) state.Event {
		e := ev(state.TaskReceived, id, "w1", 10, second)
		e.ParentID, e.RootID, e.Present = "p", "p", e.Present|state.FieldParentID|state.FieldRootID
		return e
	}
	c := apply(state.New(state.Options{}), child("c2", 3), ev(state.TaskReceived, "p", "w1", 10, 1), child("c1", 2))
	if diff := cmp.Diff([]string{"c1", "c2"}, mustTask(t, c, "p").Children); diff != "" {
		t.Errorf("children by stamp (-want +got):\n%s", diff)
	}
	page := c.Tasks(state.Query{Root: "p"})
	if len(page.Tasks) != 3 {
		t.Errorf("query by root finds %d tasks, want 3", len(page.Tasks))
	}
}

func TestEvictionSparesActiveTasks(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{MaxTasks: 100})
	apply(c, ev(state.TaskReceived, "active", "w1", 10, 1))
	for i := range 500 {
		apply(c, ev(state.TaskSucceeded, fmt.Sprint("done", i), "w1", 10, float64(i+2)))
	}
	counts := c.Counts()
	if counts.Tasks > 100 || counts.Evicted != uint64(501-counts.Tasks) {
		t.Errorf("%d tasks held, %d evicted, want at most 100 of 501", counts.Tasks, counts.Evicted)
	}
	if _, ok := c.Task("active"); !ok {
		t.Error("an active task was evicted before finished ones")
	}
	if _, ok := c.Task("done499"); !ok {
		t.Error("the newest task was evicted")
	}
	for i := range 300 {
		apply(c, ev(state.TaskReceived, fmt.Sprint("a", i), "w1", 10, float64(i+1000)))
	}
	if n := c.Counts().Tasks; n > 100 {
		t.Errorf("%d active tasks held, want at most 100", n)
	}
}

func TestPagesCoverEveryTaskOnceBothWays(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	var want []string
	for i := range 733 {
		id := fmt.Sprintf("t%03d", i)
		kind := state.TaskSucceeded
		if i%3 == 0 {
			kind = state.TaskFailed
		}
		apply(c, ev(kind, id, fmt.Sprint("w", i%2), 10, float64(i+1)))
		want = append(want, id)
	}
	slices.Reverse(want)
	for _, q := range []state.Query{{Limit: 7}, {Limit: 50, States: []state.State{state.Failure}}, {Limit: 11, Workers: []string{"w1"}}, {Limit: 9, Text: "T1"}} {
		var down, up []string
		var bottom *state.Position
		for page := c.Tasks(q); ; page = c.Tasks(q) {
			for _, task := range page.Tasks {
				down = append(down, task.ID)
			}
			if page.Older == nil {
				bottom = page.Newer
				for _, task := range slices.Backward(page.Tasks) {
					up = append(up, task.ID)
				}
				break
			}
			q.From = page.Older
		}
		for q.From, q.Newer = bottom, true; q.From != nil; {
			page := c.Tasks(q)
			for _, task := range slices.Backward(page.Tasks) {
				up = append(up, task.ID)
			}
			q.From = page.Newer
		}
		slices.Reverse(up)
		match := slices.DeleteFunc(slices.Clone(want), func(id string) bool {
			var n int
			_, _ = fmt.Sscanf(id, "t%d", &n)
			return q.States != nil && n%3 != 0 || q.Workers != nil && n%2 != 1 || q.Text != "" && !strings.HasPrefix(id, "t1")
		})
		if diff := cmp.Diff(match, down); diff != "" {
			t.Errorf("older pages of %+v (-want +got):\n%s", q, diff)
		}
		if diff := cmp.Diff(match, up); diff != "" {
			t.Errorf("newer pages of %+v (-want +got):\n%s", q, diff)
		}
	}
}

func TestTextFindsIDsNamesArgsAndExceptions(t *testing.T) {
	t.Parallel()
	failed := ev(state.TaskFailed, "f1", "w1", 10, 2)
	failed.Exception, failed.Present = "ConnectionError('db-7')", failed.Present|state.FieldException
	c := apply(state.New(state.Options{}), ev(state.TaskReceived, "r1", "w1", 10, 1), failed)
	for text, want := range map[string]string{"R1": "r1", "shop.PAY": "r1", "(1,": "r1", "db-7": "f1", "connectionerror": "f1", "nothing": ""} {
		var got []string
		for _, task := range c.Tasks(state.Query{Text: text}).Tasks {
			got = append(got, task.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("text %q finds %q, want %q", text, got, want)
		}
	}
}

func TestCountsFollowEveryChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		c := fold(t, state.Causal, history.Shuffle(seed, history.New(seed, wild()).Events))
		got := c.Counts()
		byState, byWorker, byName := map[state.State]int{}, map[string]int{}, map[string]int{}
		orphaned := 0
		for _, task := range tasks(c) {
			byState[task.State]++
			if task.Worker != nil {
				byWorker[*task.Worker]++
			}
			if task.Name != nil {
				byName[*task.Name]++
			}
			if task.Orphaned {
				orphaned++
			}
		}
		for _, s := range state.States() { // zero counts are left out by one and may be by the other
			if byState[s] != got.ByState[s] {
				t.Fatalf("seed %d: %d tasks in %s, counted %d", seed, byState[s], s, got.ByState[s])
			}
		}
		if diff := cmp.Diff(byWorker, got.ByWorker); diff != "" {
			t.Fatalf("seed %d: by worker (-tasks +counts):\n%s", seed, diff)
		}
		if diff := cmp.Diff(byName, got.ByName); diff != "" {
			t.Fatalf("seed %d: by name (-tasks +counts):\n%s", seed, diff)
		}
		if orphaned != got.Orphaned {
			t.Fatalf("seed %d: %d tasks orphaned, counted %d", seed, orphaned, got.Orphaned)
		}
	}
}

func TestSnapshotRestoresEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		want := fold(t, state.Causal, history.New(seed, wild()).Events)
		var b bytes.Buffer
		if err := want.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		got := state.New(state.Options{})
		if err := got.Restore(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
			t.Fatalf("seed %d: tasks (-want +restored):\n%s", seed, diff)
		}
		if diff := cmp.Diff(want.Workers(), got.Workers()); diff != "" {
			t.Fatalf("seed %d: workers (-want +restored):\n%s", seed, diff)
		}
		if want.Clock() != got.Clock() {
			t.Fatalf("seed %d: receiver clock %d restored as %d", seed, want.Clock(), got.Clock())
		}
	}
}

func TestRestoreRefusesWhatIsNoSnapshot(t *testing.T) {
	t.Parallel()
	if err := state.New(state.Options{}).Restore(strings.NewReader("no snapshot")); err == nil {
		t.Error("restored from text")
	}
}

func TestEndlessNamesStayBounded(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{MaxTasks: 100_000})
	for i := range 60_000 {
		e := ev(state.TaskReceived, fmt.Sprint("t", i), "w1", 10, float64(i+1))
		e.Name = fmt.Sprint("name", i)
		apply(c, e)
	}
	if names, _ := c.Capped(); names == 0 || len(c.Names()) > 50_001 {
		t.Errorf("%d names held, %d capped, want a bound", len(c.Names()), names)
	}
	if n := c.Counts().Tasks; n != 60_000 {
		t.Errorf("%d tasks held, want all 60,000", n)
	}
}

func TestATaskThatNeverStopsReportingStaysBounded(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}), ev(state.TaskReceived, "a", "w1", 10, 1), ev(state.TaskStarted, "a", "w1", 10, 2))
	for i := range 1000 {
		e := ev(state.TaskCustom, "a", "w1", 11, float64(i+3))
		e.Subject = "progress"
		apply(c, e)
	}
	apply(c, ev(state.TaskSucceeded, "a", "w1", 10, 2000))
	if got := mustTask(t, c, "a"); got.State != state.Success || got.ReceivedAt != at(1) || len(c.TaskEvents("a")) > 64 {
		t.Errorf("got %s, received at %d, %d events", got.State, got.ReceivedAt, len(c.TaskEvents("a")))
	}
}

// FuzzFold feeds arbitrary events: nothing may panic, and no event may change another task.
func FuzzFold(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte("the quick brown fox jumps over the lazy dog, again and again"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := apply(state.New(state.Options{MaxTasks: 50}), ev(state.TaskReceived, "still", "calm", 1, 1))
		want := mustTask(t, c, "still")
		for i := 0; i+4 <= len(data); i += 4 {
			e := ev(state.Kind(data[i]%16), fmt.Sprint("t", data[i+1]%8), fmt.Sprint("w", data[i+1]%3), int64(data[i+2]%4), float64(data[i+3]))
			e.Retries = int64(data[i+2]) - 3
			e.Subject = string(data[i : i+1])
			e.ParentID, e.RootID = fmt.Sprint("t", data[i+3]%8), fmt.Sprint("t", data[i+2]%8)
			e.Present |= state.Fields(data[i]) << 3
			if data[i+3] == 0 {
				e.Clock = 1 << 62
			}
			apply(c, e)
			c.Tasks(state.Query{Text: "t1"})
		}
		c.Counts()
		got := mustTask(t, c, "still")
		got.Orphaned, got.OrphanReason = want.Orphaned, want.OrphanReason
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("another task's events changed it (-before +after):\n%s", diff)
		}
	})
}
