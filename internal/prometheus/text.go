package prometheus

import (
	"math"
	"strconv"
	"strings"
)

// header writes what is known of a family.
func (w *Writer) header() {
	name, kind, help := w.name, "gauge", helpEscapes.Replace(w.help)
	switch w.kind {
	case Counter:
		kind = "counter"
		if w.format == OpenMetrics {
			name = base(name)
		}
	case HistogramKind:
		kind = "histogram"
	case Gauge:
	}
	for _, s := range []string{"# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"} {
		_, _ = w.out.WriteString(s)
	}
}

//nolint:gochecknoglobals // constant tables
var (
	helpEscapes  = strings.NewReplacer("\\", `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
)

// line appends a sample without its end. bound is the value of the label le, if any.
func (w *Writer) line(name, suffix string, labels []string, bound string, value float64) {
	b := append(append(w.body, name...), suffix...)
	if len(labels) > 0 || bound != "" {
		b = append(b, '{')
		b = appendLabels(b, labels)
		if bound != "" {
			if len(labels) > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, `le="`...), bound...), '"')
		}
		b = append(b, '}')
	}
	w.body = append(append(b, ' '), number(value)...)
}

func (w *Writer) newline() { w.body = append(w.body, '\n') }

// exemplar appends an exemplar to a line.
func (w *Writer) exemplar(e *Exemplar) {
	w.body = append(w.body, " # {"...)
	w.body = appendLabels(w.body, []string{e.Name, e.Text})
	w.body = append(append(w.body, "} "...), number(e.Value)...)
	w.body = append(w.body, ' ')
	w.body = strconv.AppendFloat(w.body, float64(e.AtMicros)/1e6, 'f', 3, 64)
}

func appendLabels(b []byte, labels []string) []byte {
	for i := 0; i+1 < len(labels); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, labels[i]...), `="`...)
		b = append(append(b, labelEscapes.Replace(valid(labels[i+1]))...), '"')
	}
	return b
}

// valid replaces what is no UTF-8, which Prometheus refuses.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// number is a value as Python's client writes it: with a point, so that 1 is 1.0.
func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
