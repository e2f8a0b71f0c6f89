package tables

import (
	"encoding/json"
	"time"

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

	// RelayLease is how long a relay may claim commands before it has to renew that; 0 where relays end with the only process.
	RelayLease time.Duration
	// beginRelay and renewRelay take a name, and the lease in µs if there is one.
	beginRelay, renewRelay string
	// doubtRelays marks relays whose lease has ended, endRelays removes those that were marked for a while, its argument in µs.
	doubtRelays, endRelays string

	// claimQueries are what claiming asks, for tests.
	claimQueries   func() []Query
	claim          func(t tx, relay string, now time.Time, limit, each int) (history.Claimed, error)
	recordOutcomes func(t tx, relay string, now time.Time, outcomes []history.Outcome) error
	addReplies     func(t tx, now time.Time, replies []history.CommandReplies) error
	// addCommands writes the commands of one request, and sets their IDs and RequestIDs.
	addCommands func(t tx, commands []history.Command) error

	// holdWriter keeps the process that saves tasks from doing so until the transaction ends, and has it read the rules for duplicates
	// anew then; none where one transaction writes at a time.
	holdWriter []string

	// addUpCounts adds up the numbers of commands by state if they are many; empty where each state has one.
	addUpCounts string

	addSnapshot string

	// newestAudit selects the highest number that a record ever had, nextAudit the one after it.
	newestAudit, nextAudit string
}

// relayLease is longer than sending one command may take.
const relayLease = 15 * time.Second

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
		beginRelay: `INSERT INTO relays (relay) VALUES (?)`,
		renewRelay: `UPDATE relays SET relay = relay WHERE relay = ?`,

		claimQueries: func() []Query {
			return []Query{
				{claimableGroups, []any{1, 2, 3}},
				{`SELECT command FROM outbox ` + firstOfGroup, []any{1, "a", 3}},
				{expireCommands, []any{1, 2}},
			}
		},
		claim: tx.claim, recordOutcomes: tx.recordOutcomes, addReplies: tx.addReplies, addCommands: tx.addCommands,

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
		RelayLease: relayLease,
		beginRelay: `INSERT INTO relays (relay, until) VALUES (?, clock_timestamp() + ? * interval '1 microsecond')`,
		renewRelay: `UPDATE relays SET until = clock_timestamp() + ?2 * interval '1 microsecond', doubted = NULL WHERE relay = ?1`,
		// After the database was away, all leases have ended: who is there still renews its own while the others doubt.
		doubtRelays: `UPDATE relays SET doubted = clock_timestamp() WHERE until < clock_timestamp() AND doubted IS NULL`,
		endRelays:   `DELETE FROM relays WHERE until < clock_timestamp() AND doubted < clock_timestamp() - ? * interval '1 microsecond'`,
		claimQueries: func() []Query {
			return []Query{{lockGroups, []any{1, 2, 3}}, {claimFirst, []any{1, 2, []string{"a"}, 3, "relay"}}}
		},
		claim: tx.claimBeside, recordOutcomes: tx.recordAllOutcomes, addReplies: tx.addAllReplies, addCommands: tx.addAllCommands,
		holdWriter: []string{
			`SELECT 1 FROM lease FOR UPDATE`, `UPDATE lease SET rules = rules + 1`,
		},
		addUpCounts: `WITH gone AS (DELETE FROM outbox_counts WHERE (SELECT count(*) FROM outbox_counts) > 1000 RETURNING state, commands)
			INSERT INTO outbox_counts (state, commands) SELECT state, sum(commands) FROM gone GROUP BY state`,
		addSnapshot: `INSERT INTO snapshots (at, clock, body) VALUES (?, ?, ?)
			ON CONFLICT (at) DO UPDATE SET clock = greatest(snapshots.clock, excluded.clock)`,
		newestAudit: `SELECT record FROM audit_end`,
		nextAudit:   `UPDATE audit_end SET record = record + 1 RETURNING record`,
	}
}
