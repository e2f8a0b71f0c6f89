package clock

import "cmp"

// Process identifies one sending process. PID is 0 if it is unknown or the hostname alone identifies the process,
// as with clients.
type Process struct {
	Hostname string
	PID      int64
}

// Compare orders processes by hostname, then pid.
func (l Process) Compare(m Process) int {
	return cmp.Or(cmp.Compare(l.Hostname, m.Hostname), cmp.Compare(l.PID, m.PID))
}

// Hash returns a number that differs between most processes of a cluster, cheaply: by what ends the hostname, and the pid.
func (l Process) Hash() uint32 {
	h := uint32(l.PID)*31 + uint32(len(l.Hostname))
	for i := max(len(l.Hostname)-4, 0); i < len(l.Hostname); i++ {
		h = h*31 + uint32(l.Hostname[i])
	}
	return h
}

// RestartGap is how much later, in µs, an event with a lower raw clock must be stamped to count as the first of a
// new process under the same pid (a container's pid is always 1). An event within the gap is one that was
// overtaken on its way.
const RestartGap int64 = 1_000_000

// maxOffsets bounds the offsets remembered of an incarnation, and so how late an event may arrive and still get
// the offset that was in force when it was sent.
const maxOffsets = 32

// incarnation is one life of a process, from start to restart. Raw clocks inside it rise with happened-before.
type incarnation struct {
	newest       int64 // greatest raw clock seen
	newestMicros int64 // its timestamp
	first        int64 // least timestamp seen
	offsets      []offset
}

// offset is what is added to raw clocks from a raw clock on.
type offset struct{ from, offset int64 }

// repair returns raw moved above v or, if the event is late, above its predecessor in the incarnation.
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
	case last.from == raw: // the raw clock did not advance
		last.offset = v - raw
	default:
		if len(e.offsets) == maxOffsets {
			e.offsets = append(e.offsets[:0], e.offsets[1:]...)
		}
		e.offsets = append(e.offsets, offset{raw, v - raw})
	}
	return raw + e.offsets[len(e.offsets)-1].offset
}

// offsetAt returns the offset in force at raw. The oldest offset serves everything before it, which keeps the
// order: no remembered event can be overtaken.
func (e *incarnation) offsetAt(raw int64) int64 {
	for i := len(e.offsets) - 1; i > 0; i-- {
		if e.offsets[i].from <= raw {
			return e.offsets[i].offset
		}
	}
	return e.offsets[0].offset
}
