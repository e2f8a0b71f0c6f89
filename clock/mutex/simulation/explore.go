package simulation

import (
	"errors"
	"slices"
)

// Exploration is what Explore found.
type Exploration struct {
	States  int             // different ones
	Steps   int             // that lead from one to another
	Failure *InvariantError // nil if the invariants hold in all states
	// Complete reports that there are no other states.
	Complete bool
}

// maxExplored is how many states are searched for a shortest schedule.
const maxExplored = 300_000

// Space is the runs of a small system.
type Space struct {
	Processes int // 2 or more
	Requests  int // by each process
	Fault     Fault
	// Prompt processes make their requests as soon as they may; otherwise, at any time or never.
	Prompt bool
	// Reduced leaves out runs that differ from another one only in the order of steps of which none can have influenced the other. A grant must
	// then follow from messages sent after the release before it, so that exclusion holds in the runs left out too.
	Reduced bool
	Limit   int // of states
}

// Explore makes every step that is possible in every state, and checks the invariants. It stops at the first failure, to which no
// shorter schedule leads unless the space is reduced, or after as many states as the limit.
func (x Space) Explore() Exploration {
	start := &node{system: newSystem(x.Processes, x.Fault)}
	start.system.causal = x.Reduced
	seen := map[[16]byte]struct{}{start.system.key(x.Requests): {}}
	var found Exploration
	for level := []*node{start}; len(level) > 0; {
		var next []*node
		for _, at := range level {
			if found.States++; found.States > x.Limit {
				return found
			}
			if err := at.system.finished(); err != nil {
				found.Failure = x.failure(at, err)
				return found
			}
			for _, t := range x.steps(at.system) {
				found.Steps++
				system, err := at.system.successor(t)
				then := &node{system: system, parent: at, step: t}
				if err != nil {
					found.Failure = x.failure(then, err)
					return found
				}
				key := system.key(x.Requests)
				if _, known := seen[key]; !known {
					seen[key] = struct{}{}
					next = append(next, then)
				}
			}
			at.system = nil // its steps are made
		}
		level = next
	}
	found.Complete = true
	return found
}

// node is a state, and how it was reached.
type node struct {
	system *system
	parent *node // nil at the start
	step   step
}

func (x Space) failure(n *node, err error) *InvariantError {
	var steps []step
	for at := n; at.parent != nil; at = at.parent {
		steps = append(steps, at.step)
	}
	slices.Reverse(steps)
	b, _ := errors.AsType[broken](err)
	events, _ := replay(x.Processes, x.Fault, steps)
	return &InvariantError{
		Invariant: string(b), Shortest: string(b), Step: len(steps), Processes: x.Processes, Schedule: events, Complete: !x.Reduced,
	}
}

// steps are those to make in a state.
func (x Space) steps(s *system) []step {
	all := s.enabled(x.Requests)
	if x.Prompt {
		if i := slices.IndexFunc(all, func(t step) bool { return t.kind == request }); i >= 0 {
			return all[i : i+1]
		}
	}
	if !x.Reduced || len(all) == 1 {
		return all
	}
	best := all
	for i := range s.processes {
		if !s.persistent(i, x.Requests) {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(all), func(t step) bool { return t.process != i })
		if len(own) > 0 && len(own) < len(best) {
			best = own
		}
	}
	return best
}

// persistent reports whether nothing that the other processes do can give process j another step to make: what it receives next from each of
// them is known, or depends on j itself. Then the steps of j are all that need be made now (Godefroid 1996, persistent sets).
func (s *system) persistent(j, requests int) bool {
	n := len(s.names)
	for i, p := range s.processes {
		if i == j || len(s.channels[i*n+j]) > 0 {
			continue
		}
		if len(s.channels[j*n+i]) > 0 || p.Held() {
			return false
		}
		if _, requested := p.Requested(); requested && p.Heard(s.names[j]) || !requested && s.wanted[i] < requests {
			return false
		}
	}
	return true
}

// enabled are the steps that are possible in a state.
func (s *system) enabled(requests int) []step {
	var steps []step
	add := func(t step) {
		if s.possible(t) {
			steps = append(steps, t)
		}
	}
	for i := range s.processes {
		if s.wanted[i] < requests {
			add(step{kind: request, process: i})
		}
		add(step{kind: release, process: i})
		for from := range s.processes {
			add(step{kind: deliver, process: i, from: from})
			if s.fault == FIFO {
				add(step{kind: deliver, process: i, from: from, second: true})
			}
		}
	}
	return steps
}

// replay makes the steps that are possible, delivers and releases what remains, and returns what happened until an invariant broke.
func replay(processes int, fault Fault, steps []step) ([]Event, error) {
	s := newSystem(processes, fault)
	var events []Event
	for _, t := range steps {
		if !s.possible(t) {
			continue
		}
		e, err := s.apply(t)
		events = append(events, e)
		if err != nil {
			return events, err
		}
	}
	for {
		rest := s.enabled(0)
		if len(rest) == 0 {
			return events, s.finished()
		}
		if _, err := s.apply(rest[0]); err != nil {
			return events, err
		}
	}
}

// explain finds a short schedule that breaks an invariant: the shortest of 2 or 3 processes, or else the failing run with
// every step left out that can be.
func (f *InvariantError) explain(o Options, history []step) {
	for n := MinProcesses; n <= min(o.Processes, 3); n++ {
		x := Space{Processes: n, Requests: 2, Fault: o.Fault, Limit: maxExplored}.Explore()
		if x.Failure != nil {
			f.Processes, f.Schedule, f.Shortest, f.Complete = n, x.Failure.Schedule, x.Failure.Invariant, true
			return
		}
	}
	steps := minimize(history, func(steps []step) bool {
		_, err := replay(o.Processes, o.Fault, steps)
		return err != nil && err.Error() == broken(f.Invariant).Error()
	})
	f.Processes, f.Shortest = o.Processes, f.Invariant
	f.Schedule, _ = replay(o.Processes, o.Fault, steps)
}

// minimize returns steps without those that fails does not need: ever smaller parts are left out (Zeller and Hildebrandt 2002).
func minimize(steps []step, fails func([]step) bool) []step {
	for size := len(steps) / 2; size > 0; {
		shorter := false
		for at := 0; at < len(steps); {
			end := min(at+size, len(steps))
			if rest := slices.Concat(steps[:at], steps[end:]); fails(rest) {
				steps, shorter = rest, true
			} else {
				at = end
			}
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	return steps
}
