// Package clock orders events of many processes: a Lamport clock, clocks of the sending processes that are
// repaired with offsets, and stamps with a total order. It knows nothing of Celery, reads no wall clock and starts
// no goroutine.
package clock

import "sync/atomic"

// Max is the greatest raw clock that counts. Greater ones, and those below 1, are not clocks:
// one hostile message must not be able to overflow the receiver.
const Max int64 = 1 << 62

// Valid reports whether a raw clock from the wire may be used.
func Valid(raw int64) bool { return raw > 0 && raw <= Max }

// Lamport is a logical clock (Lamport 1978). The zero value is ready and reads 0. It is safe for
// concurrent use.
type Lamport struct{ value atomic.Int64 }

// Value returns the current reading.
func (l *Lamport) Value() int64 { return l.value.Load() }

// Tick adds one and returns the new reading.
func (l *Lamport) Tick() int64 { return l.value.Add(1) }

// Witness merges a reading of another clock: the value becomes max(value, n) + 1, also when n is
// behind (kombu clocks.py, adjust). Readings above Max are taken as Max.
func (l *Lamport) Witness(n int64) int64 {
	n = min(n, Max)
	for {
		old := l.value.Load()
		next := max(old, n) + 1
		if l.value.CompareAndSwap(old, next) {
			return next
		}
	}
}

// Restore sets the value, for a clock that continues one from before a restart.
func (l *Lamport) Restore(n int64) { l.value.Store(max(n, 0)) }
