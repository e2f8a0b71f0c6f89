package tables

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Claim implements history.Outbox.
func (d Store) Claim(ctx context.Context, relay string, now time.Time, limit, each int) (c history.Claimed, err error) {
	defer d.engine.Annotate(&err, "claim commands")
	waiting, err := List[bool](ctx, d.engine.Reader(), `SELECT EXISTS (SELECT 1 FROM outbox WHERE state = 'pending')`)
	if err != nil {
		return history.Claimed{}, err
	}
	if !waiting[0] {
		return history.Claimed{}, nil // without keeping others from writing
	}
	err = d.update(ctx, func(t tx) (err error) {
		c, err = t.Dialect().claim(t, relay, now, limit, each)
		return err
	})
	if err != nil {
		return history.Claimed{}, err
	}
	return c, nil
}

const (
	expireCommands = `UPDATE outbox INDEXED BY outbox_expiring SET state = 'expired', done = ?1
		WHERE state = 'pending' AND expires IS NOT NULL AND expires <= ?1 AND schema = ?2`

	// open is what outbox_open is an index of, in the words that an engine knows it by.
	open = `state IN ('in_flight', 'pending')`

	// openGroups has the groups with commands that are open. It takes a look into the index for each group, however many commands
	// there are.
	openGroups = `WITH RECURSIVE groups (grp) AS (
			SELECT min(grp) FROM outbox WHERE schema = ?1 AND ` + open + `
			UNION ALL
			SELECT (SELECT min(grp) FROM outbox WHERE schema = ?1 AND ` + open + ` AND grp > groups.grp)
			FROM groups WHERE grp IS NOT NULL
		)`

	// noneInFlight is a condition on groups.
	noneInFlight = `NOT EXISTS (
			SELECT 1 FROM outbox AS o WHERE schema = ?1 AND ` + open + ` AND o.grp = groups.grp AND state = 'in_flight')`

	// claimableGroups has the groups whose first command may be claimed, the one that waits longest first. It takes a few
	// more looks for each group (CROSS JOIN says where to begin).
	claimableGroups = openGroups + `
		SELECT groups.grp FROM groups CROSS JOIN outbox WHERE command = (
			SELECT min(command) FROM outbox AS o
			WHERE schema = ?1 AND ` + open + ` AND o.grp = groups.grp AND state = 'pending')
		AND due <= ?2 AND ` + noneInFlight + ` ORDER BY command LIMIT ?3`

	// firstOfGroup chooses the first pending commands of a group.
	firstOfGroup = `WHERE schema = ? AND ` + open + ` AND grp = ? AND state = 'pending' ORDER BY command LIMIT ?`
)

// claim claims where nobody else writes.
func (t tx) claim(relay string, now time.Time, limit, each int) (c history.Claimed, err error) {
	at := now.UnixMicro()
	expired, err := t.Change(expireCommands, at, history.CommandSchema)
	if err != nil {
		return c, err
	}
	c.Expired = expired
	groups, err := List[string](t.Context(), t.Tx, claimableGroups, history.CommandSchema, at, limit)
	if err != nil {
		return c, err
	}
	for i, group := range groups {
		share := (limit - len(c.Commands)) / (len(groups) - i)
		some, err := t.claimGroup(relay, group, now, min(share, each))
		if err != nil {
			return c, err
		}
		c.Commands = append(c.Commands, some...)
	}
	return c, nil
}

// claimGroup claims the first commands of a group, up to one that is not due.
func (t tx) claimGroup(relay, group string, now time.Time, limit int) ([]history.Command, error) {
	found, err := commandsOf(t.Context(), t.Tx, firstOfGroup, history.CommandSchema, group, limit)
	if err != nil {
		return nil, err
	}
	for i := range found {
		c := &found[i]
		if c.DueAt.After(now) {
			return found[:i], nil
		}
		c.State, c.ClaimedAt = history.CommandInFlight, time.UnixMicro(now.UnixMicro())
		err := t.Exec(`UPDATE outbox SET state = 'in_flight', claimed = ?, relay = ? WHERE command = ?`, now.UnixMicro(), relay, c.ID)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
