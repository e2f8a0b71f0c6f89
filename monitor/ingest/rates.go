package ingest

import (
	"time"

	"github.com/umbelhq/umbel/state"
)

const (
	rateWindow   = 10 // seconds that Rates averages over
	seriesLength = 60 // seconds of a Series
	meterSize    = 64 // seconds kept: a power of two above seriesLength + 1
	maxDelay     = 2  // seconds by which events may reach Umbel late, or a clock may be behind, without being told
)

// meter counts events by the second in which they were received, or in which they happened if a broker has held them for more
// than maxDelay. Seconds count by the monotonic clock, and those of a series before the start count too.
type meter struct {
	second int64 // the second being counted
	ring   [meterSize]counts
}

// counts is what happened in one second.
type counts struct {
	events, received, succeeded, failed, retried float64
}

// add counts an event that was received now.
func (m *meter) add(e *state.Event, ch state.Change) {
	m.ring[m.second%meterSize].events++
	held := int64(lateness(e, ch) / time.Second)
	if held <= maxDelay {
		held = 0
	}
	if !ch.New || !ch.First || held > seriesLength {
		return
	}
	c := &m.ring[(m.second-held)%meterSize]
	switch e.Kind {
	case state.TaskReceived:
		c.received++
	case state.TaskSucceeded:
		c.succeeded++
	case state.TaskFailed:
		c.failed++
	case state.TaskRetried:
		c.retried++
	default:
	}
}

// secondOf is the second of a time since the start. No second of the ring is negative.
func secondOf(now time.Duration) int64 { return meterSize + int64(now/time.Second) }

// advance moves to the second of now, clearing those passed over.
func (m *meter) advance(now time.Duration) {
	second := secondOf(now)
	if second-m.second > meterSize {
		m.second, m.ring = second, [meterSize]counts{}
	}
	for m.second < second {
		m.second++
		m.ring[m.second%meterSize] = counts{}
	}
}

// active reports whether the rates still change with time.
func (m *meter) active() bool {
	for i := range m.ring {
		if m.ring[i].events > 0 {
			return true
		}
	}
	return false
}

// read returns the rates over full seconds before now.
func (m *meter) read(now time.Duration) Rates {
	var r Rates
	s := &r.Series
	end := max(secondOf(now), m.second)
	for second := end - seriesLength; second < end; second++ {
		var c counts
		if second <= m.second && second > m.second-meterSize {
			c = m.ring[second%meterSize]
		}
		s.Received, s.Succeeded = append(s.Received, c.received), append(s.Succeeded, c.succeeded)
		s.Failed, s.Retried = append(s.Failed, c.failed), append(s.Retried, c.retried)
		if second >= end-rateWindow {
			r.Events += c.events
			r.Received += c.received
			r.Succeeded += c.succeeded
			r.Failed += c.failed
			r.Retried += c.retried
		}
	}
	for _, rate := range []*float64{&r.Events, &r.Received, &r.Succeeded, &r.Failed, &r.Retried} {
		*rate /= rateWindow
	}
	return r
}
