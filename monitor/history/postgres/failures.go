package postgres

import (
	"context"
	"database/sql"
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

// sweepFailures removes groups without tasks, except recently resolved ones.
func (d *DB) sweepFailures(ctx context.Context) (err error) {
	defer annotate(&err, "remove failure groups without tasks")
	const empty = ` FROM failures WHERE greatest(resolved, note_at, assigned_at, 0) < $1 AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.failure = failures.failure)`
	before := d.now().Add(-keepResolved).UnixMicro()
	ids, err := tables.List[int64](ctx, d.read, `SELECT failure`+empty, before)
	if err != nil || len(ids) == 0 {
		return err
	}
	return d.update(ctx, func(t *tx) error { return t.Exec(`DELETE`+empty+` AND failure = ANY($2)`, before, ids) })
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

const (
	// lastHour counts the tasks of the group f that failed since ?1, up to ?2.
	lastHour = `(SELECT count(*) FROM (SELECT 1 FROM tasks t WHERE t.failure = f.failure AND t.finished > ?1 LIMIT ?2) AS hour)`
	// within counts those that failed from ?3 on, and before ?4.
	within = `(SELECT count(*) FROM (SELECT 1 FROM tasks t WHERE t.failure = f.failure AND t.finished >= ?3 AND t.finished < ?4 LIMIT ?2) AS span)`
	// selectGroups reads all groups that have tasks.
	selectGroups = `SELECT failure, resolved, assignee, last,
			CASE WHEN ?5::boolean THEN ` + lastHour + ` ELSE 0 END, CASE WHEN ?6::boolean THEN ` + within + ` ELSE 0 END FROM (
			SELECT failure, resolved, assignee, (SELECT max(finished) FROM tasks t WHERE t.failure = f.failure) AS last FROM failures f
		) AS f WHERE last IS NOT NULL`
)

// groups reads the fields that r.Page looks at.
func (d *DB) groups(ctx context.Context, r history.FailureRequest) ([]history.FailureGroup, error) {
	args := []any{r.Now.Add(-time.Hour).UnixMicro(), d.limits.failures, r.From.UnixMicro(), r.To.UnixMicro(), r.Busiest, r.Spanned()}
	var all []history.FailureGroup
	err := tables.EachRow(ctx, d.read, selectGroups, args, func(rows *sql.Rows) error {
		var f history.FailureGroup
		var id, last int64
		var resolved sql.NullInt64
		err := rows.Scan(&id, &resolved, &f.Assignee, &last, &f.LastHour, &f.Within)
		f.ID, f.LastAt, f.ResolvedAt = fingerprint.ID(id), time.UnixMicro(last).UTC(), tables.Moment(resolved).UTC()
		all = append(all, f)
		return err
	})
	return all, err
}

// describe adds to groups what their tasks show.
func (d *DB) describe(ctx context.Context, groups []history.FailureGroup, r history.FailureRequest) error {
	at := make(map[int64]*history.FailureGroup, len(groups))
	ids := make([]int64, len(groups))
	for i := range groups {
		f := &groups[i]
		ids[i] = int64(f.ID)
		at[ids[i]] = f
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
	// The last of the parts takes what is after all.
	const trends = `SELECT failure, least((finished - ?2) / ?3, ?4 - 1)::bigint, count(*) FROM tasks
		WHERE failure = ANY(?1) AND finished >= ?2 AND finished < ?5 GROUP BY 1, 2`
	return tables.EachRow(ctx, d.read, trends, []any{ids, from.UnixMicro(), part.Microseconds(), int64(history.TrendHours), end}, func(rows *sql.Rows) error {
		var id, i, n int64
		err := rows.Scan(&id, &i, &n)
		at[id].Trend[i] = n
		return err
	})
}

// selectGroup reads the group ?3 with its newest task.
const selectGroup = `SELECT f.name, f.type, f.message, f.place, f.resolved, f.note, f.note_by, f.note_at, f.assignee, ` + lastHour + `,
		(SELECT count(*) FROM (SELECT 1 FROM tasks WHERE failure = f.failure LIMIT ?2 + 1) AS counted),
		(SELECT min(finished) FROM tasks WHERE failure = f.failure), n.finished, n.id, n.body
	FROM failures f JOIN tasks n USING (failure)
	WHERE f.failure = ?3 AND n.finished IS NOT NULL ORDER BY n.finished DESC LIMIT 1`

// describeOne reads a group, except its trend. It leaves a group without tasks as it is.
func (d *DB) describeOne(ctx context.Context, f *history.FailureGroup, now time.Time) error {
	var events []byte
	var first, last int64
	var resolved, noted sql.NullInt64
	err := d.read.QueryRowContext(ctx, selectGroup, now.Add(-time.Hour).UnixMicro(), d.limits.failures, int64(f.ID)).Scan(
		&f.Name, &f.Fingerprint.Type, &f.Fingerprint.Message, &f.Fingerprint.Place, &resolved, &f.Note, &f.NotedBy, &noted, &f.Assignee, &f.LastHour,
		&f.Count.N, &first, &last, &f.TaskID, &events)
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
	newest, _, err := state.DecodeTask(f.TaskID, events)
	if newest.Exception != nil {
		f.Example = *newest.Exception
	}
	return err
}
