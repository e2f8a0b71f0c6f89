package alert

import (
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/state/query"
)

// What a schedule is learnt from.
const (
	maxGaps    = 20
	rememberIn = int64(Lookback / time.Microsecond)
)

// silentSchedules judges rules of kind SilentSchedule.
type silentSchedules struct {
	*selection

	rule  Rule
	names map[string]*schedule
	last  int64 // end of the last record
}

// schedule is when a task of one name was sent.
type schedule struct {
	client string
	gaps   []interval // oldest first
	last   int64      // send
	// heard is since when its silence would be known, if that is after last.
	heard int64
}

// interval is the time between two sends.
type interval struct{ at, length int64 }

func (s *silentSchedules) judge(r *Record) (map[string]seen, bool) {
	blind := !r.Connected || s.last > 0 && r.From-s.last > gap
	s.last = r.At
	for _, v := range r.Sends {
		if v.Name == "" || !s.match(v.Name, "", "") {
			continue
		}
		c := s.names[v.Name]
		if c == nil {
			if len(s.names) >= maxNames {
				continue
			}
			c = &schedule{}
			s.names[v.Name] = c
		}
		c.add(v, blind)
	}
	holds := map[string]seen{}
	for name, c := range s.names {
		if blind {
			c.heard = r.At
		}
		if c.last < r.At-rememberIn {
			delete(s.names, name)
			continue
		}
		period, spread, ok := c.period(r.At)
		silence := r.At - max(c.last, c.heard)
		if !ok || float64(silence) <= s.rule.Factor*float64(period)+3*float64(spread)+float64(second) {
			continue
		}
		holds[name] = seen{float64(silence) / 1e6, Evidence{
			Text: fmt.Sprintf("%s sent %s every %s, and not for %s.", c.client, name, span(period), span(silence)),
			From: time.UnixMicro(c.last - 5*period).UTC(), Query: query.New(query.Equal(query.Name, name)).String(),
		}}
	}
	return holds, true
}

// add notes sends of one client. Another client begins anew, unless it goes on in time: that one restarted.
func (c *schedule) add(v Send, blind bool) {
	length := v.First - c.last
	if c.client != v.Client {
		period, _, ok := c.period(v.Last)
		if !ok || length < period/2 {
			c.gaps, c.last = nil, 0
		}
		c.client = v.Client
	}
	if c.last > 0 && !blind && c.heard <= c.last && length > 0 {
		c.gaps = append(c.gaps, interval{v.First, length})
	}
	for range min(v.N-1, maxGaps) {
		c.gaps = append(c.gaps, interval{v.Last, (v.Last - v.First) / (v.N - 1)})
	}
	c.last = max(c.last, v.Last)
	c.gaps = slices.Clone(c.gaps[max(0, len(c.gaps)-maxGaps):])
}

// period returns the median of the intervals and their median deviation from it, false if they are not regular.
func (c *schedule) period(at int64) (period, spread int64, ok bool) {
	var lengths []int64
	for _, g := range c.gaps {
		if g.at >= at-rememberIn {
			lengths = append(lengths, g.length)
		}
	}
	return schedules.Median(lengths)
}
