package database

import (
	"errors"
	"fmt"

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
	fault := sqldb.FaultOf(err)
	switch fault { //nolint:exhaustive // the others have the same names
	case sqldb.FaultUser:
		fault = sqldb.FaultPermission
	case sqldb.FaultNoDatabase:
		fault = sqldb.FaultAway
	}
	f := outboxwatch.Fault(fault)
	return &outboxwatch.Error{Fault: f, Text: b.sentence(f), Err: err}
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
