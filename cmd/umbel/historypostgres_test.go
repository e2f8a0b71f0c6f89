package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/umbelhq/umbel/internal/testpostgres"
)

func TestOneServerUsesADatabase(t *testing.T) {
	t.Parallel()
	url := testpostgres.Schema(t)
	first := start(t, nil, "demo", "--history", url)
	status, out, complaint := once(t, nil, nil, "demo", "--history", url, "--listen", "127.0.0.1:0")
	if status != 1 || out != "" || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, "in use by another process: process ") {
		t.Errorf("a second one: status %d and %q, want 1 and a line that says who uses the database", status, complaint)
	}
	if status := first.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("the first one stopped with status %d, want 0", status)
	}
	start(t, nil, "demo", "--history", url).end(t, syscall.SIGTERM)
}

func TestHistoryIsCopiedToADatabase(t *testing.T) {
	t.Parallel()
	url, dir := testpostgres.Schema(t), t.TempDir()
	d := start(t, nil, "demo", "--data-dir", dir)
	eventually(t, timeout, func() error {
		if _, body := d.fetch(t, "api/v1/tasks?q=state:success"); !strings.Contains(string(body), `"id":`) {
			return fmt.Errorf("%s, want a task", body)
		}
		return nil
	})
	d.end(t, syscall.SIGTERM)
	for _, want := range []int{0, 1} { // not over another history
		status, out, complaint := once(t, nil, nil, "history", "copy", dir, url)
		if status != want || strings.HasPrefix(out, "copied ") != (want == 0) {
			t.Errorf("copy: status %d, want %d; %q, %q", status, want, out, complaint)
		}
	}
	_, kept, _ := once(t, nil, nil, "tasks", "--data-dir", dir)
	if _, copied, complaint := once(t, nil, nil, "tasks", "--history", url); copied != kept || copied == "" {
		t.Errorf("tasks of the copy: %q, %s; want %q", copied, complaint, kept)
	}
}

func TestADatabaseIsRedacted(t *testing.T) {
	t.Parallel()
	url := testpostgres.Schema(t)
	d := start(t, nil, "demo", "--history", url)
	eventually(t, timeout, func() error {
		if _, body := d.fetch(t, "api/v1/tasks?q=state:success"); !strings.Contains(string(body), `"id":`) {
			return fmt.Errorf("%s, want a task", body)
		}
		return nil
	})
	rewrite := []string{"redact", "--history", url, "--redact", "task * args", "--rewrite", "--yes"}
	if status, _, complaint := once(t, nil, nil, rewrite...); status != 1 || !strings.Contains(complaint, "Stop the server first") {
		t.Errorf("redact while a server runs: status %d, %q", status, complaint)
	}
	d.end(t, syscall.SIGTERM)
	status, out, complaint := once(t, nil, nil, rewrite...)
	if status != 0 || !strings.Contains(out, "\nredacted\n") {
		t.Errorf("redact: status %d, %q, %q", status, out, complaint)
	}
	if status, _, complaint := once(t, nil, nil, "repair", "--history", url); status != 2 || strings.Count(complaint, "\n") != 1 {
		t.Errorf("repair: status %d, %q, want a line", status, complaint)
	}
}
