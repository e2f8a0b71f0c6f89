package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
)

const maxPruned = 500 // tasks in one transaction

// retentionClass is a class of tasks and how long they are retained.
type retentionClass struct {
	where string // condition
	end   string // its last receipt, or when it was lost
	keep  time.Duration
	final int
}

func finished(r history.RetentionRules) []retentionClass {
	return []retentionClass{
		{`week > 0 AND final = 1`, `last_receipt`, r.Succeeded, where.ClassSucceeded},
		{`week > 0 AND final = 2`, `last_receipt`, r.Failed, where.ClassFailed},
	}
}

func lostClass(r history.RetentionRules) retentionClass {
	return retentionClass{`lost IS NOT NULL AND final = 0`, `lost`, r.Lost, where.ClassActive}
}

func classes(r history.RetentionRules) []retentionClass { return append(finished(r), lostClass(r)) }

// before returns the last receipt, in µs, before which a task is too old.
func (c retentionClass) before(now time.Time) int64 {
	if c.keep == 0 {
		return 0
	}
	return now.Add(-c.keep).UnixMicro()
}

// pruner is one run of pruning.
type pruner struct {
	db    *DB
	now   time.Time
	done  func(history.Pruned)
	pause func(took time.Duration) // after each transaction
}

func (p *pruner) run(ctx context.Context) (err error) {
	defer annotate(&err, "prune history")
	for _, step := range []func(context.Context) error{
		p.removeOld, p.thin, p.shrink, p.db.sweepFailures, p.removeCommands, p.removeMarks, p.dropWeeks,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// repeat calls f in transactions until it has done less than maxPruned.
func (p *pruner) repeat(ctx context.Context, f func(t *tx, n int) (int, history.Pruned, error)) error {
	for {
		begin := time.Now()
		var did int
		var pruned history.Pruned
		err := p.db.update(ctx, func(t *tx) (err error) {
			did, pruned, err = f(t, maxPruned)
			return err
		})
		if err != nil {
			return err
		}
		if len(pruned.Tasks)+pruned.Events > 0 {
			p.done(pruned)
		}
		if did < maxPruned {
			return nil
		}
		p.pause(time.Since(begin))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// removeOld removes tasks that are older than their class allows.
func (p *pruner) removeOld(ctx context.Context) error {
	for _, c := range classes(p.db.rules) {
		if c.keep == 0 {
			continue
		}
		err := p.repeat(ctx, func(t *tx, n int) (int, history.Pruned, error) {
			return t.remove(c.where+` AND `+c.end+` < ? ORDER BY `+c.end+` LIMIT ?`, c.before(p.now), n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes the tasks that a condition selects.
func (t *tx) remove(where string, args ...any) (int, history.Pruned, error) {
	var pruned history.Pruned
	var changes []change
	var workflows workflowChanges
	rows := make(map[int][]int64)
	err := t.Each(`SELECT `+storedColumns+` FROM tasks WHERE `+where, args, func(found *sql.Rows) error {
		s, err := scanStored(found)
		if err != nil {
			return err
		}
		changes, pruned.Tasks = append(changes, change{old: &s.callRow}), append(pruned.Tasks, s.id)
		rows[s.week] = append(rows[s.week], s.task)
		workflows.change(s.id, &s.workflowPart, nil)
		return nil
	})
	if err != nil || len(changes) == 0 {
		return 0, pruned, err
	}
	marked, err := t.regroup(changes)
	if err == nil {
		err = t.mark(marked)
	}
	if err == nil {
		err = t.deleteRows(rows)
	}
	if err == nil {
		err = t.saveWorkflows(workflows)
	}
	return len(changes), pruned, err
}

// dropWait is how long dropping a partition waits for who reads tasks, as a backup does for long: writes wait meanwhile.
const dropWait = 500 * time.Millisecond

// dropWeeks drops the partitions of weeks of which no task is left, but for those of late: what was removed is returned to the file
// system at once. Those that are in use are dropped by a later run.
func (p *pruner) dropWeeks(ctx context.Context) error {
	err := p.db.update(ctx, func(t *tx) error {
		if err := t.Exec(fmt.Sprintf(`SET LOCAL lock_timeout = %d`, dropWait.Milliseconds())); err != nil {
			return err
		}
		recent := int(p.db.now().UnixMicro()/weekLength) - 1
		for week := range p.db.weeks {
			if week >= recent {
				continue
			}
			var some bool
			if err := t.Get(`SELECT EXISTS (SELECT 1 FROM tasks WHERE week = $1)`, []any{week}, &some); err != nil {
				return err
			}
			if some {
				continue
			}
			if err := t.Exec(fmt.Sprintf(`DROP TABLE tasks_week_%d`, week)); err != nil {
				return err
			}
			t.Committed(func() { delete(p.db.weeks, week) })
		}
		return nil
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == stateLocked {
		p.db.log.Debug("empty weeks of tasks stay: somebody reads tasks", "error", err)
		return nil
	}
	return err
}

// thin removes events that no execution shows from finished tasks that are old enough.
func (p *pruner) thin(ctx context.Context) error {
	if p.db.rules.Events == 0 {
		return nil
	}
	before := p.now.Add(-p.db.rules.Events).UnixMicro()
	var reader state.Reader
	for _, c := range finished(p.db.rules) {
		err := p.repeat(ctx, func(t *tx, n int) (int, history.Pruned, error) { return t.thin(&reader, c, before, n) })
		if err != nil {
			return err
		}
	}
	return nil
}

// thin thins the next n tasks of a class.
func (t *tx) thin(reader *state.Reader, c retentionClass, before int64, n int) (int, history.Pruned, error) {
	type row struct {
		week int
		task int64
		body []byte
	}
	var pruned history.Pruned
	var changed []row
	var last row
	var end int64
	did := 0
	err := t.Each(`SELECT week, task, id, last_receipt, body FROM tasks WHERE `+c.where+` AND last_receipt < ?1 AND
		(last_receipt, task) > (SELECT coalesce(max(ended), 0), coalesce(max(task), 0) FROM thinned WHERE final = ?2)
		ORDER BY last_receipt, task LIMIT ?3`, []any{before, c.final, n}, func(rows *sql.Rows) error {
		var id string
		if err := rows.Scan(&last.week, &last.task, &id, &end, &last.body); err != nil {
			return err
		}
		did++
		thin, less, err := reader.Compact(id, last.body)
		if err != nil {
			t.db.log.Warn("events of a task are unreadable", "id", id, "error", err)
		}
		if less && err == nil {
			changed = append(changed, row{last.week, last.task, thin})
		}
		return nil
	})
	if err != nil || did == 0 {
		return 0, pruned, err
	}
	for _, r := range changed {
		if err := t.Exec(`UPDATE tasks SET body = $1 WHERE week = $2 AND task = $3`, r.body, r.week, r.task); err != nil {
			return 0, pruned, err
		}
	}
	pruned.Events = len(changed)
	return did, pruned, t.Exec(`INSERT INTO thinned (final, ended, task) VALUES ($1, $2, $3)
		ON CONFLICT (final) DO UPDATE SET ended = excluded.ended, task = excluded.task`, c.final, end, last.task)
}

// usage is what tasks take.
type usage struct {
	active, others           int   // tasks
	activeBytes, othersBytes int64 // estimated
}

// beside are the approximate bytes of a row and its index entries beside its events and texts.
const beside = 1500

// usage estimates what tasks take, so that what is removed counts at once: PostgreSQL returns it to the file system later.
func (d *DB) usage(ctx context.Context) (u usage, err error) {
	const active = `SELECT count(*), coalesce(sum(length(body) + 2 * length(text)), 0)::bigint FROM tasks WHERE week = 0`
	if err := d.read.QueryRowContext(ctx, active).Scan(&u.active, &u.activeBytes); err != nil {
		return u, err
	}
	var each float64
	const others = `SELECT (SELECT count(*) FROM tasks WHERE week > 0), (SELECT coalesce(avg(length(body) + 2 * length(text)), 0)::float8 FROM
		(SELECT body, text FROM tasks WHERE week > 0 ORDER BY last_receipt DESC LIMIT 2000) AS sample)`
	err = d.read.QueryRowContext(ctx, others).Scan(&u.others, &each)
	u.activeBytes += int64(beside * u.active)
	u.othersBytes = int64((each + beside) * float64(u.others))
	return u, err
}

// shrink removes the oldest inactive tasks while they take more than MaxSize.
func (p *pruner) shrink(ctx context.Context) error {
	most := p.db.rules.MaxSize
	if most == 0 {
		return nil
	}
	u, err := p.db.usage(ctx)
	p.db.active.Store(u.activeBytes)
	if err != nil || u.othersBytes <= most || u.others == 0 {
		return err
	}
	left := p.db.surplus(u)
	return p.repeat(ctx, func(t *tx, n int) (int, history.Pruned, error) {
		if n = min(n, left); n <= 0 {
			return 0, history.Pruned{}, nil
		}
		did, pruned, err := t.remove(`week > 0 ORDER BY last_receipt LIMIT ?`, n)
		left -= did
		return did, pruned, err
	})
}

// surplus is how many tasks MaxSize removes.
func (d *DB) surplus(u usage) int {
	each := float64(u.othersBytes) / float64(u.others)
	over := float64(u.othersBytes - d.rules.MaxSize/10*9)
	return min(int(math.Ceil(over/each)), u.others)
}

// removeCommands removes commands that are too old.
func (p *pruner) removeCommands(ctx context.Context) error {
	if p.db.rules.Commands == 0 {
		return nil
	}
	before := p.now.Add(-p.db.rules.Commands).UnixMicro()
	return p.repeat(ctx, func(t *tx, n int) (did int, _ history.Pruned, err error) {
		did, err = tables.RemoveCommands(t, before, n)
		return did, history.Pruned{}, err
	})
}

// removeMarks removes marks that are too old.
func (p *pruner) removeMarks(ctx context.Context) error {
	return p.db.update(ctx, func(t *tx) error { return tables.RemoveMarks(t, p.now) })
}

// maxCounted bounds the counts of a plan.
const maxCounted = 100_000

// PlanPrune returns what Prune would remove.
func (d *DB) PlanPrune(ctx context.Context, now time.Time) (p history.PrunePlan, err error) {
	defer annotate(&err, "plan retention")
	u, err := d.usage(ctx)
	if err != nil {
		return p, err
	}
	p.Tasks, p.UsedBytes, p.Events.Exact, p.Size.Exact = u.active+u.others, u.activeBytes+u.othersBytes, true, true
	p.Active = history.Count{N: min(u.active, maxCounted), Exact: u.active <= maxCounted}
	for _, c := range finished(d.rules) {
		due, err := d.countOld(ctx, c, 0, c.before(now))
		if err != nil {
			return p, err
		}
		if c.final == where.ClassSucceeded {
			p.Succeeded = due
		} else {
			p.Failed = due
		}
		if d.rules.Events == 0 {
			continue
		}
		done, err := tables.Number[int64](ctx, d.read, `SELECT coalesce((SELECT ended FROM thinned WHERE final = $1), 0)`, c.final)
		if err != nil {
			return p, err
		}
		more, err := d.countOld(ctx, c, max(c.before(now), done+1), now.Add(-d.rules.Events).UnixMicro())
		if err != nil {
			return p, err
		}
		p.Events = history.Count{N: p.Events.N + more.N, Exact: p.Events.Exact && more.Exact}
	}
	oldest, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(min(last_receipt), 0) FROM tasks WHERE week > 0 AND final > 0`)
	if err != nil {
		return p, err
	}
	if oldest != 0 {
		p.Oldest = time.UnixMicro(oldest).UTC()
	}
	if p.Lost, err = d.countOld(ctx, lostClass(d.rules), 0, lostClass(d.rules).before(now)); err != nil || u.others == 0 {
		return p, err
	}
	p.ActiveBytes = u.activeBytes
	old := p.Succeeded.N + p.Failed.N + p.Lost.N
	each := u.othersBytes / int64(u.others)
	p.Bytes = each * int64(old)
	if d.rules.MaxSize > 0 && u.othersBytes-p.Bytes > d.rules.MaxSize {
		p.Size = history.Count{N: max(d.surplus(u)-old, 0)}
		p.Bytes += each * int64(p.Size.N)
	}
	return p, nil
}

// countOld counts tasks of a class with from ≤ end < to, in µs.
func (d *DB) countOld(ctx context.Context, c retentionClass, from, to int64) (history.Count, error) {
	n, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1 FROM tasks
		WHERE `+c.where+` AND `+c.end+` >= $1 AND `+c.end+` < $2 LIMIT $3) AS old`, from, to, maxCounted+1)
	if n > maxCounted {
		return history.Count{N: maxCounted}, err
	}
	return history.Count{N: n, Exact: true}, err
}
