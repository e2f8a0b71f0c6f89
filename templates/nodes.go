package templates

import (
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
)

// nodePart is what one of the Umbels that share a history does.
func nodePart(n history.Node) string {
	switch {
	case !n.Running():
		return "away"
	case n.Leads:
		return "leads"
	}
	return "follows"
}

// nodeLag is how long events of a node wait to be written.
func nodeLag(n history.Node) string { return fmt.Sprintf("%.1f s", n.Lag.Seconds()) }
