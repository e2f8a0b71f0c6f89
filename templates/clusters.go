package templates

import (
	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/flow"
)

// Clusters is the content of the overview of several clusters.
type Clusters struct{ Clusters []Cluster }

// Cluster is what the overview says of one.
type Cluster struct {
	Name, Href  string
	Unavailable string // why nothing is known, in a sentence; empty if it is
	Flow        flow.Verdict
	Ready       bool // the history is restored
	Connected   bool
	Broker      string   // address, without password
	Rate        float64  // tasks that end in a second
	Failed      *float64 // share of those that ended in the last ten minutes; nil if none did
	Online      int      // workers
	Backlog     *int64   // messages that wait; nil if it is not known
}

// Page draws the whole page.
func (v Clusters) Page(l Layout) templ.Component { return clusters(l, v) }

func (c *Cluster) level() flow.Level {
	if c.Unavailable != "" {
		return flow.Stuck
	}
	return c.Flow.Level
}

func (c *Cluster) failed() string {
	if c.Failed == nil {
		return "–"
	}
	return percent(*c.Failed, 1)
}

func (c *Cluster) backlog() string {
	if c.Backlog == nil {
		return "–"
	}
	return number(*c.Backlog)
}
