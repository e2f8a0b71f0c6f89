package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
	"modernc.org/sqlite"

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
	if errors.Is(err, context.DeadlineExceeded) {
		return b.slow()
	}
	if server, ok := errors.AsType[*pq.Error](err); ok {
		return b.serverSaid(string(server.Code))
	}
	if file, ok := errors.AsType[*sqlite.Error](err); ok && (file.Code()&0xff == 5 || file.Code()&0xff == 6) { // SQLITE_BUSY, SQLITE_LOCKED
		return fmt.Sprintf("Another process locks %s.", b.shown)
	}
	if b.url.Dialect == sqldb.SQLite {
		return fmt.Sprintf("The file %s cannot be read.", b.url.Path())
	}
	return fmt.Sprintf("The database %s cannot be reached.", b.shown)
}

// serverSaid says what an SQLSTATE means.
func (b *Database) serverSaid(code string) string {
	switch {
	case strings.HasPrefix(code, "28"): // invalid authorization
		return fmt.Sprintf("The database %s does not let this user in.", b.shown)
	case code == "42501": // insufficient privilege
		return fmt.Sprintf("The database %s does not permit it to this user: reading needs SELECT on the tables %s, %s.", b.shown, taskTable, b.joined())
	case code == "57014", code == "55P03": // query cancelled; lock not available
		return b.slow()
	case code == "3D000": // no such database
		return fmt.Sprintf("The database %s does not exist.", b.shown)
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"): // connection; resources; shutdown
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
