package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Of a lease. It ends by the clock of the database.
const (
	leaseLength = 5 * time.Second
	leaseRenew  = time.Second
	leaseWait   = leaseLength + 2*leaseRenew // how long Open waits for one that a killed process has left
	leaseRetry  = 200 * time.Millisecond
)

// defaultCluster is the key of the lease of the only cluster, all of which is in shard 0.
const defaultCluster = "default"

// lease says that one process writes. Each time that another takes it, its epoch rises.
type lease struct {
	holder string
	epoch  atomic.Int64
	rules  int64         // lease.rules when the rules for duplicates were read; guarded by DB.writer
	lost   atomic.Bool   // it is not held, or no longer
	gone   chan struct{} // closed with the loss of what tryLease has taken last; of the nodes that share a history
	mu     sync.Mutex    // guards gone
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// lose notes that the lease is not held.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lost.Swap(true) && l.gone != nil {
		close(l.gone)
	}
}

// hold notes that it is.
func (l *lease) hold(epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch.Store(epoch)
	l.gone = make(chan struct{})
	l.lost.Store(false)
}

// takeLease waits until nobody holds the lease. It returns an error that wraps history.ErrLocked if somebody keeps it.
func (d *DB) takeLease(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	d.lease = &lease{holder: fmt.Sprintf("process %d on %s (%s)", os.Getpid(), host, rand.Text()[:6])}
	if d.node != "" { // TryLead takes it
		d.lease.lost.Store(true)
		return nil
	}
	var first time.Time
	for end := time.Now().Add(leaseWait); ; {
		holder, until, epoch, err := d.tryLease(ctx)
		if holder == "" || err != nil {
			d.lease.epoch.Store(epoch)
			return err
		}
		if first.IsZero() {
			first = until
		}
		if !until.Equal(first) || time.Now().After(end) { // it is renewed
			return fmt.Errorf("%w: %s writes to it", history.ErrLocked, holder)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(leaseRetry):
		}
	}
}

// tryLease takes the lease unless somebody holds it, whom it returns, with the end of that lease. It waits for transactions of the holder before: they
// share a lock on the key of the row, which a renewal does not change.
func (d *DB) tryLease(ctx context.Context) (holder string, until time.Time, epoch int64, err error) {
	begun, err := d.keep.BeginTx(ctx, nil)
	if err != nil {
		return "", until, 0, err
	}
	defer begun.Rollback() //nolint:errcheck // or it was committed
	if d.node != "" {
		if _, err := begun.ExecContext(ctx, `SET LOCAL lock_timeout = '500ms'`); err != nil {
			return "", until, 0, err
		}
	}
	_, err = begun.ExecContext(ctx, `INSERT INTO lease (cluster, shard, holder, epoch, until) VALUES ($1, 0, '', 0, 'epoch') ON CONFLICT DO NOTHING`,
		defaultCluster)
	if err != nil {
		return "", until, 0, err
	}
	var held bool
	err = begun.QueryRowContext(ctx, `SELECT holder, epoch, until, until > clock_timestamp() AND holder <> $2 FROM lease WHERE cluster = $1 AND shard = 0 FOR UPDATE`,
		defaultCluster, d.lease.holder).Scan(&holder, &epoch, &until, &held)
	if err != nil || held {
		return holder, until, epoch, err
	}
	epoch++
	_, err = begun.ExecContext(ctx, `UPDATE lease SET holder = $1, epoch = $2, until = clock_timestamp() + $3 * interval '1 microsecond' WHERE cluster = $4 AND shard = 0`,
		d.lease.holder, epoch, leaseLength.Microseconds(), defaultCluster)
	if err != nil {
		return "", until, 0, err
	}
	return "", until, epoch, begun.Commit()
}

// keepLease renews the lease until it is released.
func (d *DB) keepLease() {
	ctx, cancel := context.WithCancel(context.Background())
	d.lease.stop = cancel
	d.lease.ended.Go(func() {
		tick := time.NewTicker(leaseRenew)
		defer tick.Stop()
		renewed := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if d.node != "" && d.lease.lost.Load() {
				renewed = time.Now()
				continue
			}
			begun := time.Now()
			err := d.renewLease(ctx)
			if err == nil {
				renewed = begun
			} else if ctx.Err() == nil {
				d.log.Warn("lease of the history not renewed", "error", explain(err))
			}
			if d.node != "" && time.Since(renewed) > leaseLength {
				d.lease.lose()
			}
		}
	})
}

func (d *DB) renewLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseLength)
	defer cancel()
	r, err := d.keep.ExecContext(ctx, `UPDATE lease SET until = clock_timestamp() + $1 * interval '1 microsecond' WHERE cluster = $2 AND shard = 0 AND epoch = $3`,
		leaseLength.Microseconds(), defaultCluster, d.lease.epoch.Load())
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); n > 0 || err != nil {
		return err
	}
	d.lease.lose()
	return errTaken
}

// releaseLease lets others write.
func (d *DB) releaseLease() error {
	if d.lease == nil || d.lease.stop == nil {
		return nil
	}
	d.lease.stop()
	d.lease.ended.Wait()
	if d.lease.lost.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseRenew)
	defer cancel()
	if err := d.endLease(ctx, d.lease.epoch.Load()); err != nil {
		d.log.Warn("lease of the history not released: it ends by itself", "error", explain(err))
	}
	return nil
}

// endLease has the lease of an epoch end now, if nobody else has taken it.
func (d *DB) endLease(ctx context.Context, epoch int64) error {
	_, err := d.keep.ExecContext(ctx, `UPDATE lease SET until = 'epoch' WHERE cluster = $1 AND shard = 0 AND epoch = $2`, defaultCluster, epoch)
	return err
}

// errTaken wraps history.ErrLocked.
var errTaken = fmt.Errorf("%w, which has taken the lease: nothing is written. Stop one of them, then restart Umbel", history.ErrLocked)

// errFollows wraps history.ErrLocked.
var errFollows = fmt.Errorf("%w, which leads: this one follows", history.ErrLocked)

// check fails a transaction if somebody else has the lease, and lets nobody take it before the end of the transaction. A rule for
// duplicates that any process has saved before applies from here on.
func (l *lease) check(t *tx) error {
	if t.db.node != "" && l.lost.Load() {
		return errFollows
	}
	var rules int64
	err := t.Get(`SELECT rules FROM lease WHERE cluster = $1 AND shard = 0 AND epoch = $2 FOR KEY SHARE`, []any{defaultCluster, l.epoch.Load()}, &rules)
	if errors.Is(err, sql.ErrNoRows) {
		l.lose()
		return errTaken
	}
	if err != nil || rules == l.rules {
		return err
	}
	if err := t.db.ReloadRules(t.ctx); err != nil {
		return err
	}
	l.rules = rules
	return nil
}
