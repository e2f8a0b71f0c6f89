package state

import (
	"slices"
	"strings"
)

// tally counts the tasks in memory. It is updated with every change of a row.
type tally struct {
	states  []int32 // by state code
	names   []int32 // by number of route: what names the task
	queues  []int32 // by number of route: where it was sent
	workers []int32 // by number of host
	running []int32 // unfinished and not concluded, by number of process
	renamed int32   // that had another name before
	waiting []int32 // those of them that were received and not started

	lost, orphaned, dismissed int
}

func (t *tally) add(r *row)    { t.count(r, 1) }
func (t *tally) remove(r *row) { t.count(r, -1) }

func (t *tally) count(r *row, by int32) {
	bump(&t.states, uint32(r.state), by)
	bump(&t.names, r.name, by)
	bump(&t.queues, r.sent, by)
	bump(&t.workers, r.worker, by)
	if r.flags&renamed != 0 {
		t.renamed += by
	}
	switch {
	case r.flags&dismissed != 0:
		t.dismissed += int(by)
	case r.flags&lost != 0:
		t.lost += int(by)
		if r.flags&orphaned != 0 {
			t.orphaned += int(by)
		}
	case r.process != 0 && r.flags&ended == 0:
		bump(&t.running, r.process, by)
		if r.state == codeReceived {
			bump(&t.waiting, r.process, by)
		}
	}
}

func bump(counts *[]int32, i uint32, by int32) {
	for int(i) >= len(*counts) {
		*counts = append(*counts, make([]int32, len(*counts)+64)...)
	}
	(*counts)[i] += by
}

// countAt returns a count, 0 of what was never counted.
func countAt(counts []int32, i uint32) int {
	if int(i) >= len(counts) {
		return 0
	}
	return int(counts[i])
}

// finished is how many tasks are in a final state, or concluded to come to none.
func (t *tally) finished() (n int) {
	n = t.lost + t.dismissed
	for code := codeSuccess; code <= codeRejected && int(code) < len(t.states); code++ {
		n += int(t.states[code])
	}
	return n
}

// Counts returns totals.
func (c *Cluster) Counts() Counts {
	n := Counts{
		Tasks:    c.index.len(),
		ByState:  make(map[State]int),
		ByName:   byName(c.tally.names, func(i uint32) string { return c.routes.key(i).name }),
		ByWorker: byName(c.tally.workers, c.hosts.key),
		ByQueue:  byName(c.tally.queues, func(i uint32) string { return c.routes.key(i).queue }),
		Workers:  make(map[Status]int),
		Orphaned: c.tally.orphaned, Lost: c.tally.lost, Dismissed: c.tally.dismissed, Evicted: c.evicted,
	}
	each(c.tally.states, func(i uint32, count int) { n.ByState[c.states.name(stateCode(i))] += count })
	if c.options.Rules == Causal {
		each(c.tally.running, func(i uint32, _ int) { c.countUnfinished(&n, i) })
	}
	for _, w := range c.workers {
		n.Workers[c.status(w)]++
	}
	return n
}

// countUnfinished adds the unfinished tasks of a process to those that run, and to those that do not although that is
// not concluded yet.
func (c *Cluster) countUnfinished(n *Counts, process uint32) {
	l := c.processes.key(process)
	unfinished, received := c.unfinishedOf(l)
	orphans, returned := c.orphansOf(process)
	n.Orphaned, n.Lost, n.Returned = n.Orphaned+orphans, n.Lost+orphans, n.Returned+returned
	begun := unfinished - received - orphans
	if w := c.workers[l.Hostname]; w != nil && c.status(w) == Offline {
		n.Unreachable += begun
		return
	}
	n.Running += begun
}

// byName sums counts up by what name returns for their numbers. It leaves out those without a name.
func byName(counts []int32, name func(i uint32) string) map[string]int {
	sums := make(map[string]int)
	each(counts, func(i uint32, count int) {
		if text := name(i); text != "" {
			sums[text] += count
		}
	})
	return sums
}

// each calls f with every count but 0.
func each(counts []int32, f func(i uint32, count int)) {
	for i, count := range counts {
		if count != 0 {
			f(uint32(i), int(count))
		}
	}
}

// Names returns the name of every task in memory, sorted.
func (c *Cluster) Names() []string {
	var names []string
	each(c.tally.names, func(i uint32, _ int) {
		if name := c.routes.key(i).name; name != "" {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// Capped returns how often a name, node name or custom state became «(other)», and how many events were not
// kept since their task had too many.
func (c *Cluster) Capped() (symbols, events uint64) {
	return c.processes.capped + c.hosts.capped + c.routes.capped + c.states.capped, c.dropped
}

// stateCode is a state as a number: the built-in ones first, then custom ones as they come.
type stateCode uint16

const (
	codePending stateCode = iota
	codeReceived
	codeStarted
	codeRetry
	codeSuccess
	codeFailure
	codeRevoked
	codeRejected
)

// stateNames numbers the states.
type stateNames struct {
	names  []State
	codes  map[State]stateCode
	capped uint64
}

func newStateNames() stateNames {
	s := stateNames{codes: make(map[State]stateCode)}
	for _, name := range append(States(), State(otherKey)) {
		s.codes[name] = stateCode(len(s.names))
		s.names = append(s.names, name)
	}
	return s
}

// code returns the number of a state.
func (s *stateNames) code(name State) stateCode {
	if code, ok := s.codes[name]; ok {
		return code
	}
	if len(s.names) >= maxStates {
		s.capped++
		return s.codes[State(otherKey)]
	}
	name = State(strings.Clone(string(name)))
	s.codes[name] = stateCode(len(s.names))
	s.names = append(s.names, name)
	return s.codes[name]
}

func (s *stateNames) name(code stateCode) State { return s.names[code] }

func (s *stateNames) final(code stateCode) bool {
	return code >= codeSuccess && code <= codeRejected
}

// kindStates maps each built-in kind to its state.
var kindStates = [...]stateCode{ //nolint:gochecknoglobals // a constant table
	TaskSent: codePending, TaskReceived: codeReceived, TaskStarted: codeStarted, TaskSucceeded: codeSuccess,
	TaskFailed: codeFailure, TaskRejected: codeRejected, TaskRevoked: codeRevoked, TaskRetried: codeRetry,
}

// stateOf is the state that a record reports.
func stateOf(r *record) stateCode {
	if r.kind == TaskCustom {
		return stateCode(r.n)
	}
	return kindStates[r.kind]
}
