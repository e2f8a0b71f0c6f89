//go:build unix

package listener_test

import (
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/listener"
)

// get requests / of a socket.
func get(t *testing.T, path string) (string, error) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

// shortDir returns a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "l") //nolint:usetesting // paths of sockets are at most 108 bytes long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestSocketIsPrivateAndRemoved(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	path := filepath.Join(dir, "umbel.sock")
	l, err := listener.Listen(t.Context(), "unix:"+path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	if got, want := l.URL("/umbel/"), "unix:"+path; got != want {
		t.Errorf("URL %s, want %s", got, want)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode(), fs.ModeSocket|0o600; got != want {
		t.Errorf("mode %v, want %v", got, want)
	}
	if body, err := get(t, path); body != "HTTP/1.1" || err != nil {
		t.Errorf("answer %q, %v", body, err)
	}
	if _, err := listener.Listen(t.Context(), "unix:"+path, nil, nil); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("listen again: %v", err)
	}
	if body, err := get(t, path); body != "HTTP/1.1" || err != nil {
		t.Errorf("answer after another tried %q, %v", body, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(dir); len(list) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "umbel.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil { // as after a crash
		t.Fatal(err)
	}
	l, err := listener.Listen(t.Context(), "unix:"+path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	if body, err := get(t, path); body != "HTTP/1.1" || err != nil {
		t.Errorf("answer %q, %v", body, err)
	}
}

func TestSocketOfAnotherIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "umbel.sock")
	l, err := listener.Listen(t.Context(), "unix:"+path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := listener.Listen(t.Context(), "unix:"+path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, other)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if body, err := get(t, path); body != "HTTP/1.1" || err != nil {
		t.Errorf("answer %q, %v", body, err)
	}
}

func TestFileThatIsNoSocketIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "notes.txt")
	if err := os.WriteFile(path, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listener.Listen(t.Context(), "unix:"+path, nil, nil); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "keep" || err != nil {
		t.Errorf("file %q, %v", b, err)
	}
	if _, err := listener.Listen(t.Context(), "unix:", nil, nil); err == nil || !strings.Contains(err.Error(), "no path") {
		t.Errorf("error %v", err)
	}
}
