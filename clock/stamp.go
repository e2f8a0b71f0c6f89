package clock

import "cmp"

// Stamp places an event in one total order over all processes: by repaired clock, then wall clock,
// then origin. The zero Stamp comes before every other.
type Stamp struct {
	Clock  int64  // repaired Lamport clock, at least 1
	Micros int64  // sender's wall clock, µs since 1970 UTC
	Origin string // hostname.pid of the sender; the hostname alone for a client
}

// Compare returns -1, 0 or +1 as a comes before, equals or follows b. Unlike kombu's timetuple,
// which mixes clock and wall time, the order is transitive.
func (a Stamp) Compare(b Stamp) int {
	return cmp.Or(cmp.Compare(a.Clock, b.Clock), cmp.Compare(a.Micros, b.Micros), cmp.Compare(a.Origin, b.Origin))
}
