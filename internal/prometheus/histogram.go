package prometheus

import (
	"math"
	"slices"
	"time"
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
	At         time.Time
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

// Observe counts a value. Negative ones count as 0, NaN is ignored.
func (h *Histogram) Observe(v float64) {
	if math.IsNaN(v) {
		return
	}
	v = max(v, 0)
	h.counts[h.bucket(v)]++
	h.sum += v
	if !h.native {
		return
	}
	if v <= ZeroThreshold {
		h.zero++
		return
	}
	h.dense[h.room(nativeIndex(min(v, maxNative)))]++
}

// ObserveExample counts a value and remembers it as the example of its classic bucket, if the last one is a second old: so few
// are stored. text is copied.
func (h *Histogram) ObserveExample(v float64, name, text string, at time.Time) {
	h.Observe(v)
	if math.IsNaN(v) {
		return
	}
	if h.exemplars == nil {
		h.exemplars = make([]Exemplar, len(h.counts))
	}
	v = max(v, 0)
	if e := &h.exemplars[h.bucket(v)]; at.Sub(e.At).Abs() >= time.Second {
		*e = Exemplar{Name: name, Text: string([]byte(text)), Value: v, At: at}
	}
}

// bucket is the number of the classic bucket of a value.
func (h *Histogram) bucket(v float64) int {
	i, _ := slices.BinarySearch(h.bounds, v)
	return i
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

// nativeIndex is the index of the native bucket that ends at 2^(index/8) and includes v.
func nativeIndex(v float64) int {
	fraction, exponent := math.Frexp(v)
	i := 0
	for i < len(fractions) && fractions[i] < fraction {
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
