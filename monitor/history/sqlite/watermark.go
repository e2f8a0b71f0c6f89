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
	markName       = "history.db-mark"
	markEach       = time.Second     // between marks, and between looks at the lock
	checkpointEach = 5 * time.Second // of the log
)

// mark says, outside the file of the history, how far that was written. So what is missing is noticed when the file
// or its log was replaced, removed or cut: SQLite takes what it finds for all there ever was.
type mark struct {
	Commits int64     `json:"commits"` // transactions that changed something, since the history began
	At      time.Time `json:"at"`      // of the last of them
	Damaged bool      `json:"damaged"` // the file could not be read or written, and is to be looked at as a whole
}

// readMark returns what was marked in a directory, nothing if that cannot be read: it only serves to warn.
func readMark(path string) (m mark) {
	b, err := os.ReadFile(path) //nolint:gosec // the operator chooses the path
	if err != nil || json.Unmarshal(b, &m) != nil {
		return mark{}
	}
	return m
}

// write replaces the mark as a whole.
func (m mark) write(path string) error {
	b, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(path+".new", append(b, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// Keys of the table meta: as in mark.
const (
	metaCommits   = "commits"
	metaCommitted = "committed" // µs since 1970 UTC
)

// count notes in a transaction that changed something that it did.
func (t *tx) count() (changed bool, err error) {
	var changes int64
	if err := t.get(`SELECT total_changes()`, nil, &changes); err != nil || changes == t.db.changes {
		return false, err
	}
	now := t.db.now().UnixMicro()
	t.db.changes = changes + 2 // with the two rows
	return true, t.exec(`INSERT INTO meta (key, value) VALUES (?, ?), (?, ?)
		ON CONFLICT DO UPDATE SET value = excluded.value`, metaCommits, t.db.mark.Commits+1, metaCommitted, now)
}

// loadMark reads how far the file was written, and tells what is missing by the mark beside it.
func (d *DB) loadMark(ctx context.Context, beside mark) error {
	var committed int64
	for key, into := range map[string]*int64{metaCommits: &d.mark.Commits, metaCommitted: &committed} {
		err := d.read.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, key).Scan(into)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	d.mark.At = time.UnixMicro(committed).UTC()
	switch until := beside.At.UTC().Format(time.DateTime); {
	case d.mark.Commits >= beside.Commits:
	case d.mark.Commits == 0:
		d.notices = append(d.notices, fmt.Sprintf("The history that was kept in %s until %s UTC is not there: its file was "+
			"removed, or lost with its log. A new one has begun. If you have the file, stop Umbel and put it back together "+
			"with its -wal.", d.path, until))
	default:
		d.notices = append(d.notices, fmt.Sprintf("What the history was told from %s to %s UTC is missing: its log, %s-wal, "+
			"was removed or damaged, or an older copy was put in place. If you have the files of one moment, stop Umbel "+
			"and put them back together.", d.mark.At.Format(time.DateTime), until, d.path))
	}
	return nil
}

// owns reports whether d is the one that writes a file.
func (d *DB) owns() bool { return d.write != nil && d.path != Memory }

// watch looks after what is beside the file until ctx ends: the lock, the mark, and that the log goes into the file
// early, so that a young history is more than its log.
func (d *DB) watch(ctx context.Context) error {
	if !d.owns() {
		return nil
	}
	tick := time.NewTicker(markEach)
	defer tick.Stop()
	marked, checkpointed, last := d.marked(), d.marked(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := d.guard(ctx)
		now, m := time.Now(), d.marked()
		if err == nil && m != marked {
			marked, err = m, m.write(d.beside(markName))
		}
		if err == nil && m != checkpointed && now.Sub(last) >= checkpointEach {
			last, checkpointed, err = now, m, d.checkpoint(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("history not looked after", "error", explain(err))
		}
	}
}

// guard makes sure that the lock keeps others out, where no transaction does that.
func (d *DB) guard(ctx context.Context) error {
	select {
	case d.gate <- struct{}{}:
		defer func() { <-d.gate }()
	case <-ctx.Done():
		return nil
	}
	err := d.guarded()
	if err != nil {
		d.note(err)
	}
	return err
}

// checkpoint writes what the log has into the file, as far as no reader needs it in the log.
func (d *DB) checkpoint(ctx context.Context) error {
	var busy, frames, done int
	return d.read.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &done)
}

// marked returns what is to be marked now.
func (d *DB) marked() mark {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mark
}

// committed notes that a transaction has changed something.
func (d *DB) committed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mark.Commits++
	d.mark.At = d.now().UTC()
}

// suspect has the next Open look at the whole file if err says that it is damaged.
func (d *DB) suspect(err error) {
	if !d.owns() || !damaged(err) {
		return
	}
	d.mu.Lock()
	known := d.mark.Damaged
	d.mark.Damaged = true
	m := d.mark
	d.mu.Unlock()
	if known {
		return
	}
	if err := m.write(d.beside(markName)); err != nil {
		d.log.Warn("damage not noted", "error", err)
	}
}
