package tables

import "time"

// MeasuredTime bounds the wall clock by the monotonic time since the newest event.
type MeasuredTime struct {
	newest int64     // µs, of the newest task so far
	since  time.Time // when that was first seen, with a monotonic reading
}

// Now returns the time, given the receipt of the newest event.
func (y *MeasuredTime) Now(newest int64, now time.Time) time.Time {
	if newest == 0 {
		return now // there is nothing to lose
	}
	if newest > y.newest {
		*y = MeasuredTime{newest, time.Now()}
	}
	certain := time.UnixMicro(y.newest).Add(time.Since(y.since))
	if now.After(certain) {
		return certain
	}
	return now
}
