package testdjango_test

import (
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/internal/testenv"
)

func TestAdminMovesDeadLettersBack(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, string) *testdjango.Project{"sqlite": testdjango.SQLite, "postgresql": testdjango.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, "")
			id := p.Enqueue(t, "shop.charge", []any{7}, map[string]any{"card": "4711"})
			p.Retry(t, p.Bury(t, id))
			var row struct {
				TaskID   string         `json:"task_id"`
				Retries  int            `json:"retries"`
				Redacted map[string]any `json:"redacted_kwargs"`
			}
			p.Do(t, &row, `result = CeleryOutbox.objects.values("task_id", "retries", "redacted_kwargs").get()`)
			if row.TaskID != id || row.Retries != 0 || row.Redacted["card"] != "***" {
				t.Errorf("row of %s = %+v, want it with no retries and its card redacted", id, row)
			}
		})
	}
}

func TestRelayEmptiesTheOutbox(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, testenv.VirtualHost(t))
	p.Enqueue(t, "shop.charge", []any{7}, nil)
	kill := testdjango.Start(t, p.Relay())
	for rows := 1; rows > 0; {
		p.Do(t, &rows, `
import time
time.sleep(0.05)
result = CeleryOutbox.objects.count()`)
	}
	kill()
}

// TestSQLiteHasNoRelay holds what the documentation of Umbel says of SQLite.
func TestSQLiteHasNoRelay(t *testing.T) {
	t.Parallel()
	cmd := testdjango.SQLite(t, "memory://").Relay()
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "SKIP LOCKED") {
		t.Errorf("relay on SQLite: %v\n%s", err, out)
	}
}
