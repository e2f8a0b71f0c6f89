package templates

import (
	"cmp"
	"slices"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/state"
)

// Preflight says on which tasks a request would act.
type Preflight struct {
	command.BulkPreview
	Many  bool // more than one was requested
	All   bool // all that match Query were requested
	Query string
	Cap   int // 0 if all are within it
}

// byState lists the states of the selected tasks, the most frequent first.
func (v Preflight) byState() []state.State {
	list := slices.DeleteFunc(States(v.States), func(s state.State) bool { return v.States[s] == 0 })
	slices.SortStableFunc(list, func(a, b state.State) int { return cmp.Compare(v.States[b], v.States[a]) })
	return list
}
