package state

// evict drops the oldest tasks that are finished or concluded, then the oldest of all, until a hundredth of MaxTasks is
// free: finding them is a walk through the list, whose cost many new tasks share. Where tasks are saved to a store, those
// that are not saved yet stay.
func (c *Cluster) evict() {
	if c.index.len() <= c.evictAbove {
		return
	}
	surplus := c.index.len() - c.options.MaxTasks + c.options.MaxTasks/100
	finished := min(surplus, c.tally.finished())
	victims := make([]uint32, 0, surplus)
	var active []uint32
	c.byStamp.oldest(0, 0, func(entries []listItem) bool {
		for _, e := range entries {
			switch {
			case c.options.Track && e.flags&(unsaved|saving) != 0:
			case c.states.final(e.state), e.flags&concluded != 0:
				if len(victims) < finished {
					victims = append(victims, e.row)
				}
			case len(active) < surplus-finished:
				active = append(active, e.row)
			}
		}
		return len(victims)+len(active) < surplus
	})
	victims = append(victims, active...)
	for _, i := range victims {
		if c.options.Track {
			c.SetLowWaterMark(c.position(c.rows.at(i)))
		}
		c.drop(i)
	}
	c.evicted += uint64(len(victims))
	c.evictAbove = max(c.options.MaxTasks, c.index.len()+c.options.MaxTasks/100)
}

// drop forgets a task.
func (c *Cluster) drop(i uint32) {
	r := c.rows.at(i)
	c.byStamp.remove(c.itemOf(i, r))
	c.tally.remove(r)
	c.unrelate(r)
	c.hosts.release(r.worker)
	c.processes.release(r.origin)
	c.dropRecords(r)
	c.clearConclusion(r)
	c.index.remove(r.id)
	if at := recentAt(r.id); c.recent[at] == i {
		c.recent[at] = 0
	}
	if r.flags&hashedID != 0 {
		delete(c.hashedIDs, r.id)
	}
	c.rows.release(i)
}
