package outbox

import (
	"context"

	"github.com/umbelhq/umbel/monitor/store"
)

// Wait returns the commands as they are once all are final, or ctx has ended. Its error is the store's.
func (r *Relay) Wait(ctx context.Context, ids []int64) ([]store.Command, error) {
	read := context.WithoutCancel(ctx)
	for next := 0; next < len(ids); { // all before next are final
		changed := r.Changed()
		for ; next < len(ids); next++ {
			c, err := r.o.Store.Command(read, ids[next])
			if err != nil {
				return nil, err
			}
			if !c.State.Final() {
				break
			}
		}
		if next == len(ids) {
			break
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		}
		break
	}
	commands := make([]store.Command, len(ids))
	for i, id := range ids {
		var err error
		if commands[i], err = r.o.Store.Command(read, id); err != nil {
			return nil, err
		}
	}
	return commands, nil
}
