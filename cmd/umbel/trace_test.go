package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/trace"
)

// saveTrace saves a trace of a simulated cluster, and returns the file, the root of a workflow that is in it, and what the
// cluster answered as of its end.
func saveTrace(t *testing.T) (file, root string, then map[string][]byte) {
	t.Helper()
	d := start(t, nil, "demo", "--rate", "10")
	var found struct{ Items []struct{ Root string } }
	eventually(t, timeout, func() error {
		found, _ = api[struct{ Items []struct{ Root string } }](t, d, "workflows?state=failed")
		if len(found.Items) == 0 {
			return fmt.Errorf("no workflow has failed")
		}
		return nil
	})
	status, body := d.fetch(t, "api/v1/trace")
	if status != http.StatusOK {
		t.Fatalf("saving a trace: %d %s", status, body)
	}
	file = filepath.Join(t.TempDir(), "trace.jsonl.gz")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	root = found.Items[0].Root
	r, err := trace.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	at := r.End().Format("2006-01-02T15:04:05.000000Z")
	then = map[string][]byte{}
	for _, path := range []string{"tasks?limit=500&", "tasks?q=state%3Afailure&sort=-run&", "tasks/" + root + "?", "workflows/" + root + "?"} {
		path = "api/v1/" + path + "at=" + at
		_, then[path] = d.fetch(t, path)
	}
	if status := d.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	return file, root, then
}

// TestATraceLooksTheSameOnEveryMachine serves one trace from two processes, one after the other, in other time zones and
// directories, and compares what they answer, and with what the cluster answered.
func TestATraceLooksTheSameOnEveryMachine(t *testing.T) {
	t.Parallel()
	file, root, then := saveTrace(t)
	paths := []string{
		"", "tasks", "tasks?q=state%3Afailure", "tasks?q=order&sort=-run", "tasks?chart=run+name+24h", "tasks/" + root, "workflows", "workflows/" + root,
		"workflows/" + root + "?tab=graph", "workflows/" + root + "?tab=space-time", "views", "failures", "duplicates", "workers", "nowhere",
		"tasks?q=state%3A", "api/v1/overview", "api/v1/tasks?limit=200", "api/v1/tasks?q=order", "api/v1/tasks/" + root, "api/v1/tasks/" + root + "/events",
		"api/v1/tasks/export", "api/v1/workers", "api/v1/failures", "api/v1/duplicates", "api/v1/series?from=-1h", "api/v1/workflows",
		"api/v1/workflows/" + root, "api/v1/workflows/export?root=" + root, "api/v1/trace", "api/v1/openapi.json", "api/v1/views",
	}
	serve := func(zone string) map[string][]byte {
		cmd := command([]string{"TZ=" + zone}, umbel, "serve", "--trace", file)
		cmd.Dir = t.TempDir()
		d := startProgram(t, cmd)
		seen := map[string][]byte{}
		for _, path := range paths {
			_, seen[path] = d.fetch(t, path)
		}
		for path, want := range then {
			_, got := d.fetch(t, path)
			items, _, _ := bytes.Cut(want, []byte(`,"total"`)) // which depends on what is in memory
			if !bytes.HasPrefix(got, items) {
				t.Errorf("/%s of the cluster and of its trace differ: %s", path, cmp.Diff(string(want), string(got)))
			}
		}
		overview := string(seen["api/v1/workflows/"+root])
		_, at, _ := strings.Cut(overview, `"started_at":"`)
		at, _, _ = strings.Cut(at, `"`)
		for _, path := range []string{"?", "tasks?", "workers?", "tasks/" + root + "?", "workflows/" + root + "?", "api/v1/overview?", "api/v1/tasks?"} {
			path += "at=" + url.QueryEscape(at)
			_, seen[path] = d.fetch(t, path)
		}
		if status, body := d.fetch(t, "tasks/"+root); status != http.StatusOK || !bytes.Contains(body, []byte(`id="trace"`)) {
			t.Errorf("the page of a task: %d\n%s", status, body)
		}
		if status := d.end(t, syscall.SIGTERM); status != 0 {
			t.Errorf("exit status %d, want 0", status)
		}
		return seen
	}
	first, second := serve("UTC"), serve("Asia/Tokyo")
	for path, want := range first {
		if got := second[path]; !bytes.Equal(want, got) {
			i := 0
			for i < min(len(want), len(got)) && want[i] == got[i] {
				i++
			}
			t.Errorf("/%s differs from byte %d on:\n%.300s\nand\n%.300s", path, i, want[max(0, i-60):], got[max(0, i-60):])
		}
	}
	status, out, complaint := once(t, nil, nil, "replay", file)
	if status != 0 || complaint != "" || !strings.Contains(out, "Trace of       all tasks\n") || !strings.Contains(out, "Worker ") {
		t.Errorf("replay: exit status %d\n%s%s", status, out, complaint)
	}
	status, out, complaint = once(t, nil, nil, "replay", "--json", file)
	if status != 0 || complaint != "" || !strings.Contains(out, root) {
		t.Errorf("replay --json: exit status %d, %d bytes\n%s", status, len(out), complaint)
	}
}

// TestABadTraceIsRefused is of files that are no whole trace.
func TestABadTraceIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, complaint := once(t, nil, nil, "serve", "--listen", "127.0.0.1:0", "--trace", file)
	if want := "umbel: " + file + " is not a trace of Umbel\n"; status != 1 || out != "" || complaint != want {
		t.Errorf("exit status %d, %q, want 1 and %q", status, complaint, want)
	}
	status, out, complaint = once(t, nil, nil, "serve", "--listen", "127.0.0.1:0", "--trace", file+"-2")
	if status != 1 || out != "" || !strings.Contains(complaint, "no such file") {
		t.Errorf("exit status %d, %q, want 1", status, complaint)
	}
}
