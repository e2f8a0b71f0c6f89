// Package retry paces repeated attempts.
package retry

import (
	"math/rand/v2"
	"time"
)

// After returns the wait after a number of failures in a row, from 1: between least and a bound that starts at twice
// least and doubles with every failure, up to most. The jitter keeps clients of a server that comes back from
// reconnecting at the same moment.
func After(failures int, least, most time.Duration) time.Duration {
	bound := min(least<<min(failures, 16), most)
	return least + rand.N(bound-least+1)
}
