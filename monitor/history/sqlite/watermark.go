package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	watermarkName      = "history.db-mark"
	watermarkInterval  = time.Second     // between writes of the watermark, and between checks of the lock
	checkpointInterval = 5 * time.Second // of the log
)

// watermark records, in a file of its own, how far the history was written. So a loss is noticed if the file or its log was
// replaced, removed or truncated, which SQLite cannot tell.
type watermark struct {
	Commits int64     `json:"commits"` // transactions that changed something, since the history was created
	At      time.Time `json:"at"`      // of the last of them
	Damaged bool      `json:"damaged"` // an error reported damage: check the whole file
}

// readWatermark reads a watermark, the zero value if that fails: it only serves to warn.
func readWatermark(path string) (m watermark) {
	b, err := os.ReadFile(path) //nolint:gosec // the operator chooses the path
	if err != nil || json.Unmarshal(b, &m) != nil {
		return watermark{}
	}
	return m
}

// write replaces the file atomically.
func (m watermark) write(path string) error {
	b, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(path+".new", append(b, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// Keys of the table meta: as in watermark.
const (
	metaCommits   = "commits"
	metaCommitted = "committed" // µs since 1970 UTC
)

// count counts the transaction in the watermark if it has changed something.
func (t *tx) count() (changed bool, err error) {
	var changes int64
	if err := t.get(`SELECT total_changes()`, nil, &changes); err != nil || changes == t.db.changes {
		return false, err
	}
	now := t.db.now().UnixMicro()
	t.db.changes = changes + 2 // plus the two rows below
	return true, t.exec(`INSERT INTO meta (key, value) VALUES (?, ?), (?, ?)
		ON CONFLICT DO UPDATE SET value = excluded.value`, metaCommits, t.db.watermark.Commits+1, metaCommitted, now)
}

// loadWatermark reads how far the file was written, and adds a notice if that is less than the previous watermark.
func (d *DB) loadWatermark(ctx context.Context, previous watermark) error {
	var committed int64
	for key, into := range map[string]*int64{metaCommits: &d.watermark.Commits, metaCommitted: &committed} {
		err := d.read.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, key).Scan(into)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	d.watermark.At = time.UnixMicro(committed).UTC()
	switch until := previous.At.UTC().Format(time.DateTime); {
	case d.watermark.Commits >= previous.Commits:
	case d.watermark.Commits == 0:
		d.notices = append(d.notices, fmt.Sprintf("The history in %s, last written at %s UTC, is missing: its file was "+
			"removed, or lost with its log. A new one was created. If you have the file, stop Umbel and put it back together "+
			"with its -wal file.", d.path, until))
	default:
		d.notices = append(d.notices, fmt.Sprintf("The history from %s to %s UTC is missing: its log, %s-wal, "+
			"was removed or damaged, or an older copy was put in place. If you have the files of one moment, stop Umbel "+
			"and put them back together.", d.watermark.At.Format(time.DateTime), until, d.path))
	}
	return nil
}

// writesFile reports whether d writes to a file.
func (d *DB) writesFile() bool { return d.write != nil && d.path != Memory }

// watchFile checks the lock, writes the watermark and checkpoints the log until ctx ends. Early checkpoints keep the file
// of a young history useful without its log.
func (d *DB) watchFile(ctx context.Context) error {
	if !d.writesFile() {
		return nil
	}
	tick := time.NewTicker(watermarkInterval)
	defer tick.Stop()
	marked, checkpointed, last := d.currentWatermark(), d.currentWatermark(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := d.keepLock(ctx)
		now, m := time.Now(), d.currentWatermark()
		if err == nil && m != marked {
			marked, err = m, m.write(d.sibling(watermarkName))
		}
		if err == nil && m != checkpointed && now.Sub(last) >= checkpointInterval {
			var whole bool
			if whole, err = d.checkpoint(ctx); whole {
				checkpointed = m
			}
			last = now
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("checks of the history file failed", "error", explain(err))
		}
	}
}

// keepLock checks the lock while there are no transactions to do so.
func (d *DB) keepLock(ctx context.Context) error {
	select {
	case d.writer <- struct{}{}:
		defer func() { <-d.writer }()
	case <-ctx.Done():
		return nil
	}
	err := d.checkLock()
	if err != nil {
		d.noteWrite(err)
	}
	return err
}

// checkpoint copies the log into the file, as far as readers allow, and reports whether that was all of it.
func (d *DB) checkpoint(ctx context.Context) (whole bool, err error) {
	var busy, frames, done int
	err = d.read.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &done)
	return err == nil && busy == 0 && done == frames, err
}

// currentWatermark returns a copy of the watermark.
func (d *DB) currentWatermark() watermark {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.watermark
}

// committed counts a transaction.
func (d *DB) committed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watermark.Commits++
	d.watermark.At = d.now().UTC()
}

// noteDamage makes the next Open check the whole file if err reports damage.
func (d *DB) noteDamage(err error) {
	if !d.writesFile() || !damaged(err) {
		return
	}
	d.mu.Lock()
	known := d.watermark.Damaged
	d.watermark.Damaged = true
	m := d.watermark
	d.mu.Unlock()
	if known {
		return
	}
	if err := m.write(d.sibling(watermarkName)); err != nil {
		d.log.Warn("damage not noted", "error", err)
	}
}
