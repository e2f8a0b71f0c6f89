package main_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// umbel healthcheck finds the server by the same variables, and fails once it has ended.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo", "--prefix", "/x")
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"UMBEL_LISTEN=:" + u.Port()}
	if status, _, complaint := once(t, env, nil, "healthcheck"); status != 0 {
		t.Errorf("healthcheck exits %d: %s", status, complaint)
	}
	d.end(t, syscall.SIGTERM)
	if status, _, complaint := once(t, env, nil, "healthcheck"); status != 1 || !strings.Contains(complaint, "no response from") {
		t.Errorf("healthcheck after the end exits %d: %s", status, complaint)
	}
}

func TestHealthcheckOfASocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "umbel.sock")
	p := spawn(t, command(nil, umbel, "demo", "--listen", "unix:"+path))
	p.await(t, "dashboard ready")
	if status, _, complaint := once(t, []string{"UMBEL_LISTEN=unix:" + path}, nil, "healthcheck"); status != 0 {
		t.Errorf("healthcheck exits %d: %s", status, complaint)
	}
}
