package state

// StoredTask is a task as a store has it.
type StoredTask struct {
	ID     string
	Events []byte // as Unsaved.Events
}

// MergeStored merges tasks as another process has saved them, whose clocks and conclusions count, and calls f for each: whole says
// that the store lacks nothing that is known here. Such a task no longer counts as unsaved.
func (c *Cluster) MergeStored(tasks []StoredTask, f func(id string, whole bool)) (failed error) {
	done := make(map[uint32]bool) // rows that were unsaved
	for _, t := range tasks {
		whole, err := c.mergeStored(t, done)
		if err != nil {
			failed = err
			continue
		}
		f(t.ID, whole)
	}
	c.leaveUnsaved(done)
	c.evictAbove = c.options.MaxTasks
	c.evict()
	return failed
}

// ForgetRemoved drops tasks that another process has removed from the store, with what is not saved of them.
func (c *Cluster) ForgetRemoved(ids []string) {
	done := make(map[uint32]bool)
	for _, id := range ids {
		k, _ := key(id)
		if i := c.find(k); i != 0 && c.rows.at(i).flags&unsaved != 0 {
			done[i] = true
			c.setFlags(i, unsaved, 0)
		}
	}
	c.leaveUnsaved(done)
	c.Forget(ids)
}

// leaveUnsaved takes rows out of those that wait to be saved.
func (c *Cluster) leaveUnsaved(done map[uint32]bool) {
	if len(done) == 0 {
		return
	}
	rows := make([]uint32, 0, c.unsaved.size())
	for _, i := range c.unsaved.rows[c.unsaved.head:] {
		if !done[i] {
			rows = append(rows, i)
		}
	}
	c.unsaved = fifo{rows: rows}
}

// isConcluded reports whether a row has a conclusion, nil for none.
func (c *Cluster) isConcluded(r *row, k *Conclusion) bool {
	if r.flags&concluded == 0 || k == nil {
		return (r.flags&concluded != 0) == (k != nil)
	}
	return c.concluded[r.id] == *k
}

// mergeStored merges one, and adds its row to done if that is no longer unsaved.
func (c *Cluster) mergeStored(t StoredTask, done map[uint32]bool) (whole bool, err error) {
	k, err := c.readSaved(t.ID, t.Events)
	if err != nil {
		return false, err
	}
	whole, same := c.load(t.ID, k)
	if !whole {
		return false, nil
	}
	id, _ := key(t.ID)
	i := c.find(id)
	r := c.rows.at(i)
	if r.flags&unsaved != 0 {
		done[i] = true
		c.setFlags(i, unsaved, 0)
	}
	if !same || !c.isConcluded(r, k) { // it then is at the place of the list that the store gives it
		c.drop(i)
		c.load(t.ID, k)
	}
	return true, nil
}
