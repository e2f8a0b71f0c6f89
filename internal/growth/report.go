package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// table is what was measured, as a table of Markdown: of each group what takes longest, then everything.
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
				switch {
				case !ok:
					return ""
				case f.P50 == f.P95:
					return amount(f.P50, f.Unit)
				}
				return amount(f.P50, "") + " / " + amount(f.P95, f.Unit)
			})
		}
	}
	return b.String()
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
