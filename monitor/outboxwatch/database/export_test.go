package database

import (
	"context"

	"github.com/umbelhq/umbel/internal/sqldb"
)

// Trace calls f with every statement of b, before it is executed.
func (b *Outbox) Trace(f func(query string, args []any)) { b.traceQuery = f }

// TryToWrite deletes in a transaction that reads.
func (b *Outbox) TryToWrite(ctx context.Context) error {
	return b.reading(ctx, func(t *reader) error {
		_, err := t.tx.ExecContext(ctx, "DELETE FROM "+sqldb.Quote(b.dead))
		return err
	})
}

// MaxConnections is how many connections b opens at once.
func (b *Outbox) MaxConnections() int {
	n := b.read.Stats().MaxOpenConnections
	if b.write != b.read {
		n += b.write.Stats().MaxOpenConnections
	}
	return n
}
