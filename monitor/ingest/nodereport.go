package ingest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// NodesHealth is how the processes that share the history are doing.
type NodesHealth struct {
	Nodes  []history.Node // by name; none if no other process may have the history open
	Notice string         // a problem, and what to do about it
}

// Leads reports whether this process leads, and since when.
func (h NodesHealth) Leads() (since time.Time, leads bool) {
	for _, n := range h.Nodes {
		if n.Self && n.Leads {
			return n.Since, true
		}
	}
	return time.Time{}, false
}

// report tells the other nodes each second how this one is doing, until ctx ends.
func (in *Ingester) report(ctx context.Context) error {
	if in.shared == nil {
		return nil
	}
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		in.reportOnce(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (in *Ingester) reportOnce(ctx context.Context) {
	connected, away := in.brokerAway()
	nodes, ahead, err := in.shared.Report(ctx, history.NodeReport{Connected: connected, Lag: in.lag()})
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		in.setNodes(NodesHealth{Nodes: in.nodes().Nodes, Notice: err.Error() + "."})
		return
	}
	h := NodesHealth{Nodes: nodes}
	if ahead.Abs() > maxClockDiff {
		h.Notice = fmt.Sprintf("The clock of the database and that of this host differ by %v: set one of them right.", ahead.Abs().Round(time.Second))
	}
	in.setNodes(h)
	if in.Leads() && away > maxAway && othersConnected(nodes) {
		in.log.Warn("the broker is away: another node may lead")
		if err := in.shared.GiveUp(ctx); err != nil {
			in.log.Error("still leads", "error", err)
		}
	}
}

// brokerAway reports whether the broker is connected, and for how long it is not.
func (in *Ingester) brokerAway() (connected bool, away time.Duration) {
	in.healthMu.Lock()
	defer in.healthMu.Unlock()
	if in.brokerHealth.Connected {
		return true, 0
	}
	return false, in.now().Sub(in.brokerHealth.Since)
}

func othersConnected(nodes []history.Node) bool {
	for _, n := range nodes {
		if !n.Self && n.Connected && n.Running() {
			return true
		}
	}
	return false
}

// eligible reports whether this node should lead if no other does: one without a broker leaves that to those that have it.
func (in *Ingester) eligible() bool {
	connected, _ := in.brokerAway()
	return connected || !othersConnected(in.nodes().Nodes)
}

// lag is how long the oldest event has waited to be written.
func (in *Ingester) lag() time.Duration {
	in.mu.RLock()
	defer in.mu.RUnlock()
	oldest := in.pending.oldest
	if oldest.IsZero() {
		oldest = in.pending.since
	}
	if oldest.IsZero() {
		return 0
	}
	return max(in.now().Sub(oldest), 0)
}

func (in *Ingester) nodes() NodesHealth {
	in.healthMu.Lock()
	defer in.healthMu.Unlock()
	return in.nodesHealth
}

func (in *Ingester) setNodes(h NodesHealth) {
	in.healthMu.Lock()
	old := in.nodesHealth
	in.nodesHealth = h
	in.healthMu.Unlock()
	if h.Notice != "" && h.Notice != old.Notice {
		in.log.Warn(h.Notice) //nolint:sloglint // the notice is the message, as on the pages
	}
	if h.Notice != old.Notice || !slices.EqualFunc(h.Nodes, old.Nodes, func(a, b history.Node) bool {
		return a.Name == b.Name && a.Leads == b.Leads && a.Connected == b.Connected && a.Running() == b.Running()
	}) {
		in.Notify()
	}
}
