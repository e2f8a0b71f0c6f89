package state

import "slices"

// mergeWorker merges what is known of a worker: every part of it is a maximum.
func (c *Cluster) mergeWorker(s savedWorker) {
	w := c.workers[s.Name]
	if w == nil {
		w = c.addWorker(s.Name)
	}
	c.version++
	w.changed = true
	w.dropped, w.clock = max(w.dropped, s.Dropped), max(w.clock, s.Clock)
	w.lastSeen, w.lastHeartbeat = max(w.lastSeen, s.LastSeen), max(w.lastHeartbeat, s.LastHeartbeat)
	if !w.offset.Known {
		w.offset = s.Offset
	}
	if w.lastReport == nil || s.LastReport != nil && s.LastReport.At > w.lastReport.At {
		w.lastReport = s.LastReport
	}
	for _, l := range s.Incarnations {
		i := slices.IndexFunc(w.incarnations, func(o incarnation) bool {
			return o.PID == l.PID && (o.First <= l.Last && l.First <= o.Last)
		})
		if i < 0 {
			w.incarnations = append(w.incarnations, l)
			continue
		}
		w.incarnations[i].merge(l)
	}
	w.sort()
}

func (l *incarnation) merge(m incarnation) {
	l.First, l.Last = min(l.First, m.First), max(l.Last, m.Last)
	if m.Clock > l.Clock {
		l.Clock, l.ClockMicros = m.Clock, m.ClockMicros
	}
	if m.Alive.after(l.Alive) {
		l.Alive = m.Alive
	}
	if m.Goodbye.after(l.Goodbye) {
		l.Goodbye = m.Goodbye
	}
	if l.IdleClock = max(l.IdleClock, m.IdleClock); m.Report.At.after(l.Report.At) {
		l.Report, l.IdleHeartbeats = m.Report, m.IdleHeartbeats
	}
}

// event converts a record back into an event.
func (c *Cluster) event(r *row, rec *record) savedEvent {
	process := c.processes.key(rec.process)
	e, whole := c.fields(rec)
	k := c.routes.key(rec.route)
	e.Kind, e.ID, e.Hostname, e.PID, e.Clock, e.Micros = rec.kind, c.id(r), process.Hostname, process.PID, rec.clock, rec.micros
	e.Retimed, e.Skewed = rec.flags&retimed != 0, rec.flags&skewed != 0
	e.Name, e.Queue, e.Exchange, e.RoutingKey = k.name, k.queue, k.exchange, k.routingKey
	if rec.kind == TaskCustom {
		e.Subject = string(c.states.name(stateCode(rec.n)))
	}
	rec.restore(&e)
	return savedEvent{Event: e, Repaired: rec.repaired, Cut: !whole}
}
