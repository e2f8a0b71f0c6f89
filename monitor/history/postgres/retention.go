package postgres

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

const (
	pruneInterval   = time.Minute      // between runs of the pruner
	expireInterval  = time.Minute      // between searches for rollups that are too old
	measureInterval = 10 * time.Second // between looks at the size
)

// Run maintains the store until ctx ends.
func (d *DB) Run(ctx context.Context, removed func(ids []string)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.groupCalls(ctx) })
	g.Go(func() error { return d.pruneLoop(ctx, removed) })
	g.Go(func() error { return d.every(ctx, expireInterval, "old rollups not removed", d.expireRollups) })
	g.Go(func() error { return d.every(ctx, sweepInterval, "rows without use not removed", d.sweepFailures) })
	g.Go(func() error { return d.every(ctx, measureInterval, "size not measured", d.measure) })
	g.Go(func() error { return d.indexTexts(ctx) })
	g.Go(func() error { return d.vacuumActive(ctx) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// sweepInterval is the time between searches for failure groups without tasks.
const sweepInterval = 10 * time.Minute

// every calls f now and then until ctx ends.
func (d *DB) every(ctx context.Context, interval time.Duration, failed string, f func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn(failed, "error", explain(err)) //nolint:sloglint // a constant of Run
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// measure measures what the tables take.
func (d *DB) measure(ctx context.Context) error {
	n, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'tasks'::regclass)`)
	if err == nil {
		d.size.Store(n)
	}
	return err
}

// freed notes deleted rows of active tasks.
func (d *DB) freed(rows int) {
	if d.dead += rows; d.dead < d.limits.dead {
		return
	}
	d.dead = 0
	select {
	case d.vacuum <- struct{}{}:
	default: // one is due already
	}
}

// vacuumActive has the space of active tasks that have changed used again. They all change within seconds, and PostgreSQL looks for
// such space once a minute, by when there is a hundred times as much of it as of them.
func (d *DB) vacuumActive(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.vacuum:
		}
		// Truncating the table would lock readers out.
		if _, err := d.read.ExecContext(ctx, `VACUUM (SKIP_LOCKED, TRUNCATE FALSE) tasks_active`); err != nil && ctx.Err() == nil {
			d.log.Debug("space of active tasks not taken back", "error", explain(err))
		}
	}
}

// indexTexts makes the index of texts of weeks that were begun without the extension.
func (d *DB) indexTexts(ctx context.Context) error {
	if d.trigram == "" {
		return nil
	}
	const without = `SELECT quote_ident(c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'tasks'::regclass AND c.relname LIKE 'tasks\_week\_%' AND NOT EXISTS (
			SELECT 1 FROM pg_index x JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(x.indkey) WHERE x.indrelid = c.oid AND a.attname = 'text')
		ORDER BY c.relname DESC`
	tables, err := tables.List[string](ctx, d.read, without)
	for _, table := range tables {
		if err == nil {
			_, err = d.read.ExecContext(ctx, `CREATE INDEX CONCURRENTLY ON `+table+` USING gin (text `+d.trigram+`)`)
		}
	}
	if err != nil && ctx.Err() == nil {
		d.log.Warn("texts not indexed", "error", explain(err))
	}
	return nil
}

// RetentionRules returns the rules.
func (d *DB) RetentionRules() history.RetentionRules { return d.rules }

// ReferenceTime is the time that Run measures ages against.
func (d *DB) ReferenceTime(ctx context.Context) (at time.Time, err error) {
	defer annotate(&err, "read newest task")
	newest, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(max(last_receipt), 0) FROM tasks`)
	if err != nil {
		return at, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.measured.Now(newest, d.now()), nil
}

// pruneLoop prunes until ctx ends, at most half of the time.
func (d *DB) pruneLoop(ctx context.Context, removed func(ids []string)) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	wait := func(length time.Duration) {
		rest.Reset(length)
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
	}
	for ctx.Err() == nil {
		var tasks, thinned int
		p := pruner{db: d, pause: wait, done: func(pruned history.Pruned) {
			tasks, thinned = tasks+len(pruned.Tasks), thinned+pruned.Events
			if len(pruned.Tasks) > 0 {
				removed(pruned.Tasks)
			}
		}}
		var err error
		if p.now, err = d.ReferenceTime(ctx); err == nil {
			err = p.run(ctx)
		}
		if tasks+thinned > 0 {
			d.log.Info("pruned history", "tasks", tasks, "thinned", thinned)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("pruning failed", "error", err)
		}
		wait(pruneInterval)
	}
	return nil
}

// Prune removes what the rules say, without pauses.
func (d *DB) Prune(ctx context.Context, now time.Time, done func(history.Pruned)) error {
	return (&pruner{db: d, now: now, done: done, pause: func(time.Duration) {}}).run(ctx)
}
