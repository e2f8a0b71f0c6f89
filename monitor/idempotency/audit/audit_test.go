package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency/audit"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const noon = int64(1_795_262_400_000_000)

// ran are the events of a task that ran on two workers at once, each for 40 s, from offset on, with an ETA an hour after.
func ran(id, name string, offset time.Duration) []*state.Event {
	at := func(d time.Duration) int64 { return noon + (offset + d).Microseconds() }
	var list []*state.Event
	for i, worker := range []string{"a", "b"} {
		pid := int64(i + 1)
		event := func(kind state.Kind, d time.Duration) *state.Event {
			return &state.Event{
				Kind: kind, ID: id, Hostname: worker, PID: pid, Micros: at(d), ReceivedMicros: at(d), Clock: int64(10*i) + int64(kind),
				Present: state.FieldClock | state.FieldTimestamp,
			}
		}
		received := event(state.TaskReceived, time.Duration(10*i)*time.Second)
		received.Name, received.ETA = name, time.UnixMicro(at(time.Hour)).UTC().Format(time.RFC3339)
		received.Present |= state.FieldName | state.FieldETA
		succeeded := event(state.TaskSucceeded, time.Duration(40+10*i)*time.Second)
		succeeded.Runtime = 40
		succeeded.Present |= state.FieldRuntime
		list = append(list, received, event(state.TaskStarted, time.Duration(10*i)*time.Second), succeeded)
	}
	return list
}

// onRedis has reported settings with a visibility timeout of 30 s.
func onRedis(node string, tasks []remote.RegisteredTask) remote.WorkerSettings {
	return remote.WorkerSettings{
		Node: node, AskedAt: time.UnixMicro(noon), At: time.UnixMicro(noon), Tasks: tasks,
		Conf: map[string]json.RawMessage{"task_acks_late": json.RawMessage("true")},
		Stats: &remote.Stats{Broker: map[string]json.RawMessage{
			"transport": json.RawMessage(`"redis"`), "transport_options": json.RawMessage(`{"visibility_timeout":"30"}`),
		}},
	}
}

func read(t *testing.T, c audit.Tasks, rollups history.RollupReader, workers ...remote.WorkerSettings) audit.Report {
	t.Helper()
	return audit.Read(t.Context(), audit.Options{
		Tasks: c, Rollups: rollups, Settings: func() []remote.WorkerSettings { return workers }, Now: time.UnixMicro(noon).Add(time.Minute),
	})
}

func find(t *testing.T, r audit.Report, cause string) audit.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Cause == cause {
			return f
		}
	}
	t.Fatalf("no finding %s among %+v", cause, r.Findings)
	return audit.Finding{}
}

func TestFindingNamesTheTasksToWhichItHappened(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, state.Options{})
	c.Apply(ran("1", "billing.charge", 0)...)
	c.Apply(ran("2", "other", 0)...)
	tasks := []remote.RegisteredTask{{Name: "billing.charge"}}
	r := read(t, c, c.DB, onRedis("a", tasks), onRedis("b", tasks), remote.WorkerSettings{Node: "c"})
	if r.Waiting != 1 || r.Workers != 2 || len(r.Partial) > 0 {
		t.Errorf("report has %d workers, %d waiting, %v; want 2 and 1", r.Workers, r.Waiting, r.Partial)
	}
	f := find(t, r, "visibility-run-time")
	if f.Severity != audit.Happened || f.Total != (history.Count{N: 1, Exact: true}) || len(f.Queries) != 1 {
		t.Errorf("finding = %+v, want one task", f)
	}
	if got, want := f.Queries[0].Query.String(), "is:redelivered name:billing.charge"; got != want {
		t.Errorf("query = %q, want %q", got, want)
	}
	if f := find(t, r, "visibility-eta"); !strings.HasPrefix(f.Tasks[0].Detail, "ETA up to 1h ahead") || f.Severity != audit.Happened {
		t.Errorf("finding = %+v, want an ETA an hour ahead", f)
	}
}

func TestManyNamesAreCountedInSeveralQueries(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, state.Options{})
	var tasks []remote.RegisteredTask
	for i := range 500 {
		name := fmt.Sprintf("a.long.module.of.an.application.task_%03d", i)
		tasks = append(tasks, remote.RegisteredTask{Name: name})
		if i%250 == 3 {
			c.Apply(ran(fmt.Sprint(i), name, 0)...)
		}
	}
	f := find(t, read(t, c, c.DB, onRedis("a", tasks)), "visibility-eta")
	if f.Total.N != 2 || len(f.Tasks) != 2 {
		t.Errorf("total = %+v of %d tasks, want 2", f.Total, len(f.Tasks))
	}
	early := onRedis("a", tasks)
	early.Conf = map[string]json.RawMessage{"task_acks_late": json.RawMessage("false")}
	f = find(t, read(t, c, c.DB, early), "early-acknowledgement")
	asked := 0
	for _, q := range f.Queries {
		asked += q.Names
		if _, err := query.Parse(q.Query.String()); err != nil {
			t.Errorf("query does not parse: %v", err)
		}
	}
	if f.Total.Exact || len(f.Queries) != 8 || asked >= 500 {
		t.Errorf("%d queries for %d names, exact %v; want 8 for less than 500", len(f.Queries), asked, f.Total.Exact)
	}
}

func TestWorkersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, state.Options{})
	pickles := remote.WorkerSettings{Node: "pickles", AskedAt: time.UnixMicro(noon), Errors: map[string]string{
		"conf": "reply is a pickle (application/x-python-serialize): set accept_content and task_serializer to json",
	}}
	silent := remote.WorkerSettings{Node: "silent", AskedAt: time.UnixMicro(noon), Errors: map[string]string{"conf": "no reply from silent in 2 s", "stats": "no reply from silent in 2 s"}}
	stale := onRedis("stale", nil)
	stale.Errors = map[string]string{"conf": "no reply from stale in 2 s"}
	r := read(t, c, c.DB, pickles, silent, stale)
	whys := map[string][]string{}
	for _, u := range r.Unknown {
		whys[u.Why] = u.Workers
	}
	for why, worker := range map[string]string{
		"Replies are pickles, which Umbel does not read: set task_serializer to json.": "pickles", "No reply.": "silent",
		"No reply since 12:00:00 UTC: what was reported then is judged.": "stale",
	} {
		if diff := cmp.Diff([]string{worker}, whys[why]); diff != "" {
			t.Errorf("workers of %q (-want +got):\n%s", why, diff)
		}
	}
	if f := find(t, r, "pickled-arguments"); len(f.Workers) != 1 || f.Workers[0] != "pickles" {
		t.Errorf("finding = %+v, want that of the worker that pickles", f)
	}
}

// down is a history that cannot be read.
type down struct{ *testcluster.Cluster }

var errDown = errors.New("disk I/O error")

func (down) Tasks(context.Context, history.TaskRequest) (history.TaskPage, error) {
	return history.TaskPage{}, errDown
}

func (down) Count(context.Context, query.Query) (history.Count, error) {
	return history.Count{}, errDown
}

func (down) Rollups(context.Context, history.RollupRange, func(history.Rollup) error) error {
	return errDown
}

func TestHistoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := down{testcluster.New(t, state.Options{})}
	early := onRedis("a", []remote.RegisteredTask{{Name: "t"}})
	early.Conf = map[string]json.RawMessage{"task_acks_late": json.RawMessage("false")}
	r := read(t, broken, broken, early)
	want := []string{
		"Run times could not be read: disk I/O error.", "ETAs could not be read: disk I/O error.",
		"Some of the tasks to which it happened could not be read: disk I/O error.",
	}
	if diff := cmp.Diff(want, r.Partial); diff != "" {
		t.Errorf("partial (-want +got):\n%s", diff)
	}
	if f := find(t, r, "early-acknowledgement"); f.Total.Exact || f.Severity != audit.Possible {
		t.Errorf("finding = %+v, want an unknown total", f)
	}
}
