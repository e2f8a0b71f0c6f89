package templates

import (
	"time"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Clusters is the content of the overview of several clusters.
type Clusters struct{ Clusters []Cluster }

// ClusterTasks are the newest tasks of all clusters that a query finds.
type ClusterTasks struct {
	Text     string // of the query
	Error    *QueryError
	Problems []string // sentences about clusters that could not be searched
	Tasks    []ClusterTask
	Limit    int // of Tasks
	Matches  []ClusterMatches
}

// ClusterMatches says how many tasks of a cluster a query matches.
type ClusterMatches struct {
	Cluster string
	Href    string         // of those tasks, in the cluster
	Count   *history.Count // nil if it is not known
}

func (m ClusterMatches) number() string {
	if m.Count.Exact {
		return number(m.Count.N)
	}
	return number(m.Count.N) + "+"
}

// ClusterTask is a task with its cluster, and the addresses there.
type ClusterTask struct {
	state.Task

	Cluster string
	URLs    URLs
}

// Page draws the whole page.
func (v ClusterTasks) Page(l Layout) templ.Component { return clusterTasks(l, v) }

// Cluster is what the overview says of one.
type Cluster struct {
	Name, Href  string
	Unavailable string // why nothing is known, in a sentence; empty if it is
	Flow        flow.Verdict
	Ready       bool // the history is restored
	Connected   bool
	Broker      string    // address, without password
	Rate        float64   // tasks that end in a second
	Failed      *float64  // share of those that ended in the last ten minutes; nil if none did
	Online      int       // workers
	Remote      string    // URL of the other Umbel that watches it, empty if this one does
	SeenAt      time.Time // when that one has last answered
	Backlog     *int64    // messages that wait; nil if it is not known
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
