package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// table is what was measured, as a table of Markdown: by group, what takes longest first: median and 95th percentile.
func table(measured map[int]report) string {
	sizes := slices.Sorted(maps.Keys(measured))
	if len(sizes) == 0 {
		return ""
	}
	var b strings.Builder
	line := func(first, second string, cell func(r report) string) {
		fmt.Fprintf(&b, "| %s | %s |", first, second)
		for _, n := range sizes {
			fmt.Fprintf(&b, " %s |", cell(measured[n]))
		}
		fmt.Fprintln(&b)
	}
	b.WriteString("| what | |")
	for _, n := range sizes {
		fmt.Fprintf(&b, " %d million |", n)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(sizes)) + "\n")
	last := measured[sizes[len(sizes)-1]]
	for _, g := range groups() {
		for _, name := range g.of(last) {
			line(g.name, name, func(r report) string {
				f, ok := r[name]
				if !ok {
					return ""
				}
				return both(f)
			})
		}
	}
	return b.String()
}

// both writes the median and the 95th percentile of a figure.
func both(f figure) string {
	if f.P50 == f.P95 {
		return amount(f.P50, f.Unit)
	}
	return strings.TrimSuffix(amount(f.P50, ""), " ms") + " / " + amount(f.P95, f.Unit)
}

// amount writes a figure with two or three digits.
func amount(v float64, unit string) string {
	if unit == "" {
		unit = "ms"
	}
	digits := 0
	if v > 0 && v < 10 {
		digits = int(math.Min(2, 1-math.Floor(math.Log10(v))))
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
}
