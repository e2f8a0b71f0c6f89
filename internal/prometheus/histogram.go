package prometheus

import (
	"math"
	"slices"
)

// Schema is the resolution of native buckets: each is 2^(2^-3), about 1.09, times as large as the one before.
const Schema = 3

// ZeroThreshold is the value below which native buckets do not tell values apart: about a microsecond.
const ZeroThreshold = 1.0 / (1 << 20)

// maxNative is the largest value with a native bucket of its own, 2^20, about 12 days in seconds. So there are at most 320.
const maxNative = 1 << 20

// fractions are the upper bounds of the native buckets of 0.5 to 1.
var fractions = func() (list [1 << Schema]float64) { //nolint:gochecknoglobals // a constant table
	for i := range list {
		list[i] = math.Exp2(float64(i)/(1<<Schema) - 1)
	}
	return list
}()

// Exemplar is an observation by example: the value and what it was observed of.
type Exemplar struct {
	Name, Text string // of its label; together at most 128 characters
	Value      float64
	AtMicros   int64 // since 1970 UTC, never 0
}

// Histogram counts values from 0 on in classic buckets and, if it is native, in native ones beside them. It is not safe for
// concurrent use.
type Histogram struct {
	bounds []float64 // ascending, without +Inf
	counts []uint64  // by bound, then +Inf
	sum    float64

	native bool
	zero   uint64
	first  int      // index of the first of
	dense  []uint64 // the native buckets

	exemplars []Exemplar // by bucket, as counts; nil before the first
}

// NewHistogram returns an empty histogram with classic buckets of these upper bounds, which ascend and are shared, and a last
// one above all of them.
func NewHistogram(bounds []float64, native bool) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1), native: native}
}

// Observe counts a value and returns its classic bucket, for SetExemplar. Negative ones count as 0, NaN and infinity as the
// largest.
func (h *Histogram) Observe(v float64) (bucket int) {
	if v <= 0 {
		v = 0
	} else if !(v < math.MaxFloat64) {
		v = math.MaxFloat32
	}
	bucket = h.bucket(v)
	h.counts[bucket]++
	h.sum += v
	switch {
	case !h.native:
	case v <= ZeroThreshold:
		h.zero++
	default:
		i := nativeIndex(min(v, maxNative)) - h.first
		if uint(i) >= uint(len(h.dense)) {
			i = h.room(i + h.first)
		}
		h.dense[i]++
	}
	return bucket
}

// ExemplarDue reports whether the example of a bucket is a second off a moment, µs since 1970 UTC: so few are stored.
func (h *Histogram) ExemplarDue(bucket int, micros int64) bool {
	const second = 1_000_000
	if h.exemplars == nil {
		return true
	}
	age := micros - h.exemplars[bucket].AtMicros
	return age >= second || age <= -second
}

// SetExemplar remembers the example of a bucket.
func (h *Histogram) SetExemplar(bucket int, e Exemplar) {
	if h.exemplars == nil {
		h.exemplars = make([]Exemplar, len(h.counts))
	}
	h.exemplars[bucket] = e
}

// bucket is the number of the classic bucket of a value.
func (h *Histogram) bucket(v float64) int {
	low, high := 0, len(h.bounds)
	for low < high {
		if middle := (low + high) / 2; h.bounds[middle] < v {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// room returns the place of a native bucket in dense, which it extends.
func (h *Histogram) room(index int) int {
	switch {
	case len(h.dense) == 0:
		h.first, h.dense = index, make([]uint64, 1, 8)
	case index < h.first:
		h.dense = slices.Insert(h.dense, 0, make([]uint64, h.first-index)...)
		h.first = index
	case index >= h.first+len(h.dense):
		h.dense = append(h.dense, make([]uint64, index+1-h.first-len(h.dense))...)
	}
	return index - h.first
}

// firstFractions are, by the first 5 bits of a fraction, the numbers of the first of fractions that may be its upper bound. The next
// one is, if not.
var firstFractions = func() (list [32]uint8) { //nolint:gochecknoglobals // a constant table
	for i := range list {
		for int(list[i]) < len(fractions) && fractions[list[i]] < .5+float64(i)/64 {
			list[i]++
		}
	}
	return list
}()

// nativeIndex is the index of the native bucket that ends at 2^(index/8) and includes v, which is more than ZeroThreshold.
func nativeIndex(v float64) int {
	bits := math.Float64bits(v)
	exponent := int(bits>>52) - 1022 // as of math.Frexp
	fraction := math.Float64frombits(bits&(1<<52-1) | 1022<<52)
	i := int(firstFractions[bits>>47&31])
	if i < len(fractions) && fraction > fractions[i] {
		i++
	}
	return i + (exponent-1)<<Schema
}

// Count is how many values were observed, Sum their sum.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Sum is the sum of the observed values.
func (h *Histogram) Sum() float64 { return h.sum }

// Clone returns a copy.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.counts, c.dense, c.exemplars = slices.Clone(h.counts), slices.Clone(h.dense), slices.Clone(h.exemplars)
	return &c
}
