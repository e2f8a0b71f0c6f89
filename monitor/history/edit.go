package history

import (
	"context"

	"github.com/umbelhq/umbel/state"
)

// Editor is a history that can be edited while no server uses it.
type Editor interface {
	// PlanEdit counts what Edit would change.
	PlanEdit(ctx context.Context, e Edit, progress func(Edited)) (Edited, error)
	// Edit takes texts out of all that is stored, a few rows at a time, and of the space that was free in it. It goes on where an Edit with
	// the same ID was interrupted. by is appended to the audit log if something changed, with the hash that the last record had before if
	// records before it changed. The last step writes the history anew, which takes as much space for that time.
	Edit(ctx context.Context, e Edit, by AuditRecord, progress func(Edited)) (Edited, error)
}

// Edit takes texts out of what is stored. All functions are required.
type Edit struct {
	ID      string                                       // equal for edits that do the same, so that one goes on where another was interrupted
	Event   func(e *state.Event, name string)            // as state.EditTask; name is that of the task, empty if unknown
	Command func(kind string, payload []byte) []byte     // payload of a command that is final, or of a Message
	Message func(kind string) bool                       // whether commands of a kind do the same with an edited payload, as texts for people do
	Audit   func(target, detail string) (string, string) // target and detail of an audit record
	Record  func(record []byte) ([]byte, error)          // record of the log of alerts
	Query   func(q string) string                        // query of a view or an alert rule
	Text    func(s string) string                        // summaries, replies, errors, and what people wrote
}

// Edited is how many rows of what an Edit changes.
type Edited struct {
	Tasks, Journal, Workers, Snapshots, Commands, Failures, Audit int
	Views, Marks                                                  int
	Alerts                                                        int // rules, firings and records of the log

	Examined int // rows so far
	Rows     int // about as many are there

	Waiting    int     // commands that may still be sent: what would change in them stays
	WaitingIDs []int64 // the first of them

	Unreadable int // rows that stay as they are
}

// Changed is how many rows change.
func (e *Edited) Changed() int {
	return e.Tasks + e.Journal + e.Workers + e.Snapshots + e.Commands + e.Failures + e.Audit + e.Views + e.Marks + e.Alerts
}
