// Package prometheus counts in histograms as Prometheus does, native ones included, and writes metrics in its text format, as
// OpenMetrics, and as Protocol Buffers. It registers nothing and knows no metric.
package prometheus

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"time"
)

// Kind is what a family measures.
type Kind int

// Kinds of families, by their numbers in Prometheus' Protocol Buffers.
const (
	Counter       Kind = 0
	Gauge         Kind = 1
	HistogramKind Kind = 4
)

// Writer writes families of metrics, one after the other. Errors are returned by Close. It is not safe for concurrent use.
//
// Labels are pairs of a name and a value. A sample with the same labels must not be written twice.
type Writer struct {
	format  Format
	out     *bufio.Writer
	body    []byte // of the family
	message []byte // reused
	created []createdSample

	kind       Kind
	name, help string
	open       bool

	always []string  // labels of each sample
	merged []*family // until Close, nil if families are written as they end
}

// family is one that Close writes.
type family struct {
	kind       Kind
	name, help string
	body       []byte
}

type createdSample struct {
	labels []string
	at     time.Time
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer, f Format) *Writer {
	return &Writer{format: f, out: bufio.NewWriterSize(out, 64<<10)}
}

// NewMerger returns a Writer to out for several goes: Close writes each family once, with what was added to it in all of them.
func NewMerger(out io.Writer, f Format) *Writer {
	w := NewWriter(out, f)
	w.merged = []*family{}
	return w
}

// Label ends the last family. Each sample from then on has a label, in place of the one of the call before; none if name is empty.
func (w *Writer) Label(name, value string) {
	w.end()
	if w.always = nil; name != "" {
		w.always = []string{name, value}
	}
}

// labeled returns the labels of a sample with the one that all have.
func (w *Writer) labeled(labels []string) []string {
	if len(w.always) == 0 {
		return labels
	}
	return slices.Concat(w.always, labels)
}

// Family begins a family. The name of a counter ends in _total, and a family without samples is left out.
func (w *Writer) Family(kind Kind, name, help string) {
	w.end()
	w.kind, w.name, w.help, w.open = kind, name, help, true
}

// Add writes a sample of a counter or gauge.
func (w *Writer) Add(value float64, labels ...string) {
	labels = w.labeled(labels)
	if w.format == Protobuf {
		w.addMessage(value, labels)
		return
	}
	w.line(w.name, "", labels, "", value)
	w.newline()
}

// Created says when the series with these labels began to count: after its sample. The text format and Protocol Buffers have a
// gauge for it, as Python's client has.
func (w *Writer) Created(at time.Time, labels ...string) {
	if w.format == OpenMetrics {
		w.line(base(w.name), "_created", w.labeled(labels), "", seconds(at))
		w.newline()
		return
	}
	w.created = append(w.created, createdSample{labels, at})
}

// Histogram writes a sample of a family of histograms.
func (w *Writer) Histogram(h *Histogram, labels ...string) {
	labels = w.labeled(labels)
	if w.format == Protobuf {
		w.histogramMessage(h, labels)
		return
	}
	total := uint64(0)
	for i, n := range h.counts {
		total += n
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = number(h.bounds[i])
		}
		w.line(w.name, "_bucket", labels, bound, float64(total))
		if w.format == OpenMetrics && h.exemplars != nil && h.exemplars[i].AtMicros != 0 {
			w.exemplar(&h.exemplars[i])
		}
		w.newline()
	}
	w.line(w.name, "_count", labels, "", float64(total))
	w.newline()
	w.line(w.name, "_sum", labels, "", h.sum)
	w.newline()
}

// Close ends the last family and flushes. It returns the first error of writing.
func (w *Writer) Close() error {
	w.end()
	for _, f := range w.merged {
		w.kind, w.name, w.help, w.body = f.kind, f.name, f.help, f.body
		w.write()
	}
	if w.format == OpenMetrics {
		_, _ = w.out.WriteString("# EOF\n")
	}
	return w.out.Flush()
}

// end writes the family that is open.
func (w *Writer) end() {
	if !w.open {
		return
	}
	w.open = false
	switch {
	case len(w.body) == 0:
	case w.merged != nil:
		w.merge()
	default:
		w.write()
	}
	w.body = w.body[:0]
	created := w.created
	if w.created = nil; len(created) == 0 {
		return
	}
	w.Family(Gauge, base(w.name)+"_created", w.help)
	for _, c := range created {
		w.Add(seconds(c.at), c.labels...)
	}
	w.end()
}

// merge keeps what was added to the family that has ended.
func (w *Writer) merge() {
	i := slices.IndexFunc(w.merged, func(f *family) bool { return f.name == w.name })
	if i < 0 {
		i = len(w.merged)
		w.merged = append(w.merged, &family{kind: w.kind, name: w.name, help: w.help})
	}
	w.merged[i].body = append(w.merged[i].body, w.body...)
}

// write writes a family.
func (w *Writer) write() {
	if w.format == Protobuf {
		w.familyMessage()
		return
	}
	w.header()
	_, _ = w.out.Write(w.body)
}

// base is the name of a counter without _total.
func base(name string) string { return strings.TrimSuffix(name, "_total") }

func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }
