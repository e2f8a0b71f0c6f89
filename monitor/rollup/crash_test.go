package rollup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

// folded is a cluster that counts and keeps a journal, as a monitor does.
type folded struct {
	cluster *state.Cluster
	counts  rollup.Recorder
	journal []byte
}

func (f *folded) apply(kind state.Kind, i int) {
	e := event(kind, int64(i))
	e.Hostname, e.PID, e.ID, e.Name, e.Clock = "celery@a", 7, fmt.Sprint("task-", i), "charge", int64(i+1)
	e.Runtime, e.Present = 1, state.FieldClock|state.FieldPID|state.FieldTimestamp|state.FieldName|state.FieldRuntime
	ch := f.cluster.Apply(e)
	f.counts.Add(e, ch)
	if ch.New {
		f.journal = state.AppendEvent(f.journal, e, ch.Clock)
	}
}

func (f *folded) write(t *testing.T, s history.Store, checkpoint bool) {
	t.Helper()
	b := history.Batch{Journal: f.journal}
	for _, u := range f.cluster.TakeUnsaved(1000) {
		b.Tasks = append(b.Tasks, history.Task(u))
	}
	if checkpoint {
		b.Checkpoint = &history.Checkpoint{Rollups: f.counts.Take()}
	}
	written, err := s.Write(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cluster.Saved(true, written.Existing); err != nil {
		t.Fatal(err)
	}
	f.journal = nil
}

// A kill between a checkpoint and the tasks that follow it, and all events delivered again: each counts once.
func TestACrashCountsNothingTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *sqlite.DB {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	f := folded{cluster: state.New(state.Options{})}
	f.apply(state.TaskReceived, 0)
	f.apply(state.TaskSucceeded, 0)
	f.apply(state.TaskReceived, 1)
	f.write(t, s, true)
	f.apply(state.TaskSucceeded, 1)
	f.apply(state.TaskReceived, 2)
	f.write(t, s, false)
	f.apply(state.TaskFailed, 2) // was not written when the kill came
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open()
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	f = folded{cluster: state.New(state.Options{})}
	err := s.Restore(t.Context(), history.RestoreOptions{
		MaxTasks:   1000,
		Checkpoint: func(history.Checkpoint) error { return nil },
		Task:       func(id string, events []byte) error { return f.cluster.Load(id, events) },
		Omitted:    func(state.Position) error { return nil },
		Journal: func(_ uint64, events []byte, checkpointed bool) error {
			return f.cluster.Replay(events, nil, func(e *state.Event, ch state.Change) {
				if !checkpointed {
					f.counts.Replay(e, ch)
				}
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		f.apply(state.TaskReceived, i)
	}
	f.apply(state.TaskSucceeded, 0)
	f.apply(state.TaskSucceeded, 1)
	f.apply(state.TaskFailed, 2)
	f.write(t, s, true)

	var got history.Rollup
	r := history.RollupRange{From: time.Unix(60*noon, 0), To: time.Unix(60*noon+60, 0), Span: time.Minute, Wait: true, Run: true}
	if err := s.Rollups(t.Context(), r, func(m history.Rollup) error {
		if m.Name != "" {
			got = m
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := history.Rollup{
		At: noon, Name: "charge", Worker: "celery@a", Received: 3, Succeeded: 2, Failed: 1, Run: of(1_000_000, 1_000_000).Encode(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("minute (-want +got):\n%s", diff)
	}
}
