package ingest

import "time"

// maxDrift is how far the wall clock may move away from the monotonic one before what was received moves with it. It is
// small because the offsets of workers' clocks are.
const maxDrift = 10 * time.Millisecond

// hostClock reads the wall clock of the host and detects when it was set, which must not change ages and rates.
type hostClock struct {
	wall  func() time.Time
	began time.Time // wall clock when it was last taken as right
	start time.Time // the same moment by the monotonic clock
	first time.Time // when the hostClock was made, by the monotonic clock
}

func newHostClock(wall func() time.Time) hostClock {
	start := time.Now()
	return hostClock{wall: wall, began: wall().Round(0), start: start, first: start}
}

// elapsed returns the time since the hostClock was made.
func (c *hostClock) elapsed() time.Duration { return time.Since(c.first) }

// read returns the time, and by how much the wall clock was set forward since the last read, mostly 0. The wall clock is read
// between two readings of the monotonic one, which another process may delay.
func (c *hostClock) read() (now time.Time, step time.Duration) {
	least := time.Since(c.start)
	now = c.wall()
	most := time.Since(c.start)
	wall := now.Round(0).Sub(c.began)
	switch {
	case wall > most+maxDrift:
		step = wall - most
	case wall < least-maxDrift:
		step = wall - least
	default:
		return now, 0
	}
	c.began, c.start = now.Round(0), time.Now()
	return now, step
}

// time returns the time of the host. If its clock was set, everything received before keeps its age. mu is held.
func (in *Ingester) time() time.Time {
	now, step := in.clock.read()
	if step != 0 {
		in.cluster.Shift(step.Microseconds())
		if step.Abs() >= time.Second {
			in.log.Warn("wall clock was set", "forward_ms", step.Milliseconds())
		}
		in.notify()
	}
	return now
}
