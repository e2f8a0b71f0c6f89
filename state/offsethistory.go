package state

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
)

// OffsetPoint is what was known of a clock at a moment.
type OffsetPoint struct {
	At     int64 // local time, µs
	Offset ClockOffset
	Begins OffsetBegin // why the bounds before do not hold for it
}

// OffsetBegin says why bounds begin anew.
type OffsetBegin uint8

// Why bounds begin anew.
const (
	sameClock    OffsetBegin = iota
	otherProcess             // the worker restarted, perhaps elsewhere
	clockSet                 // the wall clock was set
)

// ClockSet reports whether the wall clock was set before the point.
func (p OffsetPoint) ClockSet() bool { return p.Begins == clockSet }

// Restarted reports whether another process began before the point.
func (p OffsetPoint) Restarted() bool { return p.Begins == otherProcess }

// Bounds of the history of an offset, that of about a day.
const (
	maxOffsetPoints  = 96
	minOffsetStep    = 60_000_000    // µs between points at first
	maxOffsetStep    = 960_000_000   // and at most; it doubles when there are too many
	offsetReach      = 3_600_000_000 // µs from the nearest point beyond which nothing is known
	offsetUndetected = 120_000_000   // µs that it may take to notice that a clock was set
)

// offsetHistory is how bounds were over time, by local time.
type offsetHistory struct { //nolint:recvcheck // as json.Marshaler is
	points  []OffsetPoint
	step    int64
	pending OffsetBegin // of the next point
}

// due reports whether bounds are to be noted: once in a step, where there is an upper one at last, and where they begin anew.
func (h *offsetHistory) due(at int64, closed bool) bool {
	n := len(h.points)
	if n == 0 {
		return true
	}
	last := &h.points[n-1]
	switch since := at - last.At; {
	case since < 0:
		return false
	case since >= h.step:
		return true
	case h.pending == clockSet: // but not all the time
		return !last.ClockSet() || since >= minOffsetStep
	}
	return closed && !last.Offset.Closed() && h.pending == sameClock
}

// add notes the bounds at a local time.
func (h *offsetHistory) add(at int64, o ClockOffset) {
	h.step = max(h.step, minOffsetStep)
	if len(h.points) == maxOffsetPoints {
		h.thin()
	}
	h.points = append(h.points, OffsetPoint{at, o, h.pending})
	h.pending = sameClock
}

// thin makes room: every other point goes, or the oldest where points are far apart. Those at which bounds begin stay.
func (h *offsetHistory) thin() {
	if h.step < maxOffsetStep {
		h.step *= 2
		kept := h.points[:0]
		for i, p := range h.points {
			if i%2 == 0 || p.Begins != sameClock {
				kept = append(kept, p)
			}
		}
		h.points = kept
	}
	if n := len(h.points); n == maxOffsetPoints {
		h.points = append(h.points[:0], h.points[n/4:]...)
	}
}

// sinceSet is when the clock was last found to be set, 0 if it was not.
func (h *offsetHistory) sinceSet() int64 {
	for _, p := range slices.Backward(h.points) {
		if p.ClockSet() {
			return p.At
		}
	}
	return 0
}

// around returns bounds that hold at the moment when the clock showed a time, µs, as far as the history and what is known at
// present tell. Where the clock was set that may be more than one moment, and the bounds hold at each.
func (h *offsetHistory) around(micros int64, present OffsetPoint) ClockOffset {
	var found *ClockOffset
	points := slices.Concat(h.points, []OffsetPoint{present})
	for first := 0; first < len(points); {
		end := first + 1
		for end < len(points) && points[end].Begins == sameClock {
			end++
		}
		until := points[end-1].At
		if end < len(points) {
			until = points[end].At
		}
		if o, ok := within(points[first:end], until, micros); ok {
			if found != nil {
				o = o.hull(*found)
			}
			found = &o
		}
		first = end
	}
	if found == nil {
		return unknownOffset
	}
	return *found
}

// within returns the bounds that the points of a span give, false if the clock cannot have shown micros in it.
func within(span []OffsetPoint, until, micros int64) (ClockOffset, bool) {
	o, nearest := unknownOffset, int64(-1)
	for _, p := range span {
		d := distance(micros, p)
		if d < 0 {
			continue
		}
		if nearest < 0 || d < nearest {
			nearest = d
		}
		wide := p.Offset.widen(drift(d))
		o = ClockOffset{max(o.Low, wide.Low), min(o.High, wide.High)}
	}
	if nearest < 0 || nearest > offsetReach {
		return unknownOffset, false
	}
	t := timeBy(micros, o)
	return o, t >= span[0].At-offsetUndetected && t <= until+offsetUndetected
}

// timeBy is the local time at which a clock with an offset showed micros: the earliest one if the offset is bounded from
// above, else the latest.
func timeBy(micros int64, o ClockOffset) int64 {
	if o.High != OpenHigh {
		return micros - o.High
	}
	return micros - o.Low
}

// distance is how long before or after a point a clock showed micros, at most, −1 if that cannot be told.
func distance(micros int64, p OffsetPoint) int64 {
	d := int64(-1)
	if p.Offset.Low != OpenLow {
		d = absolute(micros - p.Offset.Low - p.At)
	}
	if p.Offset.High != OpenHigh {
		d = max(d, absolute(micros-p.Offset.High-p.At))
	}
	return d
}

func (h *offsetHistory) shift(by int64) {
	for i := range h.points {
		p := &h.points[i]
		p.At += by
		p.Offset.Low, p.Offset.High = below(p.Offset.Low, by), above(p.Offset.High, -by)
	}
}

// A saved history is its step and the pending reason, then each point: time as the distance from the one before, reason with
// the open ends in its higher bits, and the ends that are not open.
const (
	savedOpenLow  = 4
	savedOpenHigh = 8
)

// MarshalJSON spells the history as base64 of varints: it is saved every few seconds, with each worker.
func (h offsetHistory) MarshalJSON() ([]byte, error) {
	b := binary.AppendUvarint(nil, uint64(h.step))
	b = append(b, byte(h.pending))
	last := int64(0)
	for _, p := range h.points {
		head := byte(p.Begins)
		if p.Offset.Low == OpenLow {
			head |= savedOpenLow
		}
		if p.Offset.High == OpenHigh {
			head |= savedOpenHigh
		}
		b = append(binary.AppendVarint(b, p.At-last), head)
		last = p.At
		if head&savedOpenLow == 0 {
			b = binary.AppendVarint(b, p.Offset.Low)
		}
		if head&savedOpenHigh == 0 {
			b = binary.AppendVarint(b, p.Offset.High)
		}
	}
	return json.Marshal(b)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *offsetHistory) UnmarshalJSON(saved []byte) error {
	var b []byte
	if err := json.Unmarshal(saved, &b); err != nil {
		return fmt.Errorf("load clock offsets: %w", err)
	}
	*h = offsetHistory{}
	r := byteReader[[]byte]{rest: b}
	h.step, h.pending = int64(r.uvarint()), OffsetBegin(r.byte())
	last := int64(0)
	for len(r.rest) > 0 && len(h.points) < maxOffsetPoints {
		p := OffsetPoint{At: last + r.varint(), Offset: unknownOffset}
		head := r.byte()
		p.Begins = OffsetBegin(head & 3)
		if head&savedOpenLow == 0 {
			p.Offset.Low = r.varint()
		}
		if head&savedOpenHigh == 0 {
			p.Offset.High = r.varint()
		}
		last = p.At
		h.points = append(h.points, p)
	}
	if r.bad {
		return fmt.Errorf("load clock offsets: %w", ErrSaved)
	}
	return nil
}
