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
	status, text, complaint := once(t, env, nil, "status", "--json")
	var got struct{ Level, Sentence string }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("umbel status --json: %v: %s%s", err, text, complaint)
	}
	if want, ok := exits[got.Level]; !ok || status != want {
		t.Errorf("level %q exits %d, want %d", got.Level, status, want)
	}
	if _, out, _ := once(t, env, nil, "status"); !strings.Contains(out, " known whether work is flowing.\n  ") && !strings.HasPrefix(out, "Work is ") {
		t.Errorf("umbel status says %q", out)
	}
	if status, out, complaint := once(t, env, nil, "top"); status != 0 || !strings.Contains(out, "\nWORKER ") || !strings.Contains(out, "\nQUEUE ") || !strings.Contains(out, "\nTASK TYPE,") {
		t.Errorf("umbel top exits %d: %s%s", status, out, complaint)
	}
	if status, _, complaint := once(t, env, nil, "tail", "state:"); status != 1 || !strings.Contains(complaint, "400 Bad Request") {
		t.Errorf("umbel tail of a wrong query exits %d: %s", status, complaint)
	}
	cmd, out := command(env, umbel, "tail", "--lines", "0", "state:success"), newLines()
	cmd.Stdout = out
	tail := spawn(t, cmd)
	for text, more := out.read(); !strings.Contains(text, "SUCCESS"); text, more = out.read() {
		<-more // the test's own deadline bounds it
	}
	d.end(t, syscall.SIGTERM)
	tail.await(t, "trying again")
	if status := tail.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("umbel tail exits %d when it is told to end", status)
	}
	if status, _, complaint := once(t, env, nil, "status"); status != 2 || !strings.Contains(complaint, "no response from Umbel") {
		t.Errorf("umbel status after the end exits %d: %s", status, complaint)
	}
}
