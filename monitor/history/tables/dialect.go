package tables

import (
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/history"
)

// Dialect is what engines say differently.
type Dialect struct {
	// lockOutbox has transactions that add commands follow each other; empty where all that write do.
	lockOutbox string
	// forUpdate keeps others from changing the selected rows until the transaction ends; empty where nobody else writes.
	forUpdate string
	// anyOf returns a condition that follows a column, whose value is one of a list, with its argument.
	anyOf func(list []string) (condition string, arg any, err error)
	// taskStates counts the tasks that a request, its argument, has published, by state.
	taskStates string

	expireCommands  string
	claimableGroups string
	// firstOfGroup returns the first pending commands of a group, unless another transaction may claim them too.
	firstOfGroup func(t tx, group string, limit int) ([]history.Command, error)

	// addUpCounts adds up the numbers of commands by state if they are many; empty where each state has one.
	addUpCounts string

	addSnapshot string

	// newestAudit selects the highest number that a record ever had, nextAudit the one after it.
	newestAudit, nextAudit string
}

// SQLite returns the dialect of SQLite, where one transaction writes at a time.
func SQLite() Dialect {
	return Dialect{
		anyOf: func(list []string) (condition string, arg any, err error) {
			text, err := json.Marshal(list)
			return `IN (SELECT value FROM json_each(?))`, string(text), err
		},
		// An id that is a UUID in its usual form is stored as 16 bytes.
		taskStates: `SELECT text, count(*) FROM outbox AS o
			CROSS JOIN tasks ON tasks.id = iif(o.task LIKE '________-____-____-____-____________' AND o.task = lower(o.task), coalesce(unhex(o.task, '-'), o.task), o.task)
			CROSS JOIN symbols ON symbol = tasks.state WHERE first = ? AND kind = 'task' GROUP BY text`,
		expireCommands:  `UPDATE outbox INDEXED BY outbox_expiring SET ` + expire,
		claimableGroups: claimableGroups,
		firstOfGroup: func(t tx, group string, limit int) ([]history.Command, error) {
			return commandsOf(t.Context(), t.Tx, firstOfGroup, history.CommandSchema, group, limit)
		},
		addSnapshot: `INSERT INTO snapshots (at, clock, body) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET clock = max(clock, excluded.clock)`,
		newestAudit: `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit'`,
		nextAudit:   `SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'audit'`,
	}
}

// PostgreSQL returns the dialect of PostgreSQL, where several processes write at a time, each transaction READ COMMITTED.
func PostgreSQL() Dialect {
	return Dialect{
		lockOutbox: `SELECT record FROM audit_end FOR UPDATE`,
		forUpdate:  ` FOR UPDATE`,
		anyOf:      func(list []string) (condition string, arg any, err error) { return `= ANY(?)`, list, nil },
		taskStates: `SELECT tasks.state, count(*) FROM outbox AS o JOIN tasks ON tasks.id = o.task
			WHERE first = ? AND kind = 'task' GROUP BY tasks.state`,
		expireCommands:  `UPDATE outbox SET ` + expire,
		claimableGroups: lockedGroups,
		firstOfGroup:    lockFirstOfGroup,
		addUpCounts: `WITH gone AS (DELETE FROM outbox_counts WHERE (SELECT count(*) FROM outbox_counts) > 1000 RETURNING state, commands)
			INSERT INTO outbox_counts (state, commands) SELECT state, sum(commands) FROM gone GROUP BY state`,
		addSnapshot: `INSERT INTO snapshots (at, clock, body) VALUES (?, ?, ?)
			ON CONFLICT (at) DO UPDATE SET clock = greatest(snapshots.clock, excluded.clock)`,
		newestAudit: `SELECT record FROM audit_end`,
		nextAudit:   `UPDATE audit_end SET record = record + 1 RETURNING record`,
	}
}
