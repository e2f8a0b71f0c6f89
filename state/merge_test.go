package state

// Merge folds in what another cluster holds: two receivers that saw overlapping events agree once merged. other is not
// changed. Only tests have several receivers.
func (c *Cluster) Merge(other *Cluster) {
	other.byStamp.oldest(0, 0, func(entries []listItem) bool {
		for _, e := range entries {
			r := other.rows.at(e.row)
			for i := r.head; i != 0; i = other.records.at(i).next {
				c.mergeEvent(other, r, other.records.at(i))
			}
		}
		return true
	})
	for _, w := range other.workers {
		c.mergeWorker(w.saved())
	}
	c.clock.Restore(max(c.clock.Value(), other.clock.Value()))
	c.now = max(c.now, other.now)
}

func (c *Cluster) mergeEvent(other *Cluster, r *row, rec *record) {
	s := other.event(r, rec)
	c.applyTask(&s.Event, s.Repaired, s.flags(), new(Change))
	if !s.Cut || r.relation == 0 {
		return
	}
	if i, ok := c.index[r.id]; ok {
		rel := other.relations.at(r.relation)
		c.relate(i, c.rows.at(i), rel.root, rel.parent)
	}
}
