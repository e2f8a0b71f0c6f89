package dashboard

import (
	"cmp"

	"github.com/umbelhq/umbel/monitor/alert"
)

// nodeQueue returns the queue of events on RabbitMQ. Each of the nodes that share a history has one of its own, which keeps
// what it misses while it is away.
func nodeQueue(o Options) string {
	if o.Node == "" || o.History == "" {
		return o.Queue
	}
	return cmp.Or(o.Queue, "umbel") + "." + o.Node
}

// takeRecord returns the record of the last minute, nil unless this node leads: it judges for all.
func (d *Dashboard) takeRecord() *alert.Record {
	if r := d.ingester.TakeRecord(); d.ingester.Leads() {
		return r
	}
	return nil
}
