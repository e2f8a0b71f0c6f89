package prometheus_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/prometheus"
)

var at = time.UnixMicro(1_795_262_400_250_000)

// sample writes families of each kind.
func sample(out io.Writer, f prometheus.Format, h *prometheus.Histogram, label string) error {
	w := prometheus.NewWriter(out, f)
	w.Family(prometheus.Counter, "a_total", "All of \\ them.\nReally.")
	w.Add(3, "task", label, "worker", "w")
	w.Created(at, "task", label, "worker", "w")
	w.Family(prometheus.Gauge, "empty", "Left out.")
	w.Family(prometheus.Gauge, "b", "A gauge.")
	w.Add(-1.5e9)
	w.Add(math.Inf(1), "x", "1")
	w.Family(prometheus.HistogramKind, "c_seconds", "A histogram.")
	w.Histogram(h, "task", label)
	return w.Close()
}

// decode returns the families of a text or Protocol Buffers by name.
func decode(t *rapid.T, f prometheus.Format, body io.Reader) map[string]*dto.MetricFamily {
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	if f == prometheus.Protobuf {
		format = expfmt.NewFormat(expfmt.TypeProtoDelim)
	}
	d := expfmt.NewDecoder(body, format)
	all := make(map[string]*dto.MetricFamily)
	for {
		var family dto.MetricFamily
		if err := d.Decode(&family); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("decode: %v", err)
		}
		all[family.GetName()] = &family
	}
}

// stripped is a family without what only Protocol Buffers say.
func stripped(f *dto.MetricFamily) string {
	f = proto.CloneOf(f)
	for _, m := range f.GetMetric() {
		if h := m.GetHistogram(); h != nil {
			h.Schema, h.ZeroThreshold, h.ZeroCount, h.PositiveSpan, h.PositiveDelta = nil, nil, nil, nil, nil
			for _, b := range h.GetBucket() {
				b.Exemplar = nil
			}
		}
	}
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(f)
	return string(b)
}

func TestTextAndProtocolBuffersAgreeWhateverIsCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := prometheus.NewHistogram([]float64{.5, 1, 100}, true)
		values := rapid.SliceOf(rapid.Float64Range(0, 1e7)).Draw(t, "values")
		for _, v := range values {
			h.SetExemplar(h.Observe(v), prometheus.Exemplar{Name: "task_id", Text: "3f1c", Value: v, AtMicros: at.UnixMicro()})
		}
		label := rapid.String().Draw(t, "label")
		var decoded []map[string]*dto.MetricFamily
		for _, f := range []prometheus.Format{prometheus.Text, prometheus.Protobuf} {
			var b bytes.Buffer
			if err := sample(&b, f, h, label); err != nil {
				t.Fatal(err)
			}
			decoded = append(decoded, decode(t, f, &b))
		}
		for _, name := range []string{"a_total", "a_created", "b", "c_seconds"} {
			if got, want := stripped(decoded[1][name]), stripped(decoded[0][name]); got != want {
				t.Errorf("%s as Protocol Buffers = %v, as text %v", name, decoded[1][name], decoded[0][name])
			}
		}
		checkNative(t, decoded[1]["c_seconds"].GetMetric()[0].GetHistogram(), values)
	})
}

// checkNative compares native buckets with a count by their definition.
func checkNative(t *rapid.T, h *dto.Histogram, values []float64) {
	want, zero := map[int]int64{}, uint64(0)
	for _, v := range values {
		if v <= prometheus.ZeroThreshold {
			zero++
			continue
		}
		want[int(math.Ceil(math.Log2(min(v, 1<<20))*8-1e-9))]++
	}
	if h.GetZeroCount() != zero {
		t.Errorf("zero count = %d, want %d", h.GetZeroCount(), zero)
	}
	got, index, count, delta := map[int]int64{}, 0, int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range span.GetLength() {
			count += h.GetPositiveDelta()[delta]
			delta++
			got[index] = count
			index++
		}
	}
	for i, n := range want {
		if got[i] != n {
			t.Errorf("native bucket %d = %d, want %d", i, got[i], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d native buckets, want %d", len(got), len(want))
	}
}

func TestOpenMetricsHasExemplarsAndCreationTimes(t *testing.T) {
	t.Parallel()
	h := prometheus.NewHistogram([]float64{1}, true)
	bucket := h.Observe(.25)
	h.SetExemplar(bucket, prometheus.Exemplar{Name: "task_id", Text: "3f1c", Value: .25, AtMicros: at.UnixMicro()})
	if h.ExemplarDue(bucket, at.Add(time.Millisecond).UnixMicro()) || !h.ExemplarDue(bucket, at.Add(time.Second).UnixMicro()) {
		t.Error("an example is to be replaced after a second")
	}
	h.Observe(.5)
	h.Observe(7)
	var b bytes.Buffer
	if err := sample(&b, prometheus.OpenMetrics, h, `a"b`); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP a All of \\ them.\nReally.
# TYPE a counter
a_total{task="a\"b",worker="w"} 3.0
a_created{task="a\"b",worker="w"} 1.79526240025e+09
# HELP b A gauge.
# TYPE b gauge
b -1.5e+09
b{x="1"} +Inf
# HELP c_seconds A histogram.
# TYPE c_seconds histogram
c_seconds_bucket{task="a\"b",le="1.0"} 2.0 # {task_id="3f1c"} 0.25 1795262400.250
c_seconds_bucket{task="a\"b",le="+Inf"} 3.0
c_seconds_count{task="a\"b"} 3.0
c_seconds_sum{task="a\"b"} 7.75
# EOF
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestNegotiate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		accept string
		want   prometheus.Format
		begins string
	}{
		"none":         {"", prometheus.Text, "text/plain"},
		"browser":      {"text/html,application/xhtml+xml,*/*;q=0.8", prometheus.Text, "text/plain"},
		"Prometheus 2": {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", prometheus.OpenMetrics, "application/openmetrics-text; version=1.0.0"},
		"native":       {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.6", prometheus.Protobuf, "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"},
		"other proto":  {"application/vnd.google.protobuf;proto=other;encoding=delimited", prometheus.Text, "text/plain"},
		"text wins":    {"application/openmetrics-text;q=0.2,text/plain;version=0.0.4;q=0.9", prometheus.Text, "text/plain; version=0.0.4; charset=utf-8"},
		"nonsense":     {";;;,q=", prometheus.Text, "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, contentType := prometheus.Negotiate(tc.accept)
			if f != tc.want || !strings.HasPrefix(contentType, tc.begins) {
				t.Errorf("format %v, %q, want %v, %q", f, contentType, tc.want, tc.begins)
			}
		})
	}
	if _, contentType := prometheus.Negotiate(""); contentType != "text/plain" {
		t.Errorf("content type where none is asked for = %q", contentType)
	}
	// What the library of Prometheus asks for is understood.
	accept := string(expfmt.NewFormat(expfmt.TypeProtoDelim))
	if f := expfmt.Negotiate(http.Header{"Accept": {accept}}); f.FormatType() != expfmt.TypeProtoDelim {
		t.Errorf("the library reads %q as %v", accept, f)
	}
	if f, _ := prometheus.Negotiate(accept); f != prometheus.Protobuf {
		t.Errorf("format of %q = %v", accept, f)
	}
}

func TestMergerWritesEachFamilyOnce(t *testing.T) {
	t.Parallel()
	for _, f := range []prometheus.Format{prometheus.Text, prometheus.OpenMetrics, prometheus.Protobuf} {
		h := prometheus.NewHistogram([]float64{1}, true)
		h.Observe(0.5)
		var out bytes.Buffer
		w := prometheus.NewMerger(&out, f)
		for _, cluster := range []string{"a", "b"} {
			w.Label("cluster", cluster)
			w.Family(prometheus.Counter, "x_total", "X.")
			w.Add(1, "task", "t")
			w.Created(at, "task", "t")
			w.Family(prometheus.HistogramKind, "y_seconds", "Y.")
			w.Histogram(h)
		}
		w.Label("", "")
		w.Family(prometheus.Gauge, "z", "Z.")
		w.Add(1)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if f == prometheus.OpenMetrics {
			for _, line := range []string{
				`x_total{cluster="a",task="t"} 1.0`, `x_total{cluster="b",task="t"} 1.0`, `x_created{cluster="b",task="t"} 1.79526240025e+09`,
				`y_seconds_bucket{cluster="a",le="1.0"} 1.0`, "z 1.0", "# EOF",
			} {
				if strings.Count(out.String(), line+"\n") != 1 {
					t.Errorf("OpenMetrics has not one line %s:\n%s", line, out.String())
				}
			}
			if n := strings.Count(out.String(), "# TYPE x "); n != 1 {
				t.Errorf("the family x is written %d times", n)
			}
			continue
		}
		rapid.Check(t, func(rt *rapid.T) {
			all := decode(rt, f, bytes.NewReader(out.Bytes()))
			for name, want := range map[string]int{"x_total": 2, "x_created": 2, "y_seconds": 2, "z": 1} {
				metrics := all[name].GetMetric()
				if len(metrics) != want {
					rt.Fatalf("%v: %s has %d samples, want %d", f, name, len(metrics), want)
				}
				if want == 2 && metrics[1].GetLabel()[0].GetValue() != "b" {
					rt.Fatalf("%v: the second sample of %s is %v, want that of b", f, name, metrics[1])
				}
			}
		})
	}
}
