package loss

import (
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// addUnstarted takes in what an event tells of executions without a task-started. known reports that it is the task-started of one
// of which that was claimed.
func (p *process) addUnstarted(e *state.Event, u state.Unstarted) (known bool) {
	switch {
	case u.Count > 0 && u.BeforeMicros > p.earlier: // what heartbeats of earlier lives have counted is not known one by one
		if len(p.unstarted) >= maxUnstarted {
			p.unstarted = slices.Delete(p.unstarted, 0, 1)
		}
		p.unstarted = append(p.unstarted, Gap{
			Task: strings.Clone(e.ID), Missing: 1, After: u.After, Before: u.Before, AfterMicros: u.AfterMicros, BeforeMicros: u.BeforeMicros,
		})
	case e.Kind == state.TaskStarted:
		i := slices.IndexFunc(p.unstarted, func(g Gap) bool {
			return g.Task == e.ID && (u.Count < 0 || e.Clock > g.After && e.Clock < g.Before)
		})
		if i >= 0 {
			p.unstarted = slices.Delete(p.unstarted, i, i+1)
			return true
		}
	}
	return false
}

// uncounted returns the executions without a task-started of which the heartbeats, which prove that so many are missing, do not tell:
// those outside of them, and the newest of the others if there are more.
func (p *process) uncounted(missing int64) []Gap {
	if len(p.unstarted) == 0 {
		return nil
	}
	var inside, outside []Gap
	for _, g := range p.unstarted {
		if n := len(p.recent); n == 0 || g.Before <= p.first.clock || g.After >= p.recent[n-1].clock {
			outside = append(outside, g)
		} else {
			inside = append(inside, g)
		}
	}
	return append(outside, inside[min(missing, int64(len(inside))):]...)
}
