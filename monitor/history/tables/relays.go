package tables

import (
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// BeginRelay implements history.Outbox.
func (d Store) BeginRelay(ctx context.Context, relay string) (time.Duration, error) {
	lease := d.engine.Dialect().RelayLease
	return lease, d.change(ctx, "begin to send commands", func(t tx) error {
		return t.Exec(t.Dialect().beginRelay, relayArguments(relay, lease)...)
	})
}

// RenewRelay implements history.Outbox.
func (d Store) RenewRelay(ctx context.Context, relay string) error {
	return d.change(ctx, "go on to send commands", func(t tx) error {
		n, err := t.Change(t.Dialect().renewRelay, relayArguments(relay, t.Dialect().RelayLease)...)
		if n == 0 && err == nil {
			err = history.ErrNotFound
		}
		return err
	})
}

func relayArguments(relay string, lease time.Duration) []any {
	if lease == 0 {
		return []any{relay}
	}
	return []any{relay, lease.Microseconds()}
}

// EndRelay implements history.Outbox.
func (d Store) EndRelay(ctx context.Context, relay string) error {
	return d.change(ctx, "end sending commands", func(t tx) error { return t.Exec(`DELETE FROM relays WHERE relay = ?`, relay) })
}

// ForgetRelays removes those of an earlier process, where only one uses the database.
func (d Store) ForgetRelays(ctx context.Context) error {
	return d.update(ctx, func(t tx) error { return t.Exec(`DELETE FROM relays`) })
}

// graceOfRelays is the part of a lease that passes between the first sight that it has ended, and the end of the relay.
const graceOfRelays = 5

const (
	// goneRelays are those that others than ?1 have left commands of. They never come back.
	goneRelays = `SELECT DISTINCT relay FROM outbox WHERE state IN ('in_flight', 'sent') AND relay <> ?1 AND relay NOT IN (SELECT relay FROM relays)`

	leftCommands = `SELECT command FROM outbox WHERE state = 'in_flight' AND schema = ? AND relay = ?`
)

// Reclaim implements history.Outbox.
func (d Store) Reclaim(ctx context.Context, relay string, now, before time.Time, except []int64) (r history.Reclaimed, err error) {
	err = d.change(ctx, "reclaim commands", func(t tx) error {
		r = history.Reclaimed{}
		if err := t.endRelays(); err != nil {
			return err
		}
		gone, err := List[string](t.Context(), t.Tx, goneRelays, relay)
		if err != nil {
			return err
		}
		mine, err := List[int64](t.Context(), t.Tx, leftCommands+` AND claimed < ?`, history.CommandSchema, relay, before.UnixMicro())
		if err != nil {
			return err
		}
		mine = slices.DeleteFunc(mine, func(id int64) bool { return slices.Contains(except, id) })
		if err := t.putBack(relay, mine, &r); err != nil {
			return err
		}
		for _, other := range gone {
			if err := t.takeBack(other, now, &r); err != nil {
				return err
			}
		}
		if add := t.Dialect().addUpCounts; add != "" {
			return t.Exec(add)
		}
		return nil
	})
	if err != nil {
		return history.Reclaimed{}, err
	}
	return r, nil
}

// takeBack ends what a relay that is gone has begun.
func (t tx) takeBack(relay string, now time.Time, r *history.Reclaimed) error {
	left, err := List[int64](t.Context(), t.Tx, leftCommands, history.CommandSchema, relay)
	if err == nil {
		err = t.putBack(relay, left, r)
	}
	if err != nil {
		return err
	}
	n, err := t.Change(`UPDATE outbox SET state = 'no_reply', done = ? WHERE state = 'sent' AND relay = ?`, now.UnixMicro(), relay)
	r.Unanswered += n
	return err
}

// putBack makes commands pending that are in flight for a relay.
func (t tx) putBack(relay string, ids []int64, r *history.Reclaimed) error {
	for _, id := range ids {
		n, err := t.Change(`UPDATE outbox SET state = 'pending', claimed = NULL WHERE command = ? AND state = 'in_flight' AND relay = ?`, id, relay)
		if err != nil {
			return err
		}
		r.Pending += n
	}
	return nil
}

// endRelays removes those whose lease has ended for a while.
func (t tx) endRelays() error {
	d := t.Dialect()
	if d.RelayLease == 0 {
		return nil
	}
	if err := t.Exec(d.endRelays, (d.RelayLease / graceOfRelays).Microseconds()); err != nil {
		return err
	}
	return t.Exec(d.doubtRelays)
}
