package templates

import "github.com/umbelhq/umbel/monitor/flow"

func flowClass(l flow.Level) string {
	switch l {
	case flow.Degraded:
		return "notice-warn"
	case flow.Stuck:
		return "notice-bad"
	case flow.Flowing:
		return "notice-good"
	case flow.Unknown:
	}
	return ""
}

func flowIcon(l flow.Level) string {
	switch l {
	case flow.Degraded:
		return "triangle-alert"
	case flow.Stuck:
		return "circle-x"
	case flow.Flowing:
		return "circle-check"
	case flow.Unknown:
	}
	return "circle-dashed"
}
