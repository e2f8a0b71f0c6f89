package tables

import (
	"context"
	"database/sql"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// SaveOutboxSample replaces the sample of its outbox and minute, and removes what is too old.
func (d Store) SaveOutboxSample(ctx context.Context, s history.OutboxSample) (err error) {
	defer d.engine.Annotate(&err, "save sample of outbox")
	return d.update(ctx, func(t tx) error {
		err := t.Exec(`DELETE FROM outbox_samples WHERE at < ?`, s.Minute-Minutes(history.OutboxSampleRetention))
		if err != nil {
			return err
		}
		return t.Exec(`INSERT INTO outbox_samples (at, outbox, ready, oldest, dead) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (at, outbox) DO UPDATE SET ready = excluded.ready, oldest = excluded.oldest, dead = excluded.dead`,
			s.Minute, s.Outbox, s.Ready, s.OldestReady.Microseconds(), s.DeadLetters)
	})
}

// OutboxSamples returns the samples of an outbox, oldest first.
func (d Store) OutboxSamples(ctx context.Context, outbox string, from, to time.Time, step time.Duration) (samples []history.OutboxSample, err error) {
	defer d.engine.Annotate(&err, "read samples of outbox")
	length := max(Minutes(step), 1)
	const query = `SELECT at / ? * ?, max(ready), max(oldest), max(dead) FROM outbox_samples
		WHERE at >= ? AND at < ? AND outbox = ? GROUP BY 1 ORDER BY 1`
	err = EachRow(ctx, d.engine.Reader(), query, []any{length, length, StartMinute(from), StartMinute(to), outbox}, func(rows *sql.Rows) error {
		s := history.OutboxSample{Outbox: outbox}
		var oldest int64
		err := rows.Scan(&s.Minute, &s.Ready, &oldest, &s.DeadLetters)
		s.OldestReady = time.Duration(oldest) * time.Microsecond
		samples = append(samples, s)
		return err
	})
	return samples, err
}
