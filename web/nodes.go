package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/monitor/view"
)

// nodesText says in a line for each of the Umbels that share a history who leads, empty if none is shared.
func nodesText(h view.NodesHealth) string {
	var b strings.Builder
	for _, n := range h.Nodes {
		part := "follows"
		switch {
		case !n.Running():
			part = "is away"
		case n.Leads:
			part = "leads"
		}
		fmt.Fprintf(&b, "%s %s since %s, lag %.1f s\n", n.Name, part, n.Since.UTC().Format(time.RFC3339), n.Lag.Seconds())
	}
	return b.String()
}

// nodes writes who leads: this one, if the history is not shared.
func (s *scrape) nodes(h view.NodesHealth) {
	running := 0
	for _, n := range h.Nodes {
		if n.Running() {
			running++
		}
	}
	_, leads := h.Leads()
	if len(h.Nodes) == 0 {
		running, leads = 1, true
	}
	s.gauge("umbel_history_leader", "1 if this Umbel writes the history.", truth(leads))
	s.gauge("umbel_nodes", "Umbels that share the history and are running.", float64(running))
	s.Family(prometheus.Gauge, "umbel_node_lag_seconds", "How long the oldest event that a node has received has waited to be written.")
	for _, n := range h.Nodes {
		if n.Running() {
			s.Add(n.Lag.Seconds(), "node", n.Name)
		}
	}
}
