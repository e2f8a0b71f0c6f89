package tables

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// WriteAudit appends a record to the audit log.
func WriteAudit(t Tx, a history.AuditRecord) error {
	// First the number, by which transactions wait for each other where several write. It is not the number after the last: that
	// one may have been cut off, and must be missed.
	if err := t.Get(t.Dialect().nextAudit, nil, &a.ID); err != nil {
		return err
	}
	var hash string
	err := t.Get(`SELECT hash FROM audit ORDER BY record DESC LIMIT 1`, nil, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	a.Kind, a.Outcome = cmp.Or(a.Kind, history.AuditAction), cmp.Or(a.Outcome, history.AuditAccepted)
	return t.Exec(`INSERT INTO audit (`+AuditColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.At.UnixMicro(), a.Actor, a.RemoteAddr, a.Action, a.Target, a.Detail, a.Commands, a.FirstCommand, AuditHash(hash, &a),
		string(a.Kind), string(a.Outcome), a.Method, a.Role, a.Endpoint)
}

const (
	// FormerAuditColumns are those of the schemas up to 14.
	FormerAuditColumns = "record, at, actor, remote, action, target, detail, commands, first, hash"
	// AuditColumns are those of the table audit.
	AuditColumns = FormerAuditColumns + ", kind, outcome, method, role, endpoint"
)

// AuditHash returns the hash of a record that follows the one with hash before: SHA-256, in hex, of that and of all
// fields in their order, numbers as 8 bytes, big end first, texts after their length as such a number. Records that earlier
// versions wrote end with the commands: what follows is left out where all of it is empty.
func AuditHash(before string, a *history.AuditRecord) string {
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
	if more := []string{string(a.Kind), string(a.Outcome), a.Method, a.Role, a.Endpoint}; slices.Max(more) != "" {
		for _, s := range more {
			text(s)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// AppendAudit implements history.Outbox.
func (d Store) AppendAudit(ctx context.Context, a history.AuditRecord) error {
	if a.At.IsZero() {
		a.At = d.engine.Now()
	}
	return d.change(ctx, "write audit record", func(t tx) error { return WriteAudit(t.Tx, a) })
}

// AuditLog implements history.Outbox.
func (d Store) AuditLog(ctx context.Context, f history.AuditFilter) (list []history.AuditRecord, next int64, err error) {
	defer d.engine.Annotate(&err, "read audit log")
	limit := min(max(f.Limit, 1), 500)
	where, args := auditConditions(f)
	bytes := 0
	err = EachAuditRecord(ctx, d.engine.Reader(), func(a history.AuditRecord) error {
		bytes += len(a.Detail) + len(a.Target)
		if len(list) == limit || len(list) > 0 && bytes > auditBytes {
			next = list[len(list)-1].ID
			return errStop
		}
		list = append(list, a)
		return nil
	}, where+` ORDER BY record DESC LIMIT ?`, append(args, limit+1)...)
	if errors.Is(err, errStop) {
		err = nil
	}
	return list, next, err
}

// auditConditions returns the condition of a filter with its arguments.
func auditConditions(f history.AuditFilter) (where string, args []any) {
	where = "WHERE record > 0"
	add := func(condition string, value any) {
		where += " AND " + condition
		args = append(args, value)
	}
	// Records that earlier versions wrote have neither a kind nor an outcome.
	switch f.Kind {
	case "":
	case history.AuditAction:
		add("kind IN ('', ?)", string(f.Kind))
	default:
		add("kind = ?", string(f.Kind))
	}
	switch f.Outcome {
	case "":
	case history.AuditAccepted:
		add("outcome IN ('', ?)", string(f.Outcome))
	default:
		add("outcome = ?", string(f.Outcome))
	}
	if f.Actor != "" {
		add("actor = ?", f.Actor)
	}
	if f.Action != "" {
		add("action = ?", f.Action)
	}
	if !f.From.IsZero() {
		add("at >= ?", f.From.UnixMicro())
	}
	if !f.To.IsZero() {
		add("at < ?", f.To.UnixMicro())
	}
	if f.Before != 0 {
		add("record < ?", f.Before)
	}
	return where, args
}

// auditBytes bounds the length of a page of records, unless its first one is longer.
const auditBytes = 4 << 20

// EachAuditRecord calls f with the records that clauses after FROM select. f must not use the reader.
func EachAuditRecord(ctx context.Context, q Reader, f func(history.AuditRecord) error, where string, args ...any) error {
	return EachRow(ctx, q, `SELECT `+AuditColumns+` FROM audit `+where, args,
		func(rows *sql.Rows) error {
			var a history.AuditRecord
			var at int64
			err := rows.Scan(&a.ID, &at, &a.Actor, &a.RemoteAddr, &a.Action, &a.Target, &a.Detail, &a.Commands, &a.FirstCommand, &a.Hash,
				&a.Kind, &a.Outcome, &a.Method, &a.Role, &a.Endpoint)
			if err != nil {
				return err
			}
			a.At = time.UnixMicro(at)
			return f(a)
		})
}

// VerifyAudit implements history.Outbox.
func (d Store) VerifyAudit(ctx context.Context) (bad int64, err error) {
	defer d.engine.Annotate(&err, "verify audit log")
	newest, err := Number[int64](ctx, d.engine.Reader(), d.engine.Dialect().newestAudit)
	if err != nil {
		return 0, err
	}
	const page = 500
	var last int64
	var hash string
	for last < newest {
		before := last
		err := EachAuditRecord(ctx, d.engine.Reader(), func(a history.AuditRecord) error {
			if a.ID != last+1 || AuditHash(hash, &a) != a.Hash {
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
