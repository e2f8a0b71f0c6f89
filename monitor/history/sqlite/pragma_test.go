package sqlite

import "context"

// Pragma sets one on the connection that writes.
func (d *DB) Pragma(ctx context.Context, setting string) error {
	_, err := d.write.ExecContext(ctx, "PRAGMA "+setting)
	return err
}
