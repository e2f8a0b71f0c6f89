package prometheus

import (
	"encoding/binary"
	"math"
	"time"
)

// What follows appends messages of metrics.proto in github.com/prometheus/client_model. A field is its number and wire type,
// then its value: wire type 0 is a varint, 1 eight bytes, 2 a length and so many bytes.

const (
	varint = 0
	fixed  = 1
	bytes  = 2
)

func appendTag(b []byte, field, wire uint64) []byte { return binary.AppendUvarint(b, field<<3|wire) }

func appendUint(b []byte, field, v uint64) []byte {
	return binary.AppendUvarint(appendTag(b, field, varint), v)
}

// appendSigned appends a zigzag integer: sint32 or sint64.
func appendSigned(b []byte, field uint64, v int64) []byte {
	return binary.AppendVarint(appendTag(b, field, varint), v)
}

func appendDouble(b []byte, field uint64, v float64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(b, field, fixed), math.Float64bits(v))
}

func appendBytes[T string | []byte](b []byte, field uint64, v T) []byte {
	return append(binary.AppendUvarint(appendTag(b, field, bytes), uint64(len(v))), v...)
}

// appendPairs appends a LabelPair for each label.
func appendPairs(b []byte, labels []string) []byte {
	for i := 0; i+1 < len(labels); i += 2 {
		pair := appendBytes(nil, 1, valid(labels[i]))
		b = appendBytes(b, 1, appendBytes(pair, 2, valid(labels[i+1])))
	}
	return b
}

func appendTimestamp(b []byte, field uint64, at time.Time) []byte {
	message := appendUint(nil, 1, uint64(at.Unix()))
	return appendBytes(b, field, appendUint(message, 2, uint64(at.Nanosecond())))
}

// familyMessage writes the MetricFamily that is open, after its length.
func (w *Writer) familyMessage() {
	b := appendBytes(w.message[:0], 1, w.name)
	b = appendBytes(b, 2, w.help)
	b = appendUint(b, 3, uint64(w.kind))
	_, _ = w.out.Write(binary.AppendUvarint(nil, uint64(len(b)+len(w.body))))
	_, _ = w.out.Write(b)
	_, _ = w.out.Write(w.body)
	w.message = b
}

// addMessage appends a Metric of a counter or gauge to the family.
func (w *Writer) addMessage(value float64, labels []string) {
	field := uint64(2)
	if w.kind == Counter {
		field = 3
	}
	b := appendPairs(w.message[:0], labels)
	b = appendBytes(b, field, appendDouble(nil, 1, value))
	w.body = appendBytes(w.body, 4, b)
	w.message = b
}

// histogramMessage appends a Metric of a histogram to the family.
func (w *Writer) histogramMessage(h *Histogram, labels []string) {
	b := appendUint(nil, 1, h.Count())
	b = appendDouble(b, 2, h.sum)
	total := uint64(0)
	for i, n := range h.counts {
		total += n
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		bucket := appendDouble(appendUint(nil, 1, total), 2, bound)
		if h.exemplars != nil && h.exemplars[i].AtMicros != 0 {
			bucket = appendBytes(bucket, 3, h.exemplars[i].message())
		}
		b = appendBytes(b, 3, bucket)
	}
	if h.native {
		b = h.appendNative(b)
	}
	metric := appendPairs(w.message[:0], labels)
	metric = appendBytes(metric, 7, b)
	w.body = appendBytes(w.body, 4, metric)
	w.message = metric
}

// appendNative appends the native buckets: spans of those that are not empty, and by how much each counts more than the one
// before.
func (h *Histogram) appendNative(b []byte) []byte {
	b = appendSigned(b, 5, Schema)
	b = appendDouble(b, 6, ZeroThreshold)
	b = appendUint(b, 7, h.zero)
	var deltas []int64
	next, last := 0, uint64(0) // index after the last span, count before
	for i := 0; i < len(h.dense); i++ {
		if h.dense[i] == 0 {
			continue
		}
		from := i
		for ; i < len(h.dense) && h.dense[i] != 0; i++ {
			deltas = append(deltas, int64(h.dense[i])-int64(last))
			last = h.dense[i]
		}
		span := appendSigned(nil, 1, int64(h.first+from-next))
		b = appendBytes(b, 12, appendUint(span, 2, uint64(i-from)))
		next = h.first + i
	}
	if len(deltas) == 0 && h.zero == 0 { // marks the histogram as native although it is empty
		b = appendBytes(b, 12, appendUint(appendSigned(nil, 1, 0), 2, 0))
	}
	for _, d := range deltas {
		b = appendSigned(b, 13, d)
	}
	return b
}

func (e *Exemplar) message() []byte {
	b := appendDouble(appendPairs(nil, []string{e.Name, e.Text}), 2, e.Value)
	return appendTimestamp(b, 3, time.UnixMicro(e.AtMicros))
}
