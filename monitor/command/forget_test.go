package command_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

func TestOnlyWorkersThatLeftNothingAreForgotten(t *testing.T) {
	t.Parallel()
	const away = 40 * time.Second
	b := newBench(t, nil, &worker{name: "w1", silent: away}, &worker{name: "w2"}, &worker{name: "gone", silent: away})
	b.task("a", state.TaskStarted, nil) // on w1
	for name, want := range map[string]struct {
		kind    command.Kind
		message string
	}{
		"w1":   {command.Conflict, "1 unfinished task"},
		"w2":   {command.Conflict, "w2 is online"},
		"gon":  {command.NotFound, "there is no worker"},
		"nope": {command.NotFound, "there is no worker"},
	} {
		_, err := b.PreviewForget([]string{"gone", name})
		wrong, ok := errors.AsType[*command.Error](err)
		if !ok || wrong.Kind != want.kind || !strings.Contains(wrong.Message, want.message) || wrong.Field != "workers[1]" {
			t.Errorf("preview of %s: %v, want %q", name, err, want.message)
		}
		if _, err := b.Forget(t.Context(), by, []string{"gone", name}); err == nil {
			t.Errorf("%s was forgotten", name)
		}
	}
	if n, err := b.Forget(t.Context(), by, []string{"gone", "gone"}); n != 1 || err != nil {
		t.Errorf("forgot %d workers, %v, want 1", n, err)
	}
	known := func() (is bool) {
		b.View(func(c state.View) { _, is = c.Worker("gone") })
		return is
	}
	if known() {
		t.Error("the worker is still known")
	}
	list, _, err := b.db.AuditLog(t.Context(), history.AuditFilter{Limit: 10})
	if err != nil || len(list) != 1 || list[0].Action != "forget" || list[0].Target != "gone" || list[0].Actor != by.Actor {
		t.Errorf("audit log = %+v, %v, want one record", list, err)
	}
	if bad, err := b.db.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("record %d of the audit log does not verify, %v", bad, err)
	}
	now := time.Now().UnixMicro()
	b.apply(state.Event{Kind: state.WorkerHeartbeat, Hostname: "gone", PID: 2, Clock: 9, Micros: now, ReceivedMicros: now})
	if !known() {
		t.Error("a heartbeat does not bring the worker back")
	}
}
