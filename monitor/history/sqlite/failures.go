package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// keepResolved is how long a group that was resolved, noted or assigned is kept after its last task was removed.
const keepResolved = 30 * 24 * time.Hour

// failure returns the group of a failed task, which it adds if needed, and nil for any other task.
func (t *tx) failure(v *state.Task) (any, error) {
	if v.State != state.Failure {
		return nil, nil //nolint:nilnil // SQL's NULL
	}
	f, id := fingerprint.OfTask(v)
	err := t.get(`SELECT 1 FROM failures WHERE failure = ?`, []any{int64(id)}, new(int))
	if !errors.Is(err, sql.ErrNoRows) {
		return int64(id), err
	}
	if t.groups == 0 {
		if err := t.get(`SELECT count(*) FROM failures`, nil, &t.groups); err != nil {
			return nil, err
		}
	}
	name := ""
	if v.Name != nil {
		name = *v.Name
	}
	if t.groups >= t.db.limits.groups {
		f = fingerprint.Other()
		id = f.ID(name)
	} else {
		t.groups++
	}
	return int64(id), t.exec(`INSERT INTO failures (failure, name, type, message, place) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, int64(id), name, f.Type, f.Message, f.Place)
}

// sweepFailures removes groups without tasks, except recently resolved ones.
func (d *DB) sweepFailures(ctx context.Context) (err error) {
	defer annotate(&err, "remove failure groups without tasks")
	const empty = ` WHERE max(coalesce(resolved, 0), coalesce(note_at, 0), coalesce(assigned_at, 0)) < ? AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.failure = failures.failure)`
	before := d.now().Add(-keepResolved).UnixMicro()
	var ids failureIDs
	err = tables.EachRow(ctx, d.read, `SELECT failure FROM failures`+empty, []any{before}, func(rows *sql.Rows) error {
		var id fingerprint.ID
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if err == nil && len(ids) > 0 {
		err = d.update(ctx, func(t *tx) error {
			return t.exec(`DELETE FROM failures`+empty+` AND failure IN (SELECT value FROM json_each(?))`, before, ids)
		})
	}
	return err
}

// failureIDs is an argument of statements: a JSON array.
type failureIDs []fingerprint.ID

// Value returns the array.
func (l failureIDs) Value() (driver.Value, error) {
	b, err := json.Marshal(l)
	return string(b), err
}

// FailureGroups returns the groups that r asks for.
func (d *DB) FailureGroups(ctx context.Context, r history.FailureRequest) (page history.FailurePage, err error) {
	defer annotate(&err, "read failure groups")
	return d.failures.Page(r, func() (history.FailurePage, error) {
		all, err := d.groups(ctx, r)
		if err != nil {
			return history.FailurePage{}, err
		}
		page := r.Page(all)
		return page, d.describe(ctx, page.Groups, r)
	})
}

// FailureGroup returns one group as of now.
func (d *DB) FailureGroup(ctx context.Context, id fingerprint.ID, now time.Time) (f history.FailureGroup, err error) {
	defer annotate(&err, "read failure group")
	found := []history.FailureGroup{{ID: id}}
	if err := d.describe(ctx, found, history.FailureRequest{Now: now}); err != nil {
		return f, err
	}
	if found[0].Count.N == 0 {
		return f, history.ErrNotFound
	}
	return found[0], nil
}

// groups reads the fields that r.Page looks at, of all groups that have tasks.
func (d *DB) groups(ctx context.Context, r history.FailureRequest) ([]history.FailureGroup, error) {
	recent, spanned := `0`, `0`
	if r.Busiest {
		recent = lastHour
	}
	if r.Spanned() {
		spanned = within
	}
	args := []any{r.Now.Add(-time.Hour).UnixMicro(), d.limits.failures, r.From.UnixMicro(), r.To.UnixMicro()}
	var all []history.FailureGroup
	err := tables.EachRow(ctx, d.read, selectGroups(recent, spanned), args, func(rows *sql.Rows) error {
		var f history.FailureGroup
		var last int64
		var resolved sql.NullInt64
		err := rows.Scan(&f.ID, &resolved, &f.Assignee, &last, &f.LastHour, &f.Within)
		f.LastAt, f.ResolvedAt = time.UnixMicro(last).UTC(), tables.Moment(resolved).UTC()
		all = append(all, f)
		return err
	})
	return all, err
}

// selectGroups returns the query for all groups that have tasks, with counts of those that failed of late, and in a span.
func selectGroups(recent, spanned string) string {
	return `SELECT failure, resolved, assignee, last, ` + recent + `, ` + spanned + ` FROM (
			SELECT failure, resolved, assignee, (SELECT max(finished) FROM tasks t WHERE t.failure = f.failure) AS last FROM failures f
		) f WHERE last IS NOT NULL`
}

const (
	// lastHour counts the tasks of the group f that failed since ?1, up to ?2.
	lastHour = `(SELECT count(*) FROM (SELECT 1 FROM tasks t WHERE t.failure = f.failure AND t.finished > ?1 LIMIT ?2))`
	// within counts those that failed from ?3 on, and before ?4.
	within = `(SELECT count(*) FROM (SELECT 1 FROM tasks t WHERE t.failure = f.failure AND t.finished >= ?3 AND t.finished < ?4 LIMIT ?2))`
)

// describe adds to groups what their tasks show.
func (d *DB) describe(ctx context.Context, groups []history.FailureGroup, r history.FailureRequest) error {
	at := make(map[fingerprint.ID]*history.FailureGroup, len(groups))
	ids := make(failureIDs, len(groups))
	for i := range groups {
		f := &groups[i]
		at[f.ID], ids[i] = f, f.ID
		f.Trend = make([]int64, history.TrendHours)
		if err := d.describeOne(ctx, f, r.Now); err != nil {
			return err
		}
	}
	from, part := r.TrendSpan()
	end := int64(math.MaxInt64) // the clocks of workers may be ahead: what has not come yet counts as now
	if r.Spanned() {
		end = r.To.UnixMicro()
	}
	return tables.EachRow(ctx, d.read, selectTrends, []any{from.UnixMicro(), part.Microseconds(), history.TrendHours, end, ids}, func(rows *sql.Rows) error {
		var id fingerprint.ID
		var i int
		var n int64
		err := rows.Scan(&id, &i, &n)
		at[id].Trend[i] = n
		return err
	})
}

const (
	// selectTrends counts the tasks of the groups ?5 in ?3 parts of ?2 µs from ?1 on, the last of which ends at ?4.
	selectTrends = `WITH RECURSIVE parts (i, low, high) AS (
			SELECT 0, ?1, ?1 + ?2
			UNION ALL
			SELECT i + 1, high, iif(i + 2 = ?3, ?4, high + ?2) FROM parts WHERE i + 1 < ?3
		)
		SELECT g.value, i, (SELECT count(*) FROM tasks WHERE failure = g.value AND finished >= low AND finished < high)
		FROM json_each(?5) g, parts`
	// selectGroup reads the group ?3 with its newest task.
	selectGroup = `SELECT f.name, f.type, f.message, f.place, f.resolved, f.note, f.note_by, f.note_at, f.assignee, ` + lastHour + `,
			(SELECT count(*) FROM (SELECT 1 FROM tasks WHERE failure = f.failure LIMIT ?2 + 1)),
			(SELECT min(finished) FROM tasks WHERE failure = f.failure), n.finished, n.id, e.body
		FROM failures f JOIN tasks n USING (failure) JOIN events e USING (task)
		WHERE f.failure = ?3 AND n.finished IS NOT NULL ORDER BY n.finished DESC LIMIT 1`
)

// describeOne reads a group, except its trend. It leaves a group without tasks as it is.
func (d *DB) describeOne(ctx context.Context, f *history.FailureGroup, now time.Time) error {
	var task any
	var events []byte
	var first, last int64
	var resolved, noted sql.NullInt64
	err := d.read.QueryRowContext(ctx, selectGroup,
		now.Add(-time.Hour).UnixMicro(), d.limits.failures, int64(f.ID)).Scan(
		&f.Name, &f.Fingerprint.Type, &f.Fingerprint.Message, &f.Fingerprint.Place, &resolved, &f.Note, &f.NotedBy, &noted, &f.Assignee, &f.LastHour,
		&f.Count.N, &first, &last, &task, &events)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	f.Count.Exact = f.Count.N <= d.limits.failures
	f.Count.N = min(f.Count.N, d.limits.failures)
	f.FirstAt, f.LastAt, f.ResolvedAt = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC(), tables.Moment(resolved).UTC()
	f.NotedAt = tables.Moment(noted).UTC()
	f.TaskID = idText(task)
	newest, _, err := state.DecodeTask(f.TaskID, events)
	if newest.Exception != nil {
		f.Example = *newest.Exception
	}
	return err
}
