package dashboard

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
)

// listen has pages, the relay and the node that leads follow what other processes write to the history, until ctx ends.
func (d *Dashboard) listen(ctx context.Context) error {
	n, ok := d.history.(history.Notifier)
	if !ok {
		return nil
	}
	return n.Listen(ctx, func() {
		d.ingester.WakeRequests()
		if d.commands.Relay != nil {
			d.commands.Relay.Wake()
		}
	})
}
