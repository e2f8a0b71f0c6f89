package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOneServerUsesADataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, nil, "demo", "--data-dir", dir)
	status, out, complaint := once(t, nil, nil, "demo", "--data-dir", dir, "--listen", "127.0.0.1:0")
	if status != 1 || out != "" || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, dir) ||
		!strings.Contains(complaint, "in use by another process") {
		t.Errorf("a second one: status %d and %q, want 1 and a line that says that %s is in use", status, complaint, dir)
	}
	if status := first.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("the first one stopped with status %d, want 0", status)
	}
	start(t, nil, "demo", "--data-dir", dir)
}

// Without --data-dir, the history is where the user keeps data.
func TestHistoryIsInTheUsersDataDirectory(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ data, want string }{
		"home":             {"", "home/.local/share/umbel/history.db"},
		"data home":        {"DIR/data", "data/umbel/history.db"},
		"no absolute path": {"data", "home/.local/share/umbel/history.db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			env := []string{"HOME=" + dir + "/home", "XDG_DATA_HOME=" + strings.Replace(tc.data, "DIR", dir, 1), "UMBEL_DATA_DIR="}
			d := start(t, env, "serve", "--broker-url", "amqp://127.0.0.1:1/")
			if _, err := os.Stat(filepath.Join(dir, tc.want)); err != nil {
				t.Error(err)
			}
			d.end(t, syscall.SIGTERM)
		})
	}
}
