package duplicates

import (
	"math"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Span is when a task ran, µs since 1970 UTC. The zero Span did not.
type Span struct {
	Started   int64
	Ended     int64 // math.MaxInt64 while it runs; Started if its end is not known
	Succeeded bool
}

// Times are what a Span is made of. Times and durations are in µs, 0 if unknown.
type Times struct {
	State          state.State
	Started, Ended int64
	Run            int64 // as measured by the worker, negative if unknown
	Lost           bool  // not expected to end
	Skipped        bool  // by a lock: it did not run
}

// SpanOf returns when a task ran.
func SpanOf(t *state.Task) Span {
	times := Times{State: t.State, Run: -1, Lost: t.Lost != nil || t.Dismissed != nil, Skipped: t.OwnDuplicates()&state.Skipped != 0}
	times.Started, _ = query.Started.Int(t)
	times.Ended, _ = query.Finished.Int(t)
	if run, ok := query.Run.Int(t); ok {
		times.Run = run
	}
	return times.Span()
}

// Span returns when the task ran: also if events tell only when it ended and how long it took.
func (t Times) Span() Span {
	s := Span{Started: t.Started, Ended: t.Ended, Succeeded: t.State == state.Success}
	if s.Started == 0 && s.Ended != 0 && t.Run >= 0 && t.Run < s.Ended {
		s.Started = s.Ended - t.Run
	}
	switch {
	case t.Skipped || s.Started == 0:
		return Span{}
	case s.Ended == 0 && !t.Lost && runs(t.State):
		s.Ended = math.MaxInt64
	case s.Ended < s.Started:
		s.Ended = s.Started
	}
	return s
}

// runs reports whether a task that has started runs in this state. Custom states are set by running tasks.
func runs(s state.State) bool {
	return !s.Final() && s != state.Pending && s != state.Received && s != state.Retry
}

// Compare returns in which ways two tasks of one call repeat each other's work, by the clocks of their workers as they
// are: Overlapping if both ran at a time, Rerun for the one that started after the other had succeeded.
func Compare(a, b Span) (ofA, ofB state.Duplicates) {
	if a.Started == 0 || b.Started == 0 {
		return 0, 0
	}
	if a.Started < b.Ended && b.Started < a.Ended {
		return state.Overlapping, state.Overlapping
	}
	aFirst, bFirst := a.Succeeded && a.Ended <= b.Started, b.Succeeded && b.Ended <= a.Started
	switch {
	case aFirst && !bFirst:
		return 0, state.Rerun
	case bFirst && !aFirst:
		return state.Rerun, 0
	default:
		return 0, 0
	}
}
