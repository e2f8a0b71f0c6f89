package idempotency_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/idempotency"
)

// umbelPython prepares a script of testdata that imports the Python package umbel.
func umbelPython(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	source, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), testenv.Python(t), append([]string{"testdata/" + script}, args...)...)
	c.Env = append(os.Environ(), "PYTHONPATH="+source, "PYTHONDONTWRITEBYTECODE=1")
	c.Stderr = t.Output()
	return c
}

// An IdempotentTask runs once, and one that fails runs again. While it runs, its key names it.
func TestPythonTaskRunsOnce(t *testing.T) {
	t.Parallel()
	url := testenv.Redis(t)
	name := "once." + uuid.NewString()
	client := connect(t, url)
	t.Cleanup(func() { clean(t, client, name) })
	out, err := umbelPython(t, "task.py", url, name).Output()
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		State  string
		Result struct {
			ID, Value, Status, Reason string
			Again                     struct{ Status, Reason string }
		}
	}
	var got []answer
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var a answer
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		got = append(got, a)
	}
	if len(got) != 4 {
		t.Fatalf("got %s, want 4 results", out)
	}
	first := got[0].Result
	holder, ok := idempotency.ParseLockValue(first.Value)
	if !ok || holder.State != idempotency.Processing || holder.TaskID != "the-id" || first.ID != "the-id" {
		t.Errorf("while it ran, its id was %q and its key held %q", first.ID, first.Value)
	}
	if first.Again.Status != "skipped" || first.Again.Reason != "concurrent_execution" {
		t.Errorf("called while it ran: %+v", first.Again)
	}
	if second := got[1].Result; second.Status != "skipped" || second.Reason != "already_completed" {
		t.Errorf("called again: %+v", second)
	}
	if got[2].State != "FAILURE" || got[3].State != "FAILURE" {
		t.Errorf("got %s and %s, want two failures", got[2].State, got[3].State)
	}
}
