package command

import (
	"maps"
	"slices"
)

// Kinds of pools.
const (
	poolThreads  = "threads"
	poolSolo     = "solo"
	poolGevent   = "gevent"
	poolEventlet = "eventlet"
)

// termination warns of how each kind of pool ends a task.
func (p *bulkPlan) termination() []Warning {
	var list warnings
	killed, green := 0, make(map[string]int)
	for kind, n := range p.pools {
		if kind == poolGevent || kind == poolEventlet {
			green[kind] = n
		} else {
			killed += n
		}
	}
	if killed > 0 {
		list.warn(true, "The pool process is killed, with whatever it runs by then.")
	}
	for _, kind := range slices.Sorted(maps.Keys(green)) {
		list.warn(true, "%s in a %s pool: the greenlet is killed where it next waits, whatever the signal is. "+
			"Older versions of Celery refuse.", count(green[kind], "task runs", "tasks run"), kind)
	}
	return list
}
