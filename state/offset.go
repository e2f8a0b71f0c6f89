package state

// MaxOffset is how far, in µs, the clock of a worker may be off before times that it gives mean nothing beside those
// of others.
const MaxOffset int64 = 2_000_000

// offsetJitter is how much, in µs, the time between two heartbeats may change on their way.
const offsetJitter = 1_000_000

// offsetRound is the number of heartbeats after which a new estimate begins; the one before counts until the next.
const offsetRound = 15

// offset estimates how far the clock of a worker is ahead of the local one. Each heartbeat shows that too small, by
// the time for which it was on its way, so that the greatest of the last ones is nearest. A heartbeat that seems to come
// from a clock that is behind may be late instead: it counts once three have come at the pace at which they were sent,
// as those of a backlog do not.
type offset struct {
	Known        bool
	Now, Before  int64 // greatest of the present and of the last round, µs
	heartbeats   int   // of the present round
	paced        int   // that followed one another at their own pace
	sent, latest int64 // timestamp and receipt of the newest heartbeat, µs
}

// micros is the estimate, 0 if there is none.
func (o *offset) micros() int64 { return max(o.Now, o.Before) }

// significant is the estimate, 0 if the clock is not off by more than MaxOffset.
func (o *offset) significant() int64 {
	if m := o.micros(); m > MaxOffset || m < -MaxOffset {
		return m
	}
	return 0
}

// add takes in a heartbeat, or that a process came online.
func (o *offset) add(e *Event) {
	if e.Retimed || e.ReceivedMicros == 0 {
		return
	}
	if e.Kind == WorkerOnline {
		*o = offset{}
	}
	if between := e.Micros - o.sent; o.latest != 0 && between > 0 && absolute(e.ReceivedMicros-o.latest-between) <= offsetJitter {
		o.paced++
	} else {
		o.paced = 0
	}
	o.sent, o.latest = e.Micros, e.ReceivedMicros
	ahead := e.Micros - e.ReceivedMicros
	switch {
	case ahead < 0 && o.paced < 2:
		return
	case !o.Known:
		o.Known, o.Before = true, ahead
		o.Now = ahead
	case o.heartbeats == offsetRound:
		o.Before, o.Now, o.heartbeats = o.Now, ahead, 0
	default:
		o.Now = max(o.Now, ahead)
	}
	o.heartbeats++
}

func absolute(n int64) int64 { return max(n, -n) }

// shift keeps the estimate right where the local clock was set forward by so many µs.
func (o *offset) shift(by int64) {
	if o.Known {
		o.Now, o.Before = o.Now-by, o.Before-by
	}
	if o.latest != 0 {
		o.latest += by
	}
}

// skewed reports whether the sender's clock is off by more than MaxOffset: by what is known of the worker, or since
// the event comes from the future.
func (c *Cluster) skewed(e *Event) bool {
	if e.ReceivedMicros == 0 || e.Retimed {
		return false
	}
	return e.Micros > e.ReceivedMicros+MaxOffset || c.offsetOf(e) != 0
}

// offsetOf is how far the clock of the worker that sent e is ahead, µs, 0 if that is not known or at most MaxOffset.
func (c *Cluster) offsetOf(e *Event) int64 {
	if w := c.workers[e.Hostname]; w != nil && e.Kind != TaskSent {
		return w.offset.significant()
	}
	return 0
}

// waitTime is the time from one event of a task to its task-started, µs, and whether their clocks let it be known. A
// little below nothing is none.
func waitTime(from, started *record) (int64, bool) {
	micros := started.micros - from.micros
	if from.process != started.process && (from.flags|started.flags)&skewed != 0 || micros < -MaxOffset {
		return 0, false
	}
	return max(micros, 0), true
}
