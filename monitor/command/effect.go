package command

import (
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
)

// Effect is what became of the executions of a task that a command was to revoke or terminate, as far as events tell. They do not
// tell which of several commands did it.
type Effect struct {
	Text  string // a phrase: revoked before it began
	Grade causality.Grade
}

// String returns the text with the grade in words.
func (e Effect) String() string {
	if e.Grade == causality.Unknown {
		return e.Text
	}
	return e.Text + " (" + e.Grade.String() + ")"
}

// EffectOn returns the effect of a command that was sent to revoke or terminate a task, false for another command.
func EffectOn(c history.Command, t *state.Task) (Effect, bool) {
	var p controlPayload
	if c.Kind != kindControl || c.TaskID == "" || c.TaskID != t.ID || c.SentAt.IsZero() || json.Unmarshal(c.Payload, &p) != nil ||
		p.Method != actRevoke && p.Method != actTerminate {
		return Effect{}, false
	}
	kill, _ := p.Arguments["terminate"].(bool)
	began, ended, revoked, terminated := fate(t)
	all := len(t.Executions)
	switch {
	case all > 0 && revoked == all:
		return Effect{"revoked before it began", causality.Proved}, true
	case all == 1 && terminated == 1 && (kill || p.Method == actTerminate):
		return Effect{"terminated while it ran", causality.Proved}, true
	case all > 0 && ended == all: // the order of the command and the end is not known
		return Effect{"too late: it had ended", causality.Consistent}, true
	case all > 0 && began == all && !kill && p.Method == actRevoke:
		return Effect{"too late: it had begun", causality.Consistent}, true
	case c.State == history.CommandNoReply && len(c.Replies) == 0:
		return Effect{"no worker replied", causality.Proved}, true
	}
	return Effect{"effect unknown", causality.Unknown}, true
}

// fate counts executions: those that began, that came to their own end, and that were revoked before or terminated after they began.
func fate(t *state.Task) (began, ended, revoked, terminated int) {
	for i := range t.Executions {
		e := &t.Executions[i]
		why := e.Revocation
		if e.StartedAt != 0 {
			began++
		}
		switch {
		case e.State == state.Revoked && why != nil && *why == (state.Revocation{}) && e.StartedAt == 0:
			revoked++
		case e.State == state.Revoked && why != nil && why.Terminated:
			terminated++
		case e.State == state.Success, e.State == state.Failure:
			ended++
		}
	}
	return began, ended, revoked, terminated
}
