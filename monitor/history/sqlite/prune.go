package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

const (
	pruneDuration = 20 * time.Millisecond // target for a transaction
	maxPruned     = 200                   // tasks in one transaction
	maxLog        = 64 << 20              // bytes of write-ahead log before it is truncated
)

// pruner is one run of pruning.
type pruner struct {
	db    *DB
	now   time.Time
	done  func(history.Pruned)
	pause func(took time.Duration) // after each transaction
	left  int64                    // bytes in use after pruning by size
}

func (p *pruner) run(ctx context.Context) (err error) {
	defer annotate(&err, "prune history")
	for _, step := range []func(context.Context) error{
		p.removeOld, p.thin, p.db.cleanSegments, p.shrink, p.db.sweepFailures, p.removeCommands, p.removeMarks, p.freePages,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// repeat calls f in transactions of about pruneDuration until it has done less than n. n adapts, up to most.
func (p *pruner) repeat(ctx context.Context, n, most int, f func(t *tx, n int) (int, history.Pruned, error)) error {
	for {
		begin := time.Now()
		var did int
		var pruned history.Pruned
		err := p.db.update(ctx, func(t *tx) (err error) {
			did, pruned, err = f(t, n)
			return err
		})
		if err != nil {
			return err
		}
		took := time.Since(begin)
		if len(pruned.Tasks)+pruned.Events > 0 || pruned.Bytes > 0 {
			p.done(pruned)
		}
		if did < n {
			return nil
		}
		n = max(min(n*int(pruneDuration)/int(max(took, 1)), 2*n, most), 1)
		p.pause(took)
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
		_, err := p.remove(ctx, math.MaxInt, func(t *tx, n int) (int, history.Pruned, error) {
			return t.remove(`SELECT task, id, call, coalesce(name, 0), dup FROM tasks WHERE `+c.where+` AND `+c.end+` < ? ORDER BY `+c.end+` LIMIT ?`,
				c.before(p.now), n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shrink removes the oldest inactive tasks while the file exceeds MaxSize.
func (p *pruner) shrink(ctx context.Context) error {
	most := p.db.rules.MaxSize
	for goal := most; most > 0; goal = sizeTarget(most) {
		usage, err := p.db.fileUsage(ctx)
		if err != nil {
			return err
		}
		p.left = usage.used()
		var share activeShare
		if usage.used() > goal {
			share, err = p.db.activeShare(ctx, usage.used())
		}
		p.db.active.Store(share.bytes)
		if err != nil || usage.used()-share.bytes <= goal {
			return err
		}
		over := float64(usage.used()-share.bytes-sizeTarget(most)) / float64(usage.used()-share.bytes)
		some := min(max(int(over*float64(share.others)), 1), max((share.active+share.others)/5, 1000)) // what it takes is an estimate
		removed, err := p.remove(ctx, some, func(t *tx, n int) (int, history.Pruned, error) {
			var oldest []string
			var args []any
			for _, c := range classes(p.db.rules) {
				oldest = append(oldest, `SELECT * FROM (SELECT task, id, call, coalesce(name, 0) AS name, dup, `+c.end+` AS e FROM tasks WHERE `+c.where+` ORDER BY e LIMIT ?)`)
				args = append(args, n)
			}
			return t.remove(`SELECT task, id, call, name, dup FROM (`+strings.Join(oldest, ` UNION ALL `)+`) ORDER BY e LIMIT ?`, append(args, n)...)
		})
		if err != nil || removed == 0 {
			return err
		}
		if err := p.db.cleanSegments(ctx); err != nil { // else the file does not shrink
			return err
		}
	}
	return nil
}

// remove removes at most most tasks by calling f, which removes n.
func (p *pruner) remove(ctx context.Context, most int, f func(t *tx, n int) (int, history.Pruned, error)) (removed int, err error) {
	err = p.repeat(ctx, maxPruned/4, maxPruned, func(t *tx, n int) (int, history.Pruned, error) {
		if n = min(n, most-removed); n == 0 {
			return 0, history.Pruned{}, nil
		}
		did, pruned, err := f(t, n)
		removed += did
		return did, pruned, err
	})
	return removed, err
}

// remove removes the tasks that a query finds, with their events, texts and former names.
func (t *tx) remove(query string, args ...any) (int, history.Pruned, error) {
	type row struct {
		callRow

		id any
	}
	var found []row
	var pruned history.Pruned
	err := tables.EachRow(t.ctx, t, query, args, func(rows *sql.Rows) error {
		var r row
		err := rows.Scan(&r.task, &r.id, &r.call, &r.name, &r.dup)
		found, pruned.Tasks = append(found, r), append(pruned.Tasks, idText(r.id))
		return err
	})
	if err != nil {
		return 0, pruned, err
	}
	var tasks []int64
	for _, r := range found {
		tasks = append(tasks, r.task)
		if err := t.exec(`DELETE FROM events WHERE task = ?`, r.task); err != nil {
			return 0, pruned, err
		}
		if err := t.exec(`DELETE FROM former_names WHERE task = ?`, r.task); err != nil {
			return 0, pruned, err
		}
		var w workflowRow
		if err := t.get(`SELECT `+workflowColumns+` FROM tasks WHERE task = ?`, []any{r.task}, w.into()...); err != nil {
			return 0, pruned, err
		}
		t.countInWorkflow(r.id, w.part(), nil)
		if err := t.exec(`DELETE FROM tasks WHERE task = ?`, r.task); err != nil {
			return 0, pruned, err
		}
		if err := t.leave(&r.callRow); err != nil {
			return 0, pruned, err
		}
	}
	return len(found), pruned, t.textsRemoved(tasks)
}

// thin removes events that no execution shows from finished tasks that are old enough.
func (p *pruner) thin(ctx context.Context) error {
	if p.db.rules.Events == 0 {
		return nil
	}
	before := p.now.Add(-p.db.rules.Events).UnixMicro()
	var reader state.Reader
	for _, c := range finished(p.db.rules) {
		err := p.repeat(ctx, maxPruned/4, maxPruned, func(t *tx, n int) (int, history.Pruned, error) {
			return t.thin(&reader, c.final, before, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// thin thins the next n tasks of a class.
func (t *tx) thin(reader *state.Reader, final int, before int64, n int) (int, history.Pruned, error) {
	var pruned history.Pruned
	const next = `SELECT task, id, ` + lastReceipt + ` AS e, body FROM tasks JOIN events USING (task)
		WHERE final = ?1 AND ` + lastReceipt + ` >= coalesce((SELECT ended FROM thinned WHERE final = ?1), 0) AND ` + lastReceipt + ` < ?2
		AND (e, task) > (SELECT coalesce(max(ended), 0), coalesce(max(task), 0) FROM thinned WHERE final = ?1)
		ORDER BY e, task LIMIT ?3`
	compacted := map[int64][]byte{}
	var task, end int64
	did := 0
	err := tables.EachRow(t.ctx, t, next, []any{final, before, n}, func(rows *sql.Rows) error {
		var id any
		var body []byte
		if err := rows.Scan(&task, &id, &end, &body); err != nil {
			return err
		}
		did++
		thin, less, err := reader.Compact(idText(id), body)
		if err != nil {
			t.db.log.Warn("events of a task are unreadable", "id", idText(id), "error", err)
		}
		if less && err == nil {
			compacted[task] = thin
		}
		return nil
	})
	if err != nil || did == 0 {
		return 0, pruned, err
	}
	for task, body := range compacted {
		if err := t.exec(`UPDATE events SET body = ? WHERE task = ?`, body, task); err != nil {
			return 0, pruned, err
		}
	}
	pruned.Events = len(compacted)
	return did, pruned, t.exec(`INSERT INTO thinned (final, ended, task) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET ended = excluded.ended, task = excluded.task`, final, end, task)
}

// freePages returns free pages to the file system, except 5 %, which will be filled again.
func (p *pruner) freePages(ctx context.Context) error {
	usage, err := p.db.fileUsage(ctx)
	if err != nil {
		return err
	}
	left := int(usage.free - usage.pages/20)
	err = p.repeat(ctx, 128, 4096, func(t *tx, n int) (int, history.Pruned, error) {
		some := min(n, left)
		if some <= 0 {
			return 0, history.Pruned{}, nil
		}
		left -= some
		var before, after int64
		err := t.get(`PRAGMA page_count`, nil, &before)
		if err == nil {
			_, err = t.ExecContext(t.ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, some))
		}
		if err == nil {
			err = t.get(`PRAGMA page_count`, nil, &after)
		}
		return some, history.Pruned{Bytes: (before - after) * usage.page}, err
	})
	if err != nil {
		return err
	}
	return p.db.truncateLog(ctx)
}

// truncateLog checkpoints and empties the log if it is long, unless a reader prevents it.
func (d *DB) truncateLog(ctx context.Context) error {
	info, err := os.Stat(d.path + "-wal")
	if d.opened == nil || err != nil || info.Size() <= maxLog {
		return nil //nolint:nilerr // without a log there is nothing to do
	}
	select {
	case d.writer <- struct{}{}:
		defer func() { <-d.writer }()
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // returns it to its pool
	for _, pragma := range []string{`busy_timeout(50)`, `wal_checkpoint(TRUNCATE)`, `busy_timeout(5000)`} {
		if _, err := conn.ExecContext(ctx, `PRAGMA `+pragma); err != nil {
			return err
		}
	}
	return nil
}

// removeCommands removes commands that have been final for longer than they are kept.
func (p *pruner) removeCommands(ctx context.Context) error {
	keep := p.db.rules.Commands
	if keep == 0 {
		return nil
	}
	return p.repeat(ctx, maxPruned/4, maxPruned, func(t *tx, n int) (int, history.Pruned, error) {
		did, err := tables.RemoveCommands(tableTx{t}, p.now.Add(-keep).UnixMicro(), n)
		return did, history.Pruned{}, err
	})
}

// removeMarks removes marks that are older than they are kept.
func (p *pruner) removeMarks(ctx context.Context) error {
	return p.db.update(ctx, func(t *tx) error { return tables.RemoveMarks(tableTx{t}, p.now) })
}
