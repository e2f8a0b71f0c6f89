package database

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

const (
	topNames  = 10
	maxReason = 200 // characters of a failure_reason that reasons are told apart by
)

// supported is the condition of the relay on schema_version.
var supported = fmt.Sprintf(`schema_version BETWEEN %d AND %d`, outboxwatch.MinSchemaVersion, outboxwatch.MaxSchemaVersion) //nolint:gochecknoglobals // constant

// Stats sums up both tables.
func (b *Outbox) Stats(ctx context.Context) (s outboxwatch.Stats, err error) {
	err = b.reading(ctx, func(t *reader) error {
		s = outboxwatch.Stats{Now: t.now, Server: t.server, States: map[outboxwatch.State]outboxwatch.Count{}}
		for _, step := range []func(*outboxwatch.Stats) error{t.checkTables, t.rowStats, t.retryStats, t.deadStats, t.grants} {
			if err := step(&s); err != nil {
				return err
			}
		}
		return nil
	})
	return s, err
}

// states are the conditions of the states that an index lists, and the order of its entries.
func (t *reader) states() []stateIndex {
	now, cut := t.time(t.now), t.time(t.now.Add(-t.stale))
	return []stateIndex{
		{outboxwatch.Pending, `updated_at IS NULL`, `id`, `created_at`, nil},
		{outboxwatch.InFlight, `retry_after IS NULL AND updated_at > ?`, `updated_at`, `updated_at`, []any{cut}},
		{outboxwatch.Stale, `retry_after IS NULL AND updated_at <= ?`, `updated_at`, `updated_at`, []any{cut}},
		{outboxwatch.Deferred, `retry_after > ?`, `retry_after`, `retry_after`, []any{now}},
		{outboxwatch.Due, `retry_after <= ?`, `retry_after`, `retry_after`, []any{now}},
	}
}

// stateIndex is how the rows of a state are found. Each of them whose schema_version is supported is in that state.
type stateIndex struct {
	state     outboxwatch.State
	condition string
	order     string // column of the index, before id
	since     string // column with the time from which the state counts
	args      []any
}

// orderBy is the order of the index's entries.
func (i stateIndex) orderBy() string { return orderBy(i.order, "") }

func orderBy(column, direction string) string {
	if column == "id" {
		return "id" + direction
	}
	return column + direction + ", id" + direction
}

// rowStats counts rows by state, each up to MaxCount.
func (t *reader) rowStats(s *outboxwatch.Stats) error {
	total := outboxwatch.Count{Exact: true}
	for _, i := range t.states() {
		c, err := t.count(fmt.Sprintf(`SELECT 1 FROM %s WHERE %s ORDER BY %s`, sqldb.Quote(t.table), i.condition, i.orderBy()), i.args)
		if err != nil {
			return err
		}
		s.States[i.state] = c
		total.N, total.Exact = total.N+c.N, total.Exact && c.Exact
		if err := t.first(i, c, s); err != nil {
			return err
		}
	}
	return t.otherSchema(total, s)
}

// count counts the rows of a query, which follows an index, up to MaxCount.
func (t *reader) count(query string, args []any) (outboxwatch.Count, error) {
	var n int
	err := t.row(fmt.Sprintf(`SELECT count(*) FROM (%s LIMIT %d) w`, query, outboxwatch.MaxCount+1), args, &n)
	return outboxwatch.Count{N: min(n, outboxwatch.MaxCount), Exact: n <= outboxwatch.MaxCount}, err
}

// first reads the first rows of a state that are ready, or in flight.
func (t *reader) first(i stateIndex, c outboxwatch.Count, s *outboxwatch.Stats) error {
	if c.N == 0 {
		return nil
	}
	var id sql.NullInt64
	var created, since, updated moment
	err := t.row(fmt.Sprintf(`SELECT min(id), min(created_at), min(%s), max(updated_at) FROM
		(SELECT id, created_at, updated_at, retry_after, schema_version FROM %s WHERE %s ORDER BY %s LIMIT %d) w WHERE %s`,
		i.since, sqldb.Quote(t.table), i.condition, i.orderBy(), outboxwatch.Window, supported), i.args, &id, &created, &since, &updated)
	if err != nil || !id.Valid {
		return err
	}
	s.LastTaken = latest(s.LastTaken, updated.Time)
	if i.state == outboxwatch.Stale {
		since.Time = since.Add(t.stale)
	}
	if i.state.Ready() {
		s.OldestReady, s.ReadySince = earliest(s.OldestReady, created.Time), earliest(s.ReadySince, since.Time)
		if s.FirstReady == 0 || id.Int64 < s.FirstReady {
			s.FirstReady = id.Int64
		}
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// otherSchema counts the rows that no relay takes among the first ones of the table, where they stay, and takes them out of
// the other states.
func (t *reader) otherSchema(total outboxwatch.Count, s *outboxwatch.Stats) error {
	found := outboxwatch.Count{Exact: total.Exact && total.N <= outboxwatch.Window}
	query := fmt.Sprintf(`SELECT schema_version, created_at, updated_at, retry_after FROM
		(SELECT schema_version, created_at, updated_at, retry_after FROM %s WHERE id > 0 ORDER BY id LIMIT %d) w WHERE NOT %s`,
		sqldb.Quote(t.table), outboxwatch.Window, supported)
	err := t.rows(query, nil, func(rows *sql.Rows) error {
		var r outboxwatch.Row
		var created, updated, retry moment
		if err := rows.Scan(&r.SchemaVersion, &created, &updated, &retry); err != nil {
			return err
		}
		r.UpdatedAt, r.RetryAfter, r.SchemaVersion = updated.Time, retry.Time, outboxwatch.MinSchemaVersion
		of := outboxwatch.StateOf(r, t.now, t.stale)
		c := s.States[of]
		c.N--
		s.States[of] = c
		found.N++
		return nil
	})
	s.States[outboxwatch.OtherSchema] = found
	return err
}

// retryStats sums up the retries of rows that have failed, of the ones that are tried last.
func (t *reader) retryStats(s *outboxwatch.Stats) error {
	failed := fmt.Sprintf(`(SELECT task_name, retries, updated_at FROM %s WHERE retry_after IS NOT NULL ORDER BY retry_after DESC, id DESC LIMIT %d) w`,
		sqldb.Quote(t.table), outboxwatch.Window)
	var rows, retries int
	var updated moment
	if err := t.row(`SELECT count(*), coalesce(sum(retries), 0), max(updated_at) FROM `+failed, nil, &rows, &retries, &updated); err != nil {
		return err
	}
	s.Retries = outboxwatch.Count{N: retries, Exact: rows < outboxwatch.Window}
	s.LastTaken = latest(s.LastTaken, updated.Time)
	if retries == 0 {
		return nil
	}
	top := fmt.Sprintf(`SELECT task_name, sum(retries) FROM %s WHERE retries > 0 GROUP BY task_name ORDER BY 2 DESC, 1 LIMIT %d`, failed, topNames)
	return t.names(top, &s.TopFailing)
}

// names reads names with their numbers.
func (t *reader) names(query string, list *[]outboxwatch.NameCount) error {
	return t.rows(query, nil, func(rows *sql.Rows) error {
		var n outboxwatch.NameCount
		err := rows.Scan(&n.Name, &n.N)
		*list = append(*list, n)
		return err
	})
}

// deadStats sums up the dead letters.
func (t *reader) deadStats(s *outboxwatch.Stats) (err error) {
	table := sqldb.Quote(t.dead)
	if s.DeadLetters, err = t.count(fmt.Sprintf(`SELECT 1 FROM %s WHERE id > 0 ORDER BY id`, table), nil); err != nil || s.DeadLetters.N == 0 {
		return err
	}
	var oldest moment
	if err := t.row(fmt.Sprintf(`SELECT dead_at FROM %s ORDER BY dead_at LIMIT 1`, table), nil, &oldest); err != nil {
		return err
	}
	s.OldestDead = oldest.Time
	newest := fmt.Sprintf(`FROM (SELECT task_name, failure_reason FROM %s WHERE id > 0 ORDER BY id DESC LIMIT %d) w`, table, outboxwatch.Window)
	reason := fmt.Sprintf(`substr(coalesce(failure_reason, ''), 1, %d)`, maxReason)
	err = t.names(fmt.Sprintf(`SELECT %s, count(*) %s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %d`, reason, newest, topNames), &s.Reasons)
	if err != nil {
		return err
	}
	return t.names(fmt.Sprintf(`SELECT task_name, count(*) %s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %d`, newest, topNames), &s.DeadNames)
}
