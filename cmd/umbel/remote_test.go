package main_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

// Commands that ask a running Umbel: they say what its API says, and fail once it has ended.
func TestCommandsThatAskARunningUmbel(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo", "--prefix", "/x")
	env := []string{"UMBEL_URL=" + d.url}
	exits := map[string]int{"flowing": 0, "degraded": 1, "stuck": 1, "unknown": 2}
	status, out, complaint := once(t, env, nil, "status", "--json")
	var got struct{ Level, Sentence string }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("umbel status --json: %v: %s%s", err, out, complaint)
	}
	if want, ok := exits[got.Level]; !ok || status != want {
		t.Errorf("level %q exits %d, want %d", got.Level, status, want)
	}
	if _, out, _ := once(t, env, nil, "status"); !strings.Contains(out, " known whether work is flowing.\n  ") && !strings.HasPrefix(out, "Work is ") {
		t.Errorf("umbel status says %q", out)
	}
	d.end(t, syscall.SIGTERM)
	if status, _, complaint := once(t, env, nil, "status"); status != 2 || !strings.Contains(complaint, "no response from Umbel") {
		t.Errorf("umbel status after the end exits %d: %s", status, complaint)
	}
}
