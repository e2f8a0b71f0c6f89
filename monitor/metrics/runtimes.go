package metrics

const runMinutes = 10 // over which run times are averaged

// RunTimes are the run times of the last 10 minutes.
type RunTimes struct {
	minutes [runMinutes]runMinute
}

type runMinute struct {
	at      int64 // minutes since 1970
	n       uint64
	seconds float64
}

func (t *RunTimes) add(minute int64, seconds float64) {
	m := &t.minutes[minute%runMinutes]
	if m.at != minute {
		if m.at > minute {
			return // received before the clock was set back
		}
		*m = runMinute{at: minute}
	}
	m.n++
	m.seconds += seconds
}

// total returns how many tasks ended in the 10 minutes up to now, and how long they ran in all.
func (t *RunTimes) total(now int64) (n uint64, seconds float64) {
	for _, m := range t.minutes {
		if m.at > now-runMinutes && m.at <= now {
			n, seconds = n+m.n, seconds+m.seconds
		}
	}
	return n, seconds
}
