package clock

import "cmp"

// Lane names one sending process. PID is 0 where the hostname says it all (clients) or it is unknown.
type Process struct {
	Hostname string
	PID      int64
}

// Compare orders lanes by hostname, then pid.
func (l Process) Compare(m Process) int {
	return cmp.Or(cmp.Compare(l.Hostname, m.Hostname), cmp.Compare(l.PID, m.PID))
}

// RestartGap is how much later, in µs, an event with a lower raw clock must be stamped to count as
// the first of a new process under the same pid (a container's pid is always 1). Anything
// closer is an event that was overtaken on its way.
const RestartGap int64 = 1_000_000

// maxSteps is how many rises of the lift a lane remembers, and so how late an event may be and still
// get the lift of its own moment.
const maxOffsets = 32

// epoch is one life of a lane: raw clocks rise with happened-before inside it.
type incarnation struct {
	newest       int64 // greatest raw clock seen
	newestMicros int64 // its timestamp
	first        int64 // least timestamp seen
	offsets      []offset
}

// step says that from raw clock from on, lift was added.
type offset struct{ from, offset int64 }

// repair returns raw lifted above v, or above its predecessor in the epoch if it is late.
func (e *incarnation) repair(raw, micros, v int64) int64 {
	e.first = min(e.first, micros)
	if len(e.offsets) == 0 {
		e.newest, e.newestMicros, e.first = raw, micros, micros
		e.offsets = append(e.offsets, offset{raw, max(v-raw, 0)})
		return raw + e.offsets[0].offset
	}
	if raw < e.newest || raw == e.newest && micros <= e.newestMicros {
		return raw + e.offsetAt(raw)
	}
	e.newest, e.newestMicros = raw, micros
	last := &e.offsets[len(e.offsets)-1]
	switch {
	case v-raw <= last.offset:
	case last.from == raw: // a clock that stands still
		last.offset = v - raw
	default:
		if len(e.offsets) == maxOffsets {
			e.offsets = append(e.offsets[:0], e.offsets[1:]...)
		}
		e.offsets = append(e.offsets, offset{raw, v - raw})
	}
	return raw + e.offsets[len(e.offsets)-1].offset
}

// liftAt is the lift in force at raw. The oldest step kept answers for everything before it, which
// keeps the order: no remembered event can be overtaken.
func (e *incarnation) offsetAt(raw int64) int64 {
	for i := len(e.offsets) - 1; i > 0; i-- {
		if e.offsets[i].from <= raw {
			return e.offsets[i].offset
		}
	}
	return e.offsets[0].offset
}
