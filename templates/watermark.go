package templates

import (
	"strings"

	"github.com/umbelhq/umbel/monitor/view"
)

// watermarkTitle says what the watermark means, and which workers hold it back or are not covered.
func watermarkTitle(h view.Health) string {
	m := h.Watermark
	var text string
	switch {
	case !h.Broker.Connected:
		text = "What workers sent later has not been received: the broker is unavailable"
	case m.Behind:
		text = "Later events of " + m.Worker + " may still come"
	default:
		text = "What workers sent until then has been received, unless it is lost"
	}
	if !m.Bounded {
		text += ". Estimated: some of their clocks have no upper bound yet"
	}
	if m.Uncounted > 0 {
		text += ". Not covered, since they are stopping or two heartbeats have not come: " + strings.Join(m.UncountedNames, ", ")
		if more := m.Uncounted - len(m.UncountedNames); more > 0 {
			text += " and " + number(more) + " more"
		}
	}
	return text
}

// wholeSeconds is a duration of so many µs, without tenths of a second.
func wholeSeconds(micros int64) string {
	if s := (micros + 999_999) / 1_000_000; s < 60 {
		return unit(s, "s")
	}
	return duration(float64(micros) / 1e6)
}
