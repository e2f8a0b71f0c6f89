package history

import "time"

// Node is one of the Umbels that share a history, as it has reported within the last day.
type Node struct {
	Name      string
	Process   string // its number and its host, such as: process 812 on watch-1
	Self      bool   // it is this process
	Leads     bool
	Since     time.Time     // when it began to lead or to follow
	Silent    time.Duration // since its last report
	Connected bool          // to the broker
	Lag       time.Duration // how long the oldest event that it has received has waited to be written
}

// NodeReport is what a node reports each second.
type NodeReport struct {
	Connected bool
	Lag       time.Duration
}

// NodeRequest is what a node that follows asks of the one that leads.
type NodeRequest struct {
	Number int64
	Events []byte // to fold (state.AppendEvent), nil if a person has judged a task

	Task    string // that a person has judged
	Dismiss bool   // else it is reinstated
	Who     string // may be empty
}

// MaxNodeSilence is how long a node may be silent and still count as running.
const MaxNodeSilence = 5 * time.Second

// Running reports whether the node has reported lately.
func (n Node) Running() bool { return n.Silent < MaxNodeSilence }
