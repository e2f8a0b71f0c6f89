package database

// Trace calls f with every statement of b, before it is executed.
func (b *Outbox) Trace(f func(query string, args []any)) { b.traceQuery = f }
