package tables

import (
	"cmp"
	"database/sql"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Where others write too, and each statement costs a round trip, all of a call takes a statement or two, with lists in arrays.

const (
	// lockGroups lets commands expire, and locks claimable groups that no other transaction claims from. Its first row has the number
	// of those that have expired. LATERAL keeps the planner from reading the whole table.
	lockGroups = openGroups + `, expired AS (
			UPDATE outbox SET state = 'expired', done = ?2
			WHERE state = 'pending' AND expires IS NOT NULL AND expires <= ?2 AND schema = ?1 RETURNING command
		), claimable AS (
			SELECT groups.grp, command FROM groups CROSS JOIN LATERAL (
				SELECT command, due FROM outbox AS o WHERE schema = ?1 AND ` + open + ` AND o.grp = groups.grp AND state = 'pending'
				AND (expires IS NULL OR expires > ?2) ORDER BY command LIMIT 1) AS waiting
			WHERE due <= ?2 AND ` + noneInFlight + ` ORDER BY command LIMIT ?3
		)
		SELECT grp, 0 FROM (
			SELECT grp, command FROM claimable WHERE pg_try_advisory_xact_lock(hashtextextended(grp, 'outbox'::regclass::oid::bigint))
		) AS locked
		UNION ALL SELECT NULL, count(*) FROM expired`

	// claimFirst claims the first ?4 commands of each of the locked groups ?3 for the relay ?5, up to one that is not due, or that
	// somebody is about to discard: it waits for nobody. Begun after the groups were locked, it sees what those have left that had
	// them before.
	claimFirst = `WITH waiting AS (
			SELECT g.grp, command, due FROM unnest(?3::text[]) AS g (grp) CROSS JOIN LATERAL (
				SELECT command, due FROM outbox AS o WHERE schema = ?1 AND ` + open + ` AND o.grp = g.grp AND state = 'pending'
				ORDER BY command LIMIT ?4) AS first
			WHERE NOT EXISTS (SELECT 1 FROM outbox AS o WHERE schema = ?1 AND ` + open + ` AND o.grp = g.grp AND state = 'in_flight')
		), free AS (
			SELECT command FROM outbox WHERE command IN (SELECT command FROM waiting) AND state = 'pending' AND due <= ?2
			FOR UPDATE SKIP LOCKED
		), stop AS (
			SELECT grp, min(command) AS command FROM waiting WHERE command NOT IN (SELECT command FROM free) GROUP BY grp
		)
		UPDATE outbox SET state = 'in_flight', claimed = ?2, relay = ?5 WHERE command IN (
			SELECT waiting.command FROM waiting LEFT JOIN stop USING (grp) WHERE stop.command IS NULL OR waiting.command < stop.command)
		RETURNING ` + CommandColumns
)

// claimBeside claims where others claim too.
func (t tx) claimBeside(relay string, now time.Time, limit, each int) (c history.Claimed, err error) {
	var groups []string
	err = EachRow(t.Context(), t.Tx, lockGroups, []any{history.CommandSchema, now.UnixMicro(), limit}, func(rows *sql.Rows) error {
		var group sql.NullString
		var expired int
		err := rows.Scan(&group, &expired)
		if c.Expired += expired; group.Valid {
			groups = append(groups, group.String)
		}
		return err
	})
	if err != nil || len(groups) == 0 {
		return c, err
	}
	share := min(limit/len(groups), each)
	c.Commands, err = readCommands(t.Context(), t.Tx, claimFirst, history.CommandSchema, now.UnixMicro(), groups, share, relay)
	first := make(map[string]int64, len(groups)) // the group that waits longest goes first
	for i := range c.Commands {
		x := &c.Commands[i]
		if id, ok := first[x.Group]; !ok || x.ID < id {
			first[x.Group] = x.ID
		}
	}
	slices.SortFunc(c.Commands, func(a, b history.Command) int {
		return cmp.Or(cmp.Compare(first[a.Group], first[b.Group]), cmp.Compare(a.ID, b.ID))
	})
	return c, err
}

// recordAllOutcomes records outcomes where others record theirs.
func (t tx) recordAllOutcomes(relay string, now time.Time, outcomes []history.Outcome) error {
	const record = `WITH given AS (
			SELECT * FROM unnest(?1::bigint[], ?2::text[], ?3::bigint[], ?4::bigint[], ?5::bigint[], ?6::text[], ?7::text[], ?8::bytea[], ?9::bigint[], ?10::bigint[])
			AS g (id, state, due, attempts, deferrals, error, expected, payload, sent, done)
		), changed AS (
			UPDATE outbox SET state = g.state, due = g.due, attempts = g.attempts, deferrals = g.deferrals, error = g.error,
				expected = coalesce(nullif(g.expected, ''), outbox.expected), payload = coalesce(g.payload, outbox.payload),
				sent = nullif(g.sent, 0), claimed = NULL, done = nullif(g.done, 0)
			FROM given AS g WHERE command = g.id AND outbox.state = 'in_flight' AND relay = ?11 RETURNING command
		), dead AS (
			INSERT INTO dead_letters (command, reason, at)
			SELECT id, error, done FROM given JOIN changed ON command = id WHERE state = 'dead'
			ON CONFLICT (command) DO UPDATE SET reason = excluded.reason, at = excluded.at
		)
		INSERT INTO outbox_nodes (node, command)
		SELECT node, command FROM unnest(?12::text[], ?13::bigint[]) AS n (node, id) JOIN changed ON command = id ON CONFLICT DO NOTHING`
	var ids, due, attempts, deferrals, sent, done columnOf[int64]
	var states, failed, expected columnOf[string]
	var payloads columnOf[[]byte]
	var nodes nodeRows
	for i := range outcomes {
		o := &outcomes[i]
		if slices.Contains(ids, o.ID) {
			continue // settled already
		}
		list := ""
		if o.Expected != nil {
			var err error
			if list, err = encode(o.Expected); err != nil {
				return err
			}
		}
		at := o.DueAt
		if at.IsZero() {
			at = now
		}
		ids.add(o.ID)
		due.add(at.UnixMicro())
		attempts.add(int64(o.Attempts))
		deferrals.add(int64(o.Deferrals))
		sent.add(microsOrZero(o.SentAt))
		done.add(doneOrZero(o.State, now))
		states.add(string(o.State))
		failed.add(o.Error)
		expected.add(list)
		payloads.add(o.Payload)
		nodes.add(o.ID, o.Expected...)
	}
	return t.Exec(record, []int64(ids), []string(states), []int64(due), []int64(attempts), []int64(deferrals), []string(failed), []string(expected),
		[][]byte(payloads), []int64(sent), []int64(done), relay, []string(nodes.names), []int64(nodes.ids))
}

// addAllReplies adds replies where others add theirs.
func (t tx) addAllReplies(now time.Time, replies []history.CommandReplies) error {
	ids := make([]int64, len(replies))
	for i := range replies {
		ids[i] = replies[i].ID
	}
	found, err := commandsOf(t.Context(), t.Tx, `WHERE command = ANY(?) AND state = 'sent' ORDER BY command FOR UPDATE`, ids)
	if err != nil || len(found) == 0 {
		return err
	}
	var nodes nodeRows
	for i := range replies {
		r := &replies[i]
		at := slices.IndexFunc(found, func(c history.Command) bool { return c.ID == r.ID && c.State == history.CommandSent })
		if at < 0 {
			continue
		}
		found[at].State = r.State
		found[at].Replies = append(found[at].Replies, r.Replies...)
		for _, a := range r.Replies {
			nodes.add(r.ID, a.Node)
		}
	}
	var answered, done columnOf[int64]
	var states, answers columnOf[string]
	for i := range found {
		c := &found[i]
		_, list, err := encodeNodes(c)
		if err != nil {
			return err
		}
		answered.add(c.ID)
		states.add(string(c.State))
		answers.add(list)
		done.add(doneOrZero(c.State, now))
	}
	const record = `WITH changed AS (
			UPDATE outbox SET state = g.state, answers = g.answers, done = nullif(g.done, 0)
			FROM unnest(?1::bigint[], ?2::text[], ?3::text[], ?4::bigint[]) AS g (id, state, answers, done) WHERE command = g.id
		)
		INSERT INTO outbox_nodes (node, command) SELECT * FROM unnest(?5::text[], ?6::bigint[]) ON CONFLICT DO NOTHING`
	return t.Exec(record, []int64(answered), []string(states), []string(answers), []int64(done), []string(nodes.names), []int64(nodes.ids))
}

// addAllCommands adds the commands of a request, whose IDs follow each other: the outbox is locked.
func (t tx) addAllCommands(commands []history.Command) error {
	numbers, err := List[int64](t.Context(), t.Tx,
		`SELECT nextval(pg_get_serial_sequence('outbox', 'command')) FROM generate_series(1, ?) ORDER BY 1`, len(commands))
	if err != nil {
		return err
	}
	var ids, schemas, attempts, deferrals, created, due, expires, claimed, sent, done columnOf[int64]
	var kinds, groups, targets, summaries, tasks, actors, states, failed, expected, answers columnOf[string]
	var payloads columnOf[[]byte]
	var nodes nodeRows
	for i := range commands {
		c := &commands[i]
		c.ID, c.RequestID = numbers[i], numbers[0]
		nodesOf, repliesOf, err := encodeNodes(c)
		if err != nil {
			return err
		}
		ids.add(c.ID)
		schemas.add(int64(c.Schema))
		kinds.add(c.Kind)
		groups.add(c.Group)
		targets.add(c.Target)
		summaries.add(c.Summary)
		payloads.add(notNil(c.Payload))
		tasks.add(c.TaskID)
		actors.add(c.Actor)
		states.add(string(c.State))
		attempts.add(int64(c.Attempts))
		deferrals.add(int64(c.Deferrals))
		failed.add(c.LastError)
		expected.add(nodesOf)
		answers.add(repliesOf)
		created.add(c.CreatedAt.UnixMicro())
		due.add(c.DueAt.UnixMicro())
		expires.add(microsOrZero(c.ExpiresAt))
		claimed.add(microsOrZero(c.ClaimedAt))
		sent.add(microsOrZero(c.SentAt))
		done.add(microsOrZero(c.DoneAt))
		if c.Kind == "control" {
			nodes.add(c.ID, c.Target)
		}
		nodes.add(c.ID, c.Expected...)
	}
	const add = `WITH added AS (
			INSERT INTO outbox (` + CommandColumns + `) OVERRIDING SYSTEM VALUE
			SELECT id, ?1, schema, kind, grp, target, summary, payload, task, actor, state, attempts, deferrals, error, expected, answers,
				created, due, nullif(expires, 0), nullif(claimed, 0), nullif(sent, 0), nullif(done, 0)
			FROM unnest(?2::bigint[], ?3::bigint[], ?4::text[], ?5::text[], ?6::text[], ?7::text[], ?8::bytea[], ?9::text[], ?10::text[], ?11::text[],
				?12::bigint[], ?13::bigint[], ?14::text[], ?15::text[], ?16::text[], ?17::bigint[], ?18::bigint[], ?19::bigint[], ?20::bigint[],
				?21::bigint[], ?22::bigint[])
			AS c (id, schema, kind, grp, target, summary, payload, task, actor, state, attempts, deferrals, error, expected, answers,
				created, due, expires, claimed, sent, done)
		)
		INSERT INTO outbox_nodes (node, command) SELECT * FROM unnest(?23::text[], ?24::bigint[]) ON CONFLICT DO NOTHING`
	return t.Exec(add, numbers[0], []int64(ids), []int64(schemas), []string(kinds), []string(groups), []string(targets), []string(summaries),
		[][]byte(payloads), []string(tasks), []string(actors), []string(states), []int64(attempts), []int64(deferrals), []string(failed),
		[]string(expected), []string(answers), []int64(created), []int64(due), []int64(expires), []int64(claimed), []int64(sent), []int64(done),
		[]string(nodes.names), []int64(nodes.ids))
}

// columnOf is a column of rows that are written with one statement.
type columnOf[T any] []T

func (c *columnOf[T]) add(v T) { *c = append(*c, v) }

// nodeRows are rows of outbox_nodes.
type nodeRows struct {
	names columnOf[string]
	ids   columnOf[int64]
}

func (n *nodeRows) add(id int64, names ...string) {
	for _, name := range names {
		n.names.add(name)
		n.ids.add(id)
	}
}

// microsOrZero returns a time as µs since 1970 UTC, 0 for none.
func microsOrZero(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// doneOrZero returns now as µs since 1970 UTC if the state is final, else 0.
func doneOrZero(s history.CommandState, now time.Time) int64 {
	if !s.Final() {
		return 0
	}
	return now.UnixMicro()
}
