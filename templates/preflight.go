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
	// Remedies are what may let more tasks be retried, nil if another action was requested.
	Remedies *Remedies
}

// Remedies are the fields that say what becomes of arguments that are not known in full.
type Remedies struct {
	Path              string
	Hidden            []Param // that say which tasks are meant
	Cap, Args, Kwargs string  // as they were typed in
}

// besides returns the hidden parameters but those with a name.
func (v Remedies) besides(names ...string) []Param {
	list := slices.DeleteFunc(slices.Clone(v.Hidden), func(p Param) bool { return slices.Contains(names, p.Name) })
	if v.Cap != "" {
		list = append(list, Param{"cap", v.Cap})
	}
	return list
}

// helped reports whether some tasks can be retried with their arguments encoded, and whether some with arguments that are
// typed in.
func (v Preflight) helped() (objects, typed bool) {
	for _, b := range v.Blocked {
		objects, typed = objects || b.Objects, typed || b.Typed
	}
	return objects, typed
}

// byState lists the states of the selected tasks, the most frequent first.
func (v Preflight) byState() []state.State {
	list := slices.DeleteFunc(States(v.States), func(s state.State) bool { return v.States[s] == 0 })
	slices.SortStableFunc(list, func(a, b state.State) int { return cmp.Compare(v.States[b], v.States[a]) })
	return list
}
