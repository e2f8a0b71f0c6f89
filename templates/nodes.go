package templates

import (
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
)

// nodeLag is how long events of a node wait to be written.
func nodeLag(n history.Node) string { return fmt.Sprintf("%.1f", n.Lag.Seconds()) + thin + "s" }
