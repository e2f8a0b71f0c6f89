package clock

import "cmp"

// Lane names one sending process. PID is 0 where the hostname says it all (clients) or it is unknown.
type Lane struct {
	Hostname string
	PID      int64
}

// Compare orders lanes by hostname, then pid.
func (l Lane) Compare(m Lane) int {
	return cmp.Or(cmp.Compare(l.Hostname, m.Hostname), cmp.Compare(l.PID, m.PID))
}

// RestartGap is how much later, in µs, an event with a lower raw clock must be stamped to count as
// the first of a new process under the same pid (a container's pid is always 1). Anything
// closer is an event that was overtaken on its way.
const RestartGap int64 = 1_000_000

// maxSteps is how many rises of the lift a lane remembers, and so how late an event may be and still
// get the lift of its own moment.
const maxSteps = 32

// epoch is one life of a lane: raw clocks rise with happened-before inside it.
type epoch struct {
	newest       int64 // greatest raw clock seen
	newestMicros int64 // its timestamp
	first        int64 // least timestamp seen
	steps        []step
}

// step says that from raw clock from on, lift was added.
type step struct{ from, lift int64 }

// repair returns raw lifted above v, or above its predecessor in the epoch if it is late.
func (e *epoch) repair(raw, micros, v int64) int64 {
	e.first = min(e.first, micros)
	if len(e.steps) == 0 {
		e.newest, e.newestMicros, e.first = raw, micros, micros
		e.steps = append(e.steps, step{raw, max(v-raw, 0)})
		return raw + e.steps[0].lift
	}
	if raw < e.newest || raw == e.newest && micros <= e.newestMicros {
		return raw + e.liftAt(raw)
	}
	e.newest, e.newestMicros = raw, micros
	last := &e.steps[len(e.steps)-1]
	switch {
	case v-raw <= last.lift:
	case last.from == raw: // a clock that stands still
		last.lift = v - raw
	default:
		if len(e.steps) == maxSteps {
			e.steps = append(e.steps[:0], e.steps[1:]...)
		}
		e.steps = append(e.steps, step{raw, v - raw})
	}
	return raw + e.steps[len(e.steps)-1].lift
}

// liftAt is the lift in force at raw. The oldest step kept answers for everything before it, which
// keeps the order: no remembered event can be overtaken.
func (e *epoch) liftAt(raw int64) int64 {
	for i := len(e.steps) - 1; i > 0; i-- {
		if e.steps[i].from <= raw {
			return e.steps[i].lift
		}
	}
	return e.steps[0].lift
}
