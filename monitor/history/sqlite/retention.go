package sqlite

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
)

const (
	pruneInterval = time.Minute // between runs of the pruner
	sizeInterval  = time.Second // between checks of the size
)

// RetentionRules returns the rules.
func (d *DB) RetentionRules() history.RetentionRules { return d.rules }

// ReferenceTime is the time that Run measures ages against.
func (d *DB) ReferenceTime(ctx context.Context) (at time.Time, err error) {
	defer annotate(&err, "read newest task")
	var newest int64
	for _, final := range []int{where.ClassActive, where.ClassSucceeded, where.ClassFailed} {
		found, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(max(`+lastReceipt+`), 0) FROM tasks WHERE final = ?`, final)
		if err != nil {
			return at, err
		}
		newest = max(newest, found)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.measured.Now(newest, d.now()), nil
}

// pruneLoop prunes until ctx ends, at most half of the time.
func (d *DB) pruneLoop(ctx context.Context, removed func(ids []string)) error {
	ticker := time.NewTicker(sizeInterval)
	defer ticker.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		var tasks, thinned int
		p := pruner{db: d, done: func(pruned history.Pruned) {
			tasks, thinned = tasks+len(pruned.Tasks), thinned+pruned.Events
			if len(pruned.Tasks) > 0 {
				removed(pruned.Tasks)
			}
		}, pause: func(took time.Duration) {
			rest.Reset(took)
			select {
			case <-ctx.Done():
			case <-rest.C:
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
		if !d.due(ctx, ticker.C, p.left) {
			return nil
		}
	}
}

// due waits for pruneInterval, or until the file exceeds MaxSize and has grown by 5 % of that from what pruning has left. It returns
// false if ctx ends first.
func (d *DB) due(ctx context.Context, tick <-chan time.Time, left int64) bool {
	most := d.rules.MaxSize
	for range pruneInterval / sizeInterval {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
		}
		if most == 0 {
			continue
		}
		if now, err := d.fileUsage(ctx); err == nil && now.used() > max(most, left+most/20) {
			return true
		}
	}
	return true
}

// Prune removes what the rules say, without pauses.
func (d *DB) Prune(ctx context.Context, now time.Time, done func(history.Pruned)) error {
	return (&pruner{db: d, now: now, done: done, pause: func(time.Duration) {}}).run(ctx)
}
