package main_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A socket is private, takes requests within bounds, and is removed at the end.
func TestListenOnASocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "u") //nolint:usetesting // paths of sockets are at most 108 bytes long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	p := spawn(t, command(nil, umbel, "demo", "--listen", "unix:"+path, "--prefix", "ops"))
	if line := p.await(t, "dashboard ready"); !strings.Contains(line, "unix:"+path) {
		t.Errorf("log says %s", line)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
	for name, test := range map[string]struct {
		header string
		want   int
	}{"usual": {"x", http.StatusOK}, "oversized": {strings.Repeat("x", 80<<10), http.StatusRequestHeaderFieldsTooLarge}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/ops/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", test.header)
		res, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = res.Body.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", name, res.StatusCode, test.want)
		}
	}
	client.CloseIdleConnections()
	if status := p.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	if list, err := os.ReadDir(dir); len(list) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", list, err)
	}
}
