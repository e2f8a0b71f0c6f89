package tables

import "github.com/umbelhq/umbel/monitor/workflow"

// AndStatus continues a condition on workflows: it selects those of a workflow.Summary.Status, by an index where few have it.
func AndStatus(s workflow.Status) string {
	switch s {
	case workflow.Running:
		return ` AND ended < tasks`
	case workflow.Failed:
		return ` AND failed > 0 AND ended = tasks`
	case workflow.Lost:
		return ` AND lost > 0 AND failed = 0 AND ended = tasks`
	case workflow.Succeeded:
		return ` AND ended = tasks AND failed = 0 AND lost = 0`
	}
	return ``
}
