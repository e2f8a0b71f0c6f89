package tables

import "github.com/umbelhq/umbel/monitor/history"

const (
	// lockedGroups are claimable groups that no other transaction claims from. What is read of a group afterwards is what the
	// one that had it before has left. LATERAL keeps the planner from reading the whole table.
	lockedGroups = `SELECT grp FROM (` + openGroups + `
			SELECT groups.grp FROM groups CROSS JOIN LATERAL (
				SELECT command, due FROM outbox AS o WHERE schema = ?1 AND ` + open + ` AND o.grp = groups.grp AND state = 'pending'
				ORDER BY command LIMIT 1) AS waiting
			WHERE due <= ?2 AND ` + noneInFlight + ` ORDER BY command LIMIT ?3) AS claimable
		WHERE pg_try_advisory_xact_lock(hashtextextended(grp, 'outbox'::regclass::oid::bigint))`

	// stillClaimable chooses the first pending commands of a group that has none in flight.
	stillClaimable = `SELECT command FROM outbox WHERE schema = ?1 AND ` + open + ` AND grp = ?2 AND state = 'pending' AND NOT EXISTS (
			SELECT 1 FROM outbox AS o WHERE schema = ?1 AND ` + open + ` AND o.grp = ?2 AND state = 'in_flight')
		ORDER BY command LIMIT ?3`
)

// lockFirstOfGroup returns the first pending commands of a group that the transaction has locked, up to one that somebody is about
// to discard: it waits for nobody.
func lockFirstOfGroup(t tx, group string, limit int) ([]history.Command, error) {
	ids, err := List[int64](t.Context(), t.Tx, stillClaimable, history.CommandSchema, group, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	found, err := commandsOf(t.Context(), t.Tx, `WHERE command = ANY(?) AND state = 'pending'
		ORDER BY command FOR UPDATE OF outbox SKIP LOCKED`, ids)
	for i := range found {
		if found[i].ID != ids[i] {
			return found[:i], err
		}
	}
	return found, err
}
