package dashboard

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
)

// listen has pages, and the relay, follow what other processes write to the history, until ctx ends.
func (d *Dashboard) listen(ctx context.Context) error {
	n, ok := d.history.(history.Notifier)
	if !ok || d.commands.Relay == nil {
		return nil
	}
	return n.Listen(ctx, d.commands.Relay.Wake)
}
