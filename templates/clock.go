package templates

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// Size of a chart of offsets in its own units.
const (
	offsetWidth  = 1000
	offsetHeight = 120
)

// offsetWords says how far a clock is off, both bounds: 0.42–0.47 s behind.
func offsetWords(o state.ClockOffset) string {
	low, high := float64(o.Low)/1e6, float64(o.High)/1e6
	switch {
	case o.Closed() && o.Low > 0:
		return timeSpan(low, high) + " ahead"
	case o.Closed() && o.High < 0:
		return timeSpan(-high, -low) + " behind"
	case o.Closed():
		return "within " + roundedUp(max(-low, high))
	case o.Low > 0:
		return "at least " + roundedDown(low) + " ahead"
	case o.Low != state.OpenLow:
		return "at most " + roundedUp(-low) + " behind"
	case o.High < 0:
		return "at least " + roundedDown(-high) + " behind"
	default:
		return "at most " + roundedUp(high) + " ahead"
	}
}

// timeSpan writes a range of seconds, rounded apart: 3.1–3.6 s, or one duration if both ends are written alike.
func timeSpan(low, high float64) string {
	if a, b := duration(low), duration(high); a == b {
		return a
	} else if low >= 60 && high-low >= 1 {
		return roundedDown(low) + "–" + roundedUp(high)
	}
	if high < 0.1 {
		return grouped(math.Floor(low*1e3), 0) + "–" + grouped(math.Ceil(high*1e3), 0) + thin + "ms"
	}
	digits := 3
	for _, width := range []float64{0.004, 0.04, 4} {
		if high-low >= width {
			digits--
		}
	}
	unit := math.Pow10(digits)
	return grouped(math.Floor(low*unit)/unit, digits) + "–" + grouped(math.Ceil(high*unit)/unit, digits) + thin + "s"
}

// grouped writes a number that is not negative with so many digits after the point.
func grouped(f float64, digits int) string {
	whole, rest, _ := strings.Cut(strconv.FormatFloat(f, 'f', digits, 64), ".")
	n, _ := strconv.ParseInt(whole, 10, 64)
	if rest == "" {
		return number(n)
	}
	return number(n) + "." + rest
}

// roundedUp and roundedDown write a duration that is rounded up, or down.
func roundedUp(seconds float64) string {
	if step := roundingStep(seconds); step > 0 {
		return duration(math.Ceil(seconds/step-1e-9) * step)
	}
	return duration(seconds)
}

func roundedDown(seconds float64) string {
	if step := roundingStep(seconds); step > 0 {
		return duration(math.Floor(seconds/step+1e-9) * step)
	}
	return duration(seconds)
}

// roundingStep is what duration rounds to, seconds, 0 below a millisecond.
func roundingStep(seconds float64) float64 {
	switch {
	case seconds < 0.001:
		return 0
	case seconds < 0.999:
		return 0.001
	case seconds < 9.9:
		return 0.1
	case seconds < 3600:
		return 1
	case seconds < 86400:
		return 60
	}
	return 3600
}

// offsetBrief is offsetWords for a row of a table, which is not to change all the time.
func offsetBrief(o state.ClockOffset) string {
	if o.Closed() && o.Contains(0) {
		for _, within := range []int64{100_000, 1_000_000} {
			if o.Low >= -within && o.High <= within {
				return "within " + duration(float64(within)/1e6)
			}
		}
	}
	return offsetWords(o)
}

// offsetChart is the chart of a history of offsets, drawn as bands between the bounds.
type offsetChart struct {
	points      []state.OffsetPoint
	low, high   int64 // of the scale, µs
	first, last int64 // µs
}

func newOffsetChart(points []state.OffsetPoint) (c offsetChart, ok bool) {
	c = offsetChart{points: points, low: math.MaxInt64, high: math.MinInt64}
	if len(points) < 2 {
		return c, false
	}
	c.first, c.last = points[0].At, points[len(points)-1].At
	for _, p := range points {
		for _, end := range []int64{p.Offset.Low, p.Offset.High} {
			if end != state.OpenLow && end != state.OpenHigh {
				c.low, c.high = min(c.low, end), max(c.high, end)
			}
		}
	}
	return c, c.last > c.first && c.high > c.low
}

func (c offsetChart) box() string { return fmt.Sprintf("0 0 %d %d", offsetWidth, offsetHeight) }

func (c offsetChart) x(at int64) float64 {
	return offsetWidth * float64(at-c.first) / float64(c.last-c.first)
}

// y is the height of an offset. Open ends are at the edge.
func (c offsetChart) y(micros int64) float64 {
	switch micros {
	case state.OpenLow:
		return offsetHeight
	case state.OpenHigh:
		return 0
	}
	const margin = 6
	return margin + (offsetHeight-2*margin)*(1-float64(micros-c.low)/float64(c.high-c.low))
}

// bands are paths of the spans in which the bounds hold together; open ones are those without one of the bounds.
func (c offsetChart) bands(open bool) string {
	var b strings.Builder
	for i := 1; i < len(c.points); i++ {
		p, q := c.points[i-1], c.points[i]
		if q.Begins != 0 || (p.Offset.Closed() && q.Offset.Closed()) == open || !p.Offset.Known() || !q.Offset.Known() {
			continue
		}
		fmt.Fprintf(&b, "M%.1f %.1fL%.1f %.1fV%.1fL%.1f %.1fz", c.x(p.At), c.y(p.Offset.High), c.x(q.At), c.y(q.Offset.High),
			c.y(q.Offset.Low), c.x(p.At), c.y(p.Offset.Low))
	}
	return b.String()
}

// marks are lines where the clock was set.
func (c offsetChart) marks() string {
	var b strings.Builder
	for _, p := range c.points {
		if p.ClockSet() {
			fmt.Fprintf(&b, "M%.1f 0V%d", c.x(p.At), offsetHeight)
		}
	}
	return b.String()
}

// signed writes an offset as seconds with a sign.
func signed(micros int64) string {
	s := float64(micros) / 1e6
	sign := "+"
	if s < 0 {
		sign, s = "−", -s
	}
	return sign + grouped(s, 3) + thin + "s"
}

// offsetEnd writes a bound, or that there is none.
func offsetEnd(micros int64) string {
	if micros == state.OpenLow || micros == state.OpenHigh {
		return "—"
	}
	return signed(micros)
}

// offsetEvent says what happened to a clock before a point.
func offsetEvent(p state.OffsetPoint) string {
	switch {
	case p.ClockSet():
		return "clock set"
	case p.Restarted():
		return "worker restarted"
	}
	return ""
}
