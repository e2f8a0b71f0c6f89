package state

import (
	"cmp"
	"slices"
)

// Restart is the start of a process of a worker that had another process before.
type Restart struct {
	Worker string
	At     int64 // first event of the process, by its wall clock as corrected by its known offset, µs
}

// Restarts returns the restarts of workers since a time, µs, oldest first: of each worker, those of its newest processes.
func (c *Cluster) Restarts(since int64) []Restart {
	var list []Restart
	for _, w := range c.workers {
		offset, _ := w.offset.estimate() // of the current process: others ran on the same host, most likely
		for i := range w.incarnations {
			if i == 0 && w.dropped == 0 {
				continue // the first that was seen
			}
			if at := min(w.incarnations[i].First-offset, c.now); at >= since {
				list = append(list, Restart{w.name, at})
			}
		}
	}
	slices.SortFunc(list, func(a, b Restart) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Worker, b.Worker)) })
	return list
}
