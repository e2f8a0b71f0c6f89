package monitor

import (
	"time"

	"github.com/umbelhq/umbel/state"
)

const (
	rateWindow   = 10 // seconds that Rates averages over
	seriesLength = 60 // seconds of a Series
	meterSize    = 64 // seconds kept: a power of two above seriesLength + 1
)

// meter counts events by second.
type meter struct {
	second int64 // the second being counted, Unix
	ring   [meterSize]counts
}

// counts is what happened in one second.
type counts struct {
	events, received, succeeded, failed, retried float64
}

// add counts an event in the second in which it happened by its sender's clock, so that a backlog read
// at once is no peak. What happened before the series begins is left out; what is yet to happen counts now.
func (m *meter) add(e *state.Event, ch state.Change) {
	second := min(e.Micros/1e6, m.second)
	if second <= m.second-seriesLength {
		return
	}
	c := &m.ring[second%meterSize]
	c.events++
	if !ch.New || !ch.Counts {
		return
	}
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

// advance moves to the second of now, clearing those passed over. A clock set back goes on counting in
// the newest second.
func (m *meter) advance(now time.Time) {
	second := now.Unix()
	if m.second == 0 || second-m.second > meterSize {
		m.second, m.ring = second, [meterSize]counts{}
	}
	for m.second < second {
		m.second++
		m.ring[m.second%meterSize] = counts{}
	}
}

// moving reports whether the rates still change with time.
func (m *meter) moving() bool {
	for i := range m.ring {
		if m.ring[i].events > 0 {
			return true
		}
	}
	return false
}

// read returns the rates over full seconds before now.
func (m *meter) read(now time.Time) Rates {
	var r Rates
	s := &r.Series
	end := max(now.Unix(), m.second)
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
