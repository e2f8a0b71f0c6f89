package state

// LastReport is the pool and the queues of a worker as it last reported them when it was inspected. Events carry neither.
type LastReport struct {
	At     int64    // when it reported its queues, µs
	Pool   string   // its kind, empty if never reported
	Slots  *int64   `json:",omitempty"` // tasks that it can run at once, nil if unknown
	Queues []string // that it consumes from
}

// ReportWorker records what a worker has reported. It is kept and saved with the worker; without one, it is dropped. A
// report without a pool keeps the former.
func (c *Cluster) ReportWorker(name string, r LastReport) {
	w := c.workers[name]
	if w == nil {
		return
	}
	if old := w.lastReport; old != nil && r.Pool == "" {
		r.Pool, r.Slots = old.Pool, old.Slots
	}
	w.lastReport, w.changed = &r, true
	c.version++
}
