package command_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
)

func TestEffectOn(t *testing.T) {
	t.Parallel()
	const revoke, terminate = `{"method":"revoke"}`, `{"method":"revoke","arguments":{"terminate":true}}`
	waiting := state.Execution{State: state.Received}
	running := state.Execution{State: state.Started, Times: state.Times{StartedAt: 1}}
	succeeded := state.Execution{State: state.Success, Times: state.Times{StartedAt: 1, SucceededAt: 2}}
	revoked := state.Execution{State: state.Revoked, Revocation: &state.Revocation{}, Times: state.Times{RevokedAt: 2}}
	begun := state.Execution{State: state.Revoked, Revocation: &state.Revocation{}, Times: state.Times{StartedAt: 1, RevokedAt: 2}}
	expired := state.Execution{State: state.Revoked, Revocation: &state.Revocation{Expired: true}}
	killed := state.Execution{State: state.Revoked, Revocation: &state.Revocation{Terminated: true, Signum: 15}, Times: state.Times{StartedAt: 1, RevokedAt: 2}}
	for name, tc := range map[string]struct {
		payload    string
		state      history.CommandState
		executions []state.Execution
		want       string
		grade      causality.Grade
	}{
		"revoked":                     {revoke, history.CommandDone, []state.Execution{revoked}, "revoked before it began", causality.Proved},
		"revoked, and no reply":       {revoke, history.CommandNoReply, []state.Execution{revoked}, "revoked before it began", causality.Proved},
		"another execution ran":       {revoke, history.CommandDone, []state.Execution{succeeded, revoked}, "effect unknown", causality.Unknown},
		"revoked after it began":      {terminate, history.CommandDone, []state.Execution{begun}, "effect unknown", causality.Unknown},
		"expired":                     {revoke, history.CommandDone, []state.Execution{expired}, "effect unknown", causality.Unknown},
		"terminated":                  {terminate, history.CommandDone, []state.Execution{killed}, "terminated while it ran", causality.Proved},
		"terminated by another":       {revoke, history.CommandDone, []state.Execution{killed}, "too late: it had begun", causality.Consistent},
		"ended":                       {terminate, history.CommandDone, []state.Execution{succeeded}, "too late: it had ended", causality.Consistent},
		"begun":                       {revoke, history.CommandDone, []state.Execution{running}, "too late: it had begun", causality.Consistent},
		"still running":               {terminate, history.CommandDone, []state.Execution{running}, "effect unknown", causality.Unknown},
		"no reply, and it waits":      {revoke, history.CommandNoReply, []state.Execution{waiting}, "no worker replied", causality.Proved},
		"no reply, and nothing known": {revoke, history.CommandNoReply, nil, "no worker replied", causality.Proved},
		"replies, and it waits":       {revoke, history.CommandDone, []state.Execution{waiting}, "effect unknown", causality.Unknown},
		"another command":             {`{"method":"rate_limit"}`, history.CommandDone, []state.Execution{revoked}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := history.Command{Kind: "control", TaskID: "a", State: tc.state, SentAt: time.Unix(1, 0), Payload: []byte(tc.payload)}
			task := state.Task{ID: "a", Executions: tc.executions}
			got, ok := command.EffectOn(c, &task)
			if got != (command.Effect{Text: tc.want, Grade: tc.grade}) || ok != (tc.want != "") {
				t.Errorf("got %+v, %t; want %s, %v", got, ok, tc.want, tc.grade)
			}
			c.SentAt = time.Time{}
			if _, ok := command.EffectOn(c, &task); ok {
				t.Error("a command that was not sent has an effect")
			}
		})
	}
}
