package main_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
)

// history is the command "history DIR FILE": DIR has the history of the events in FILE, one body a line.
func fillHistory(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: history DIR FILE")
	}
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: ts.MkAbs(args[0])})
	ts.Check(err)
	ts.Check(save(db, ts.ReadFile(args[1])))
	ts.Check(db.Close())
}

// save writes the tasks of events, one body a line.
func save(db *sqlite.DB, events string) error {
	cluster := state.New(state.Options{Track: true})
	var decoder celery.Decoder
	for line := range strings.Lines(events) {
		decoder.Decode([]byte(line), 0, func(e *state.Event) {
			e.ReceivedMicros = e.Micros
			cluster.Apply(e)
		})
	}
	var b history.Batch
	for _, u := range cluster.TakeUnsaved(cluster.Unsaved()) {
		b.Tasks = append(b.Tasks, history.Task(u))
	}
	_, err := db.Write(context.Background(), b)
	return err
}

func TestTasksAreListedWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing depends on it
	for i := range 3 {
		event := `{"type":"task-received","uuid":"t%d","name":"shop.pay","hostname":"w@h","pid":7,"clock":%[1]d,"timestamp":1790000001.0}`
		if err := save(db, fmt.Sprintf(event, i+1)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), umbel, "tasks", "--data-dir", dir, "--format=json").Output()
		if err != nil {
			t.Fatalf("umbel tasks: %v", err)
		}
		if got := strings.Count(string(out), "\n"); got != i+1 {
			t.Errorf("%d tasks after %d were written:\n%s", got, i+1, out)
		}
	}
}
