package state

// ForgetWorkers drops the workers that are offline and whose last event was received before a local time, µs, and returns
// how many. A worker with unfinished tasks stays: its liveness decides how these are shown.
func (c *Cluster) ForgetWorkers(before int64) int {
	var busy map[string]bool
	n := 0
	for name, w := range c.workers {
		if w.lastSeen >= before || c.status(w) != Offline {
			continue
		}
		if busy == nil {
			busy = c.busy()
		}
		if !busy[name] {
			c.dropWorker(name)
			n++
		}
	}
	return n
}

// ForgetWorker drops a worker that is offline and has no unfinished task, and reports whether it has.
func (c *Cluster) ForgetWorker(name string) bool {
	w := c.workers[name]
	if w == nil || c.status(w) != Offline || c.Unfinished(name) > 0 {
		return false
	}
	c.dropWorker(name)
	return true
}

// Unfinished counts the tasks that events place on any process of a worker, and that have not ended and are not
// concluded to be lost.
func (c *Cluster) Unfinished(name string) (n int) {
	each(c.tally.running, func(i uint32, tasks int) {
		if c.processes.key(i).Hostname == name {
			n += tasks
		}
	})
	return n
}

func (c *Cluster) dropWorker(name string) {
	c.workers[name].gone = true
	delete(c.workers, name)
	c.forgotten[name] = true
	c.version++
}

// busy returns the node names on which events place unfinished tasks.
func (c *Cluster) busy() map[string]bool {
	names := make(map[string]bool)
	each(c.tally.running, func(i uint32, _ int) { names[c.processes.key(i).Hostname] = true })
	return names
}
