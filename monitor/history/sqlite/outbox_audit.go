package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// newestAudit selects the highest number that a record ever had.
const newestAudit = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit'`

// audit appends a record.
func (t *tx) audit(a history.AuditRecord) error {
	var hash string
	err := t.get(`SELECT hash FROM audit ORDER BY record DESC LIMIT 1`, nil, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	// Not the number after the last: that one may have been cut off, and must be missed.
	if err := t.get(newestAudit, nil, &a.ID); err != nil {
		return err
	}
	a.ID++
	return t.exec(`INSERT INTO audit (record, at, actor, remote, action, target, detail, commands, first, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.At.UnixMicro(), a.Actor, a.RemoteAddr, a.Action, a.Target, a.Detail, a.Commands, a.FirstCommand, chain(hash, &a))
}

// chain returns the hash of a record that follows the one with hash before: SHA-256, in hex, of that and of all
// fields in their order, numbers as 8 bytes, big end first, texts after their length as such a number.
func chain(before string, a *history.AuditRecord) string {
	var b []byte
	number := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) {
		number(int64(len(s)))
		b = append(b, s...)
	}
	text(before)
	number(a.ID)
	number(a.At.UnixMicro())
	for _, s := range []string{a.Actor, a.RemoteAddr, a.Action, a.Target, a.Detail} {
		text(s)
	}
	number(int64(a.Commands))
	number(a.FirstCommand)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// AppendAudit implements history.Outbox.
func (d *DB) AppendAudit(ctx context.Context, a history.AuditRecord) error {
	return d.change(ctx, "write audit record", func(t *tx) error { return t.audit(a) })
}

// AuditLog implements history.Outbox.
func (d *DB) AuditLog(ctx context.Context, before int64, limit int) (list []history.AuditRecord, next int64, err error) {
	defer annotate(&err, "read audit log")
	limit = min(max(limit, 1), 500)
	bytes := 0
	err = d.eachRecord(ctx, func(a history.AuditRecord) error {
		bytes += len(a.Detail) + len(a.Target)
		if len(list) == limit || len(list) > 0 && bytes > auditBytes {
			next = list[len(list)-1].ID
			return errStop
		}
		list = append(list, a)
		return nil
	}, `WHERE ?1 = 0 OR record < ?1 ORDER BY record DESC LIMIT ?2`, before, limit+1)
	if errors.Is(err, errStop) {
		err = nil
	}
	return list, next, err
}

// auditBytes bounds the length of a page of records, unless its first one is longer.
const auditBytes = 4 << 20

func (d *DB) eachRecord(ctx context.Context, f func(history.AuditRecord) error, where string, args ...any) error {
	return eachRow(ctx, d.read, `SELECT record, at, actor, remote, action, target, detail, commands, first, hash FROM audit `+where, args,
		func(rows *sql.Rows) error {
			var a history.AuditRecord
			var at int64
			err := rows.Scan(&a.ID, &at, &a.Actor, &a.RemoteAddr, &a.Action, &a.Target, &a.Detail, &a.Commands, &a.FirstCommand, &a.Hash)
			if err != nil {
				return err
			}
			a.At = time.UnixMicro(at)
			return f(a)
		})
}

// VerifyAudit implements history.Outbox.
func (d *DB) VerifyAudit(ctx context.Context) (bad int64, err error) {
	defer annotate(&err, "verify audit log")
	newest, err := number[int64](ctx, d.read, newestAudit)
	if err != nil {
		return 0, err
	}
	const page = 500
	var last int64
	var hash string
	for last < newest {
		before := last
		err := d.eachRecord(ctx, func(a history.AuditRecord) error {
			if a.ID != last+1 || chain(hash, &a) != a.Hash {
				return errStop
			}
			last, hash = a.ID, a.Hash
			return nil
		}, `WHERE record > ? ORDER BY record LIMIT ?`, before, page)
		if errors.Is(err, errStop) || err == nil && last == before {
			return last + 1, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}
