package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
)

// Claim implements store.Outbox.
func (d *DB) Claim(ctx context.Context, now time.Time, limit, each int) (store.Claimed, error) {
	waiting, err := list[bool](ctx, d.read, `SELECT EXISTS (SELECT 1 FROM outbox WHERE state = 'pending')`)
	if err != nil {
		return store.Claimed{}, wrap("claim commands", explain(err))
	}
	if !waiting[0] {
		return store.Claimed{}, nil // without keeping others from writing
	}
	var c store.Claimed
	err = d.change(ctx, "claim commands", func(t *tx) (err error) {
		c, err = t.claim(now, limit, each)
		return err
	})
	if err != nil {
		return store.Claimed{}, err
	}
	return c, nil
}

func (t *tx) claim(now time.Time, limit, each int) (c store.Claimed, err error) {
	at := now.UnixMicro()
	expired, err := t.affected(`UPDATE outbox SET state = 'expired', done = ?1
		WHERE state = 'pending' AND expires IS NOT NULL AND expires <= ?1 AND schema = ?2`, at, store.CommandSchema)
	if err != nil {
		return c, err
	}
	c.Expired = int(expired)
	// One look into the index for each group, however many commands it holds.
	groups, err := list[string](t.ctx, t, `
		WITH RECURSIVE groups (grp) AS (
			SELECT min(grp) FROM outbox WHERE schema = ?1 AND state IN ('in_flight', 'pending')
			UNION ALL
			SELECT (SELECT min(grp) FROM outbox WHERE schema = ?1 AND state IN ('in_flight', 'pending') AND grp > groups.grp)
			FROM groups WHERE grp IS NOT NULL
		)
		SELECT groups.grp FROM groups JOIN outbox ON command = (
			SELECT command FROM outbox AS o WHERE schema = ?1 AND state IN ('in_flight', 'pending') AND o.grp = groups.grp
			ORDER BY state, command LIMIT 1)
		WHERE state = 'pending' AND due <= ?2 ORDER BY command LIMIT ?3`, store.CommandSchema, at, limit)
	if err != nil {
		return c, err
	}
	for i, group := range groups {
		share := (limit - len(c.Commands)) / (len(groups) - i)
		some, err := t.claimGroup(group, now, min(share, each))
		if err != nil {
			return c, err
		}
		c.Commands = append(c.Commands, some...)
	}
	return c, nil
}

// claimGroup claims the first commands of a group, up to one that is not due.
func (t *tx) claimGroup(group string, now time.Time, limit int) ([]store.Command, error) {
	found, err := commandsOf(t.ctx, t, `WHERE schema = ? AND grp = ? AND state = 'pending' ORDER BY command LIMIT ?`,
		store.CommandSchema, group, limit)
	if err != nil {
		return nil, err
	}
	for i := range found {
		c := &found[i]
		if c.DueAt.After(now) {
			return found[:i], nil
		}
		c.State, c.ClaimedAt = store.CommandInFlight, time.UnixMicro(now.UnixMicro())
		err := t.exec(`UPDATE outbox SET state = 'in_flight', claimed = ? WHERE command = ?`, now.UnixMicro(), c.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Reclaim implements store.Outbox.
func (d *DB) Reclaim(ctx context.Context, before time.Time, held []int64) (int, error) {
	n := 0
	err := d.change(ctx, "reclaim commands", func(t *tx) error {
		stale, err := list[int64](t.ctx, t, `SELECT command FROM outbox
			WHERE state = 'in_flight' AND claimed < ? AND schema = ?`, before.UnixMicro(), store.CommandSchema)
		for _, id := range stale {
			if slices.Contains(held, id) || err != nil {
				continue
			}
			n++
			err = t.exec(`UPDATE outbox SET state = 'pending', claimed = NULL WHERE command = ?`, id)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
