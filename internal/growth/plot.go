package main

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

// Sizes of the drawing, in pixels.
const (
	columns     = 3
	panelWidth  = 290
	panelHeight = 190
	left        = 16 // of what is drawn in a panel
	right       = 94 // for the label of the last figure
	top         = 58
	bottom      = 30
)

// style follows the scheme of whoever looks at the file.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.title { font-weight: 600; fill: #1f2328 }
.axis { stroke: #d0d7de }
.target { stroke: #cf222e; stroke-dasharray: 4 3 }
.one { fill: none; stroke: #afb8c1 }
.worst { fill: none; stroke: #0969da; stroke-width: 2 }
.dot { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #8b949e } .title { fill: #e6edf3 } .axis { stroke: #30363d } .target { stroke: #f85149 }
  .one { stroke: #484f58 } .worst { stroke: #58a6ff } .dot { fill: #58a6ff }
}
</style>
`

// draw draws a panel for each group: the median of each of its figures by the number of tasks, and what takes longest with most tasks
// in color, labelled with its 95th percentile too.
func draw(measured map[int]report) string {
	sizes := slices.Sorted(maps.Keys(measured))
	var panels []string
	for _, g := range groups() {
		if p := panel(g, sizes, measured); p != "" {
			panels = append(panels, p)
		}
	}
	rows := (len(panels) + columns - 1) / columns
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="How long reading takes, by millions of stored tasks">`+"\n",
		columns*panelWidth, rows*panelHeight)
	b.WriteString(style)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n%s</g>\n", i%columns*panelWidth, i/columns*panelHeight, p)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func panel(g group, sizes []int, measured map[int]report) string {
	if len(sizes) == 0 {
		return ""
	}
	names := g.of(measured[sizes[len(sizes)-1]])
	if len(names) == 0 {
		return ""
	}
	highest := 0.
	for _, n := range sizes {
		for _, name := range names {
			highest = max(highest, measured[n][name].P50)
		}
	}
	if g.target > highest && g.target <= 2*highest {
		highest = g.target
	}
	a := axes{first: sizes[0], last: sizes[len(sizes)-1], highest: highest}
	worst := measured[a.last][names[0]]
	var b strings.Builder
	title, second := g.name, names[0]
	if g.target > 0 {
		title += ", target " + amount(g.target, worst.Unit)
	}
	if len(names) > 1 {
		second += fmt.Sprintf(", and %d more", len(names)-1)
	}
	fmt.Fprintf(&b, `<text class="title" x="%d" y="20">%s</text><text x="%d" y="38">%s</text>`+"\n", left, html.EscapeString(title), left, html.EscapeString(second))
	fmt.Fprintf(&b, `<path class="axis" d="M%d %.1fH%d"/>`+"\n", left, a.y(0), panelWidth-right)
	if g.target > 0 && g.target <= highest {
		fmt.Fprintf(&b, `<path class="target" d="M%d %.1fH%d"/>`+"\n", left, a.y(g.target), panelWidth-right)
	}
	for i, name := range slices.Backward(names) {
		class := "one"
		if i == 0 {
			class = "worst"
		}
		var path strings.Builder
		for _, n := range sizes {
			if f, ok := measured[n][name]; ok {
				command := "L"
				if path.Len() == 0 {
					command = "M"
				}
				fmt.Fprintf(&path, "%s%.1f %.1f", command, a.x(n), a.y(f.P50))
			}
		}
		fmt.Fprintf(&b, `<path class="%s" d="%s"/>`+"\n", class, path.String())
	}
	for _, n := range sizes {
		if f, ok := measured[n][names[0]]; ok {
			fmt.Fprintf(&b, `<circle class="dot" cx="%.1f" cy="%.1f" r="3"/>`, a.x(n), a.y(f.P50))
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d M</text>`+"\n", a.x(n), panelHeight-10, n)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%.1f">%s</text>`+"\n", panelWidth-right+6, a.y(worst.P50)+4, both(worst))
	return b.String()
}

// axes place figures: the number of tasks by its logarithm, time from 0 on.
type axes struct {
	first, last int
	highest     float64
}

func (a axes) x(n int) float64 {
	if a.first == a.last {
		return left
	}
	share := math.Log(float64(n)/float64(a.first)) / math.Log(float64(a.last)/float64(a.first))
	return left + 8 + share*(panelWidth-left-right-16)
}

func (a axes) y(v float64) float64 {
	return panelHeight - bottom - v/max(a.highest, 1e-9)*(panelHeight-top-bottom)
}
