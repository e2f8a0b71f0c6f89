package templates

import (
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Preflight says on which tasks a request would act.
type Preflight struct {
	Many    bool // more than one was asked for
	All     bool // those that match Query were asked for
	Query   string
	Matched history.Count
	Chosen  int // it would act on
	Cap     int // so many at most, 0 if all are within it
	States  []StateCount
	Blocked []Blocked
}

// StateCount is a number of tasks in a state.
type StateCount struct {
	State state.State
	N     int
}

// Blocked are tasks that are left out, and why.
type Blocked struct {
	Reason string // a sentence
	N      int
	IDs    []string // the first few
}
