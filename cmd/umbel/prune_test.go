package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

func TestPruneLeavesTheHistoryOfARunningServerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	out, err := exec.CommandContext(t.Context(), umbel, "prune", "--data-dir", dir).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("umbel prune: %v, want exit status 1", err)
	}
	for _, want := range []string{fmt.Sprintf("(pid %d)", os.Getpid()), "prunes by itself", "--dry-run"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("umbel prune says %q, want %q in it", out, want)
		}
	}
	out, err = exec.CommandContext(t.Context(), umbel, "prune", "--dry-run", "--data-dir", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "tasks kept            0\n") {
		t.Errorf("umbel prune --dry-run: %v, %q", err, out)
	}
}
