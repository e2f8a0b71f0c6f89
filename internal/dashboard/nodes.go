package dashboard

import (
	"cmp"
	"strings"

	"github.com/umbelhq/umbel/monitor/alert"
)

// nodeQueue returns the queue of events. Each of the nodes that share a history has one of its own, which keeps what it misses while it
// is away.
func nodeQueue(o Options) string {
	if o.Node == "" || o.History == "" || !strings.HasPrefix(strings.TrimLeft(strings.ToLower(o.BrokerURL), " "), "amqp") &&
		!strings.HasPrefix(strings.ToLower(o.BrokerURL), "pyamqp") {
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
