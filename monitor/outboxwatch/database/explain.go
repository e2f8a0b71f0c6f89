package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
	"modernc.org/sqlite"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// explain makes err, unless it is one already, an error with a sentence for users. What the server says may name the
// user but never the password.
func (b *Outbox) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*outboxwatch.Error](err); ok {
		return err
	}
	e := &outboxwatch.Error{Fault: outboxwatch.FaultAway, Err: err}
	if server, ok := errors.AsType[*pq.Error](err); ok {
		e.Fault = postgresFault(string(server.Code))
	}
	if file, ok := errors.AsType[*sqlite.Error](err); ok {
		e.Fault = sqliteFault(file)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Fault = outboxwatch.FaultSlow
	}
	e.Text = b.sentence(e.Fault)
	return e
}

func (b *Outbox) sentence(f outboxwatch.Fault) string {
	switch f {
	case outboxwatch.FaultAway:
		if b.dialect == sqldb.SQLite {
			return fmt.Sprintf("The file %s cannot be opened.", b.url.Path())
		}
		return fmt.Sprintf("The database %s cannot be reached.", b.shown)
	case outboxwatch.FaultSlow:
		return fmt.Sprintf("A statement on %s took longer than %s and was cancelled.", b.shown, statementTimeout)
	case outboxwatch.FaultPermission:
		return fmt.Sprintf("The database %s does not permit it to this user: reading needs SELECT on %s and %s.", b.shown, b.table, b.dead)
	case outboxwatch.FaultNoTable:
		return fmt.Sprintf("The database %s has no table %s or %s: run the migrations of django-celery-outbox, or give ?schema= in the URL.", b.shown, b.table, b.dead)
	case outboxwatch.FaultColumns:
		return fmt.Sprintf("The tables of %s have other columns than django-celery-outbox 0.4: run its migrations.", b.shown)
	case outboxwatch.FaultLocked:
		return fmt.Sprintf("Another process locks %s.", b.shown)
	default:
		return fmt.Sprintf("The outbox in %s cannot be read.", b.shown)
	}
}

// postgresFault says what an SQLSTATE means.
func postgresFault(code string) outboxwatch.Fault {
	switch {
	case code == "42501" || strings.HasPrefix(code, "28"): // insufficient privilege; invalid authorization
		return outboxwatch.FaultPermission
	case code == "42P01" || code == "3F000": // undefined table; invalid schema
		return outboxwatch.FaultNoTable
	case code == "42703": // undefined column
		return outboxwatch.FaultColumns
	case code == "57014": // query cancelled
		return outboxwatch.FaultSlow
	case code == "55P03": // lock not available
		return outboxwatch.FaultLocked
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"), code == "3D000":
		return outboxwatch.FaultAway // connection; resources; shutdown; no such database
	}
	return outboxwatch.FaultOther
}

// Result codes of SQLite.
const (
	sqliteError    = 1
	sqlitePerm     = 3
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteReadOnly = 8
	sqliteCantOpen = 14
	sqliteAuth     = 23
)

func sqliteFault(e *sqlite.Error) outboxwatch.Fault {
	switch e.Code() & 0xff {
	case sqliteBusy, sqliteLocked:
		return outboxwatch.FaultLocked
	case sqliteCantOpen:
		return outboxwatch.FaultAway
	case sqlitePerm, sqliteAuth, sqliteReadOnly:
		return outboxwatch.FaultPermission
	case sqliteError:
		switch {
		case strings.Contains(e.Error(), "no such table"):
			return outboxwatch.FaultNoTable
		case strings.Contains(e.Error(), "no such column"):
			return outboxwatch.FaultColumns
		}
	}
	return outboxwatch.FaultOther
}
