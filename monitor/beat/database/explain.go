package database

import (
	"errors"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/beat"
)

// explain makes err, unless it is one already, a *beat.Error with a sentence for users. What the server says may name the
// user but never the password.
func (b *Database) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*beat.Error](err); ok {
		return err
	}
	return &beat.Error{Text: b.sentence(err), Err: err}
}

func (b *Database) sentence(err error) string {
	file := b.url.Dialect == sqldb.SQLite
	switch fault := sqldb.FaultOf(err); {
	case fault == sqldb.FaultSlow, fault == sqldb.FaultLocked && !file:
		return b.slow()
	case fault == sqldb.FaultLocked:
		return fmt.Sprintf("Another process locks %s.", b.shown)
	case file:
		return fmt.Sprintf("The file %s cannot be read.", b.url.Path())
	case fault == sqldb.FaultUser:
		return fmt.Sprintf("The database %s does not let this user in.", b.shown)
	case fault == sqldb.FaultPermission:
		return fmt.Sprintf("The database %s does not permit it to this user: reading needs SELECT on the tables %s, %s.", b.shown, taskTable, b.joined())
	case fault == sqldb.FaultNoDatabase:
		return fmt.Sprintf("The database %s does not exist.", b.shown)
	case fault == sqldb.FaultAway:
		return fmt.Sprintf("The database %s cannot be reached.", b.shown)
	}
	return fmt.Sprintf("The tables of django-celery-beat in %s cannot be read.", b.shown)
}

func (b *Database) slow() string {
	return fmt.Sprintf("Reading %s took longer than %s and was cancelled.", b.shown, statementTimeout)
}

// joined names the tables of schedules.
func (b *Database) joined() string {
	var names []string
	for _, p := range parts() {
		names = append(names, prefix+p[1])
	}
	return strings.Join(names, ", ")
}
