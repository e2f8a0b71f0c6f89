package rollup_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/rollup"
)

const day = int64(86_400_000_000) // µs

func TestQuantilesAreWithinOnePercent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, day), rapid.Int64Range(0, 5000)), 1, 300).Draw(t, "values")
		h := of(values...)
		if got, want := h.Count(), int64(len(values)); got != want {
			t.Fatalf("count = %d, want %d", got, want)
		}
		slices.Sort(values)
		for _, q := range []float64{0.5, 0.95, 0.99, 1} {
			got, want := h.Quantile(q), values[int(math.Ceil(q*float64(len(values))))-1]
			if math.Abs(float64(got-want)) > float64(want)/100 {
				t.Fatalf("quantile %v of %v = %d, want %d within 1 %%", q, values, got, want)
			}
		}
	})
}

func TestMergedHistogramsAreOneOfAllValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Int64Range(-1, 2*day)).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		whole := of(values...)
		merged, err := rollup.MergeEncoded(of(values[:cut]...).Encode(), of(values[cut:]...).Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := merged, whole.Encode(); !bytes.Equal(got, want) {
			t.Fatalf("merged = %x, want %x", got, want)
		}
		read, err := rollup.ParseHistogram(merged)
		if err != nil || !slices.Equal(read, whole) {
			t.Fatalf("read = %v, %v, want %v", read, err, whole)
		}
	})
}

func of(values ...int64) rollup.Histogram {
	var h rollup.Histogram
	for _, v := range values {
		h.Add(v)
	}
	return h
}

func TestQuantilesOfEdges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values []int64
		share  float64
		want   int64
	}{
		"nothing":         {nil, 0.5, 0},
		"one":             {[]int64{200}, 0.99, 200},
		"below zero":      {[]int64{-5}, 1, 0},
		"small are exact": {[]int64{1, 2, 3, 255}, 1, 255},
		"the least":       {[]int64{1, 2, 3}, 0, 1},
		"median":          {[]int64{1, 2, 3}, 0.5, 2},
	} {
		if got := of(tt.values...).Quantile(tt.share); got != tt.want {
			t.Errorf("%s: quantile = %d, want %d", name, got, tt.want)
		}
	}
	if got := of(math.MaxInt64).Quantile(1); math.Abs(float64(got-day)) > float64(day)/100 {
		t.Errorf("beyond a day: quantile = %d, want a day", got)
	}
}

func FuzzParseHistogram(f *testing.F) {
	f.Add(of(1, 1, 300, day).Encode())
	f.Add([]byte{})
	f.Add([]byte{1, 0})
	f.Add([]byte{2, 0, 1})
	f.Add([]byte{1, 5, 1, 0, 1})
	f.Add(append([]byte{1, 1}, bytes.Repeat([]byte{0xff}, 9)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := rollup.ParseHistogram(b)
		if err != nil {
			if !errors.Is(err, rollup.ErrHistogram) {
				t.Fatalf("error = %v, want ErrHistogram", err)
			}
			return
		}
		again, err := rollup.ParseHistogram(h.Encode())
		if err != nil || !slices.Equal(again, h) {
			t.Fatalf("read again = %v, %v, want %v", again, err, h)
		}
		if got := h.Quantile(1); got < 0 || got > day+day/100 {
			t.Fatalf("quantile of %x = %d", b, got)
		}
	})
}
