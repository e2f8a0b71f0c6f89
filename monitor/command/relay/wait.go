package relay

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
)

// Wait waits until all commands are final or ctx ends, and returns them. Its error is of the store.
func (r *Relay) Wait(ctx context.Context, ids []int64) ([]history.Command, error) {
	read := context.WithoutCancel(ctx)
	for final, over := 0, false; !over; { // number of leading commands that are final
		changed := r.Changed()
		n, err := r.final(read, ids[final:])
		if err != nil {
			return nil, err
		}
		if final += n; final == len(ids) {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			over = true
		}
	}
	commands := make([]history.Command, len(ids))
	for i, id := range ids {
		var err error
		if commands[i], err = r.o.Store.Command(read, id); err != nil {
			return nil, err
		}
	}
	return commands, nil
}

// final returns how many leading commands are final.
func (r *Relay) final(ctx context.Context, ids []int64) (int, error) {
	for i, id := range ids {
		c, err := r.o.Store.Command(ctx, id)
		if err != nil || !c.State.Final() {
			return i, err
		}
	}
	return len(ids), nil
}
