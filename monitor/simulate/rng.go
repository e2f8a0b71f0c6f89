package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// rng is the only source of randomness of a simulation.
type rng struct{ *rand.Rand }

func newRNG(seed uint64) rng { return rng{rand.New(rand.NewPCG(seed, 0xce1e47))} }

// chance is true with probability p.
func (d rng) chance(p float64) bool { return d.Float64() < p }

// between is uniform in [lo, hi).
func (d rng) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.Int64N(int64(hi-lo)))
}

// upTo is uniform in [lo, hi].
func (d rng) upTo(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

// exp is exponential: a time between two independent arrivals.
func (d rng) exp(mean time.Duration) time.Duration {
	return time.Duration(d.ExpFloat64() * float64(mean))
}

// logNormal is a run time: half of them below median, a few far above, none above 20 times it.
func (d rng) logNormal(median time.Duration, sigma float64) time.Duration {
	return time.Duration(float64(median) * min(math.Exp(d.NormFloat64()*sigma), 20))
}

// latency is the time a message takes on the way.
func (d rng) latency() time.Duration {
	return 200*time.Microsecond + d.exp(400*time.Microsecond)
}

// uuid is a random UUID of version 4.
func (d rng) uuid() string { return d.id(0) }

// id is a random UUID, another one for each salt.
func (d rng) id(salt uint64) string {
	hi, lo := (d.Uint64()^salt)&^0xf000|0x4000, d.Uint64()&^(3<<62)|2<<62
	var raw uuid.UUID
	for i := range 8 {
		raw[i], raw[8+i] = byte(hi>>(56-8*i)), byte(lo>>(56-8*i))
	}
	return raw.String()
}

// pick is one of all.
func pick[T any](d rng, all []T) T { return all[d.IntN(len(all))] }
