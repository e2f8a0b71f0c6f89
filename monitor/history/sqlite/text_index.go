package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/umbelhq/umbel/state"
)

const (
	indexDuration = 20 * time.Millisecond // target for a transaction
	maxIndexed    = 500                   // tasks in one transaction
	indexInterval = time.Second           // between searches for work
	indexAge      = 30 * time.Second      // an active task is indexed once it has not changed for so long
)

// indexLoop adds texts to the text index until ctx ends, at most half of the time. Finished tasks come first, since the text
// of active ones changes soon.
func (d *DB) indexLoop(ctx context.Context) error {
	var stable [2]int64 // greatest clock of a task up to 2 and 1 indexAge ago
	var aged, counted time.Time
	n := maxIndexed / 5
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		begin := d.now()
		if begin.Sub(aged).Abs() >= indexAge {
			aged, stable[0] = begin, stable[1]
			stable[1] = d.newest(ctx)
		}
		done, err := d.indexSome(ctx, n, stable[0])
		took := d.now().Sub(begin)
		if done < n || d.now().Sub(counted).Abs() > 10*indexInterval {
			counted = begin
			d.countUnindexed(ctx)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			d.log.Warn("text indexing failed", "error", err)
			timer.Reset(10 * indexInterval)
		case done < n:
			timer.Reset(indexInterval)
		default:
			n = min(max(n*int(indexDuration)/int(max(took, 1)), 1), 2*n, maxIndexed)
			timer.Reset(min(took, indexInterval))
		}
	}
}

// newest returns the greatest clock of a task.
func (d *DB) newest(ctx context.Context) int64 {
	found, err := list[int64](ctx, d.read, `SELECT coalesce(max(clock), 0) FROM tasks`)
	if err != nil {
		return 0
	}
	return found[0]
}

func (d *DB) countUnindexed(ctx context.Context) {
	found, err := list[int64](ctx, d.read, `SELECT count(*) FROM tasks INDEXED BY tasks_unindexed WHERE indexed = 0`)
	if err == nil {
		d.unindexed.Store(found[0])
	}
}

// indexSome indexes the texts of at most n tasks: finished ones, then active ones whose clock is not above stable.
func (d *DB) indexSome(ctx context.Context, n int, stable int64) (done int, err error) {
	defer annotate(&err, "index texts")
	err = d.update(ctx, func(t *tx) error {
		const waiting = `SELECT task, id, body FROM tasks INDEXED BY tasks_unindexed JOIN events USING (task) WHERE indexed = 0 AND `
		done, err = t.index(waiting+`final > 0 LIMIT ?`, n)
		if err != nil || done == n {
			return err
		}
		active, err := t.index(waiting+`final = 0 AND clock <= ? LIMIT ?`, stable, n-done)
		done += active
		return err
	})
	return done, err
}

// index indexes the texts of the tasks that a query finds.
func (t *tx) index(query string, args ...any) (int, error) {
	type text struct {
		task int64
		body string
	}
	var texts []text
	var reader state.Reader
	err := eachRow(t.ctx, t, query, args, func(rows *sql.Rows) error {
		var task int64
		var id any
		var events []byte
		if err := rows.Scan(&task, &id, &events); err != nil {
			return err
		}
		view, err := reader.Task(idText(id), events)
		if err != nil {
			t.db.log.Warn("text of a task is unreadable", "id", idText(id), "error", err)
		}
		texts = append(texts, text{task, searchable(&view)})
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, x := range texts {
		if err := t.exec(`INSERT INTO texts (rowid, body) VALUES (?, ?)`, x.task, x.body); err != nil {
			return 0, err
		}
		if err := t.exec(`UPDATE tasks SET indexed = 1 WHERE task = ?`, x.task); err != nil {
			return 0, err
		}
	}
	return len(texts), nil
}
