package postgres

import (
	"context"
	"crypto/md5" //nolint:gosec // as the triggers do, for a name of any length
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/umbelhq/umbel/monitor/history"
)

// listenAgain is the wait before a connection that listens is made again.
const listenAgain = time.Second

var _ history.Notifier = (*DB)(nil)

// Listen implements history.Notifier, with one connection.
func (d *DB) Listen(ctx context.Context, f func()) error {
	told := func() {
		d.failures.Forget()
		f()
	}
	for first := true; ctx.Err() == nil; first = false {
		if err := d.listen(ctx, told); err != nil && ctx.Err() == nil && first {
			d.log.WarnContext(ctx, "changes by other processes come late", "error", explain(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
	return nil
}

// listen calls f at first, since what was told before was not heard, and at each notification.
func (d *DB) listen(ctx context.Context, f func()) error {
	c, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost
	var schema string
	if err := c.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return err
	}
	sum := md5.Sum([]byte(schema)) //nolint:gosec // see above
	if _, err := c.Exec(ctx, `LISTEN umbel_`+hex.EncodeToString(sum[:])); err != nil {
		return err
	}
	for {
		f()
		if _, err := c.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}
