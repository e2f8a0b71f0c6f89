package state

import (
	"cmp"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// Liveness is the part of a Worker that metrics need. All of 5,000 workers are read at once, so it is small.
type Liveness struct {
	Name              string
	Status            Status
	LastSeenAt        int64        // local receipt time of its newest event, µs
	Active            *int64       // tasks running, as last reported
	ClockOffset       *ClockOffset // as in Worker
	ClockOffsetMicros *int64       // as in Worker
}

// Liveness returns the liveness of all workers, by name.
func (c *Cluster) Liveness() []Liveness {
	list := make([]Liveness, 0, len(c.workers))
	for _, w := range c.workers {
		r := &w.current().Report
		l := Liveness{Name: w.name, Status: c.status(w), LastSeenAt: w.lastSeen, Active: reported(r, FieldActive, r.Active)}
		l.ClockOffset = w.offset.present(c.now)
		if m, ok := w.offset.estimate(); ok {
			l.ClockOffsetMicros = &m
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Liveness) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Prefetched is how many tasks of a name a worker has received and not started.
type Prefetched struct {
	Worker, Name string
	Tasks        int
}

// Prefetched counts the tasks without an ETA that workers which are not offline have received and not started, by worker and
// name. Those of processes that have ended are not among them: the broker delivers them again.
func (c *Cluster) Prefetched() []Prefetched {
	type pair struct{ worker, name string }
	counts := make(map[pair]int)
	live, left := make(map[uint32]bool), 0
	each(c.tally.waiting, func(process uint32, n int) {
		l := c.processes.key(process)
		w := c.workers[l.Hostname]
		if w == nil || c.status(w) == Offline || (clock.Process{Hostname: w.name, PID: w.current().PID}) != l {
			return
		}
		live[process] = true
		left += n
	})
	chunk, end := c.byStamp.end()
	c.byStamp.newest(chunk, end, func(entries []listItem) bool {
		for _, e := range slices.Backward(entries) {
			if e.state != codeReceived || e.flags&(ended|concluded) != 0 {
				continue
			}
			if r := c.rows.at(e.row); live[r.process] {
				left--
				if e.flags&delayed == 0 {
					counts[pair{c.hosts.key(e.worker), c.routes.key(e.name).name}]++
				}
			}
		}
		return left > 0
	})
	list := make([]Prefetched, 0, len(counts))
	for p, n := range counts {
		list = append(list, Prefetched{p.worker, p.name, n})
	}
	slices.SortFunc(list, func(a, b Prefetched) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Name, b.Name))
	})
	return list
}
