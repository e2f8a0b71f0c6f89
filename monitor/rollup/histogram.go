package rollup

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
)

// Histogram counts durations in buckets of at most 1/128 of their value, as HdrHistogram does for two
// significant figures, from 1 µs to 24 h. It holds only the buckets that count something, in order. The zero
// value is empty.
type Histogram []bucket //nolint:recvcheck // only Add and Merge change it

type bucket struct {
	index uint16
	n     int64
}

// Powers of two from 2^7 on have 128 buckets each; below, each value has its own.
const (
	bucketBits  = 7
	maxDuration = 24 * 3600 * 1_000_000 // µs
)

func indexOf(micros int64) uint16 {
	v := uint64(min(max(micros, 0), maxDuration))
	shift := max(bits.Len64(v)-bucketBits-1, 0)
	return uint16(uint64(shift)<<bucketBits + v>>shift)
}

// value is the middle of a bucket, in µs.
func (b bucket) value() int64 {
	shift := max(int(b.index>>bucketBits)-1, 0)
	low := int64(b.index-uint16(shift<<bucketBits)) << shift
	return low + (1<<shift)/2
}

// Add counts a duration. Negative ones count as 0, those of more than a day as one day.
func (h *Histogram) Add(micros int64) {
	index := indexOf(micros)
	i, found := slices.BinarySearchFunc(*h, index, func(b bucket, index uint16) int { return cmp.Compare(b.index, index) })
	if !found {
		*h = slices.Insert(*h, i, bucket{index: index})
	}
	(*h)[i].n++
}

// Merge counts all that other has counted. It changes h in place: copies of it must not be used afterwards.
func (h *Histogram) Merge(other Histogram) {
	if len(*h) == 0 {
		*h = append(*h, other...)
		return
	}
	a, at := *h, 0
	var few [64]bucket
	missing := few[:0]
	for _, c := range other {
		if at = seek(a, at, c.index); at < len(a) && a[at].index == c.index {
			a[at].n += min(c.n, math.MaxInt64-a[at].n)
		} else {
			missing = append(missing, c)
		}
	}
	end := len(a)
	a = slices.Grow(a, len(missing))[:end+len(missing)]
	for to := len(a) - 1; len(missing) > 0; to-- { // from the end, so that nothing is overwritten before it has moved
		if last := len(missing) - 1; end > 0 && a[end-1].index > missing[last].index {
			end--
			a[to] = a[end]
		} else {
			a[to], missing = missing[last], missing[:last]
		}
	}
	*h = a
}

// seek returns where the first bucket from a place on is that is not below index.
func seek(h Histogram, from int, index uint16) int {
	to := from
	for step := 1; to < len(h) && h[to].index < index; step *= 2 {
		from, to = to+1, to+step
	}
	for to = min(to, len(h)); from < to; {
		if middle := (from + to) / 2; h[middle].index < index {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// Count is how many durations were counted.
func (h Histogram) Count() int64 {
	n := int64(0)
	for _, b := range h {
		n += min(b.n, math.MaxInt64-n)
	}
	return n
}

// Quantile returns the duration in µs that a share of all, from 0 to 1, does not exceed. It is 0 if nothing
// was counted.
func (h Histogram) Quantile(share float64) int64 {
	rank := max(int64(math.Ceil(share*float64(h.Count()))), 1)
	for _, b := range h {
		if rank -= b.n; rank <= 0 {
			return b.value()
		}
	}
	return 0
}

// A saved histogram is its version (1 byte), then for each bucket the distance of its index from the one
// before and its count (unsigned varints). An empty one has no bytes.
const histogramVersion = 1

// ErrHistogram is returned for bytes that are no saved histogram of a known version.
var ErrHistogram = errors.New("not a saved histogram")

// Encode returns the form that ParseHistogram reads.
func (h Histogram) Encode() []byte {
	if len(h) == 0 {
		return nil
	}
	b := append(make([]byte, 0, 1+3*len(h)), histogramVersion)
	last := uint16(0)
	for _, c := range h {
		b = binary.AppendUvarint(b, uint64(c.index-last))
		b = binary.AppendUvarint(b, uint64(c.n))
		last = c.index
	}
	return b
}

// ParseHistogram reads what Encode wrote. The error is ErrHistogram.
func ParseHistogram(b []byte) (Histogram, error) {
	if len(b) == 0 {
		return nil, nil
	}
	return appendSaved(make(Histogram, 0, len(b)/2), b)
}

// MergeSaved counts all that was counted in a saved histogram. The error is ErrHistogram.
func (h *Histogram) MergeSaved(b []byte) error {
	var few [256]bucket
	other, err := appendSaved(few[:0], b)
	if err == nil {
		h.Merge(other)
	}
	return err
}

// appendSaved appends the buckets of a saved histogram to h, which is empty.
func appendSaved(h Histogram, b []byte) (Histogram, error) {
	if len(b) == 0 {
		return h, nil
	}
	if b[0] != histogramVersion {
		return nil, ErrHistogram
	}
	last, index := uint64(indexOf(maxDuration)), uint64(0)
	for b = b[1:]; len(b) > 0; {
		distance, n := binary.Uvarint(b)
		if n <= 0 || distance > last || (distance == 0 && len(h) > 0) {
			return nil, ErrHistogram
		}
		count, m := binary.Uvarint(b[n:])
		if m <= 0 || count == 0 || count > math.MaxInt64 {
			return nil, ErrHistogram
		}
		if index += distance; index > last {
			return nil, ErrHistogram
		}
		h = append(h, bucket{uint16(index), int64(count)})
		b = b[n+m:]
	}
	return h, nil
}

// MergeEncoded returns what two saved histograms counted together. The error is ErrHistogram.
func MergeEncoded(a, b []byte) ([]byte, error) {
	if len(a) == 0 {
		a, b = b, a
	}
	h, err := ParseHistogram(a)
	if err == nil {
		err = h.MergeSaved(b)
	}
	if err != nil {
		return nil, err
	}
	return h.Encode(), nil
}

// Sum is that of all durations, in µs.
func (h Histogram) Sum() float64 {
	sum := 0.0
	for _, b := range h {
		sum += float64(b.value()) * float64(b.n)
	}
	return sum
}

// All calls f with the middle of each bucket in use, in µs, and how many durations are in it, shortest first.
func (h Histogram) All(f func(micros, n int64)) {
	for _, b := range h {
		f(b.value(), b.n)
	}
}
