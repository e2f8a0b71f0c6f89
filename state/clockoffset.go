package state

import (
	"math"
	"slices"
)

// MaxOffset is how far, in µs, the clock of a worker may surely be off before it is reported as wrong.
const MaxOffset int64 = 1_000_000

// Open ends of a ClockOffset.
const (
	OpenLow  int64 = math.MinInt64
	OpenHigh int64 = math.MaxInt64
)

// ClockOffset bounds how far a wall clock is ahead of the local one, µs, negative if behind: at least Low and at most
// High. The bounds hold as long as the clock is not set and gains or loses at most 500 µs a second.
type ClockOffset struct{ Low, High int64 } //nolint:recvcheck // the methods of a nil one say that nothing is known

var unknownOffset = ClockOffset{OpenLow, OpenHigh} //nolint:gochecknoglobals // a constant

// Known reports whether there is any bound.
func (i ClockOffset) Known() bool { return i != unknownOffset }

// LowSeconds is Low in seconds, nil if it is open or i is nil.
func (i *ClockOffset) LowSeconds() *float64 {
	if i == nil || i.Low == OpenLow {
		return nil
	}
	return new(float64(i.Low) / 1e6)
}

// HighSeconds is High in seconds, nil if it is open or i is nil.
func (i *ClockOffset) HighSeconds() *float64 {
	if i == nil || i.High == OpenHigh {
		return nil
	}
	return new(float64(i.High) / 1e6)
}

// Closed reports whether there are both bounds.
func (i ClockOffset) Closed() bool { return i.Low != OpenLow && i.High != OpenHigh }

// Contains reports whether an offset is within the bounds.
func (i ClockOffset) Contains(micros int64) bool { return i.Low <= micros && micros <= i.High }

// Wrong reports whether the clock is surely off by more than MaxOffset.
func (i ClockOffset) Wrong() bool { return i.Low > MaxOffset || i.High < -MaxOffset }

// widen returns the bounds moved apart by so many µs each. Open ends stay open.
func (i ClockOffset) widen(by int64) ClockOffset {
	return ClockOffset{below(i.Low, by), above(i.High, by)}
}

// hull returns the bounds that hold where those of i or of j hold.
func (i ClockOffset) hull(j ClockOffset) ClockOffset {
	return ClockOffset{min(i.Low, j.Low), max(i.High, j.High)}
}

// below is low less by, and above is high plus by: open ends stay open.
func below(low, by int64) int64 {
	if low == OpenLow || by == OpenHigh {
		return OpenLow
	}
	return low - by
}

func above(high, by int64) int64 {
	if high == OpenHigh || by == OpenHigh {
		return OpenHigh
	}
	return high + by
}

// ClockProbe is a worker's reply to the clock command, after which the heartbeat command is sent. The heartbeat that this makes
// has a greater clock, so that its timestamp is of a moment after the second command was sent. (Replies also carry a clock in
// their headers, but that is not the one of the worker's events.)
type ClockProbe struct {
	Worker string
	Clock  int64 // as it replied
	SentAt int64 // when the heartbeat command was sent, by the local clock, µs
}

// ApplyClockProbe compares a worker's clock by a probe, if the worker is known. It is to be called before the heartbeat command is
// sent, each time: a heartbeat of a probe that is not known of, and that comes late under the pid of the next process, may be
// taken for that of a later one.
func (c *Cluster) ApplyClockProbe(p ClockProbe) {
	if w := c.workers[p.Worker]; w != nil && p.Clock > 0 {
		w.offset.probe(p)
		w.changed = true
		c.version++
	}
}

// OffsetHistory returns what was known of the clock of a worker in about the last day, oldest first, and what is known now.
func (c *Cluster) OffsetHistory(worker string) []OffsetPoint {
	w := c.workers[worker]
	if w == nil {
		return nil
	}
	return append(slices.Clone(w.offset.History.points), w.offset.point(c.now))
}
