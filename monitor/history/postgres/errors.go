package postgres

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

var (
	errReadOnly = errors.New("opened for reading only")
	errClosed   = errors.New("closed")
)

// SQLSTATEs.
const (
	stateCanceled      = "57014"
	stateDiskFull      = "53100"
	stateTooMany       = "53300"
	stateReadOnly      = "25006"
	stateNoRights      = "42501"
	stateNoDatabase    = "3D000"
	stateNoSchema      = "3F000"
	stateNoTable       = "42P01"
	stateNoColumn      = "42703"
	stateLocked        = "55P03"
	stateDeadlock      = "40P01"
	stateSerialization = "40001"
	stateNoStatement   = "26000"
	stateStatementIs   = "42P05"
	stateProtocol      = "08P01"
	classAuthorization = "28"
	classConnection    = "08"
	classResources     = "53"
	classShutdown      = "57P"
)

const unreachable = "PostgreSQL cannot be reached: check that it runs and that Umbel may connect to it"

// explain adds to an error of PostgreSQL what it means and what to do about it. It keeps passwords out: pgx puts none into its
// errors.
func explain(err error) error {
	if err == nil || errors.Is(err, errTaken) || errors.Is(err, errFollows) {
		return err
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		hint := hintOf(server.Code)
		if hint == "" {
			return err
		}
		text := fmt.Sprintf("%s (%s, SQLSTATE %s)", hint, server.Message, server.Code)
		if passes(server.Code) {
			return &unreachableError{text, err}
		}
		return errors.New(text)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok { // pgx lists all addresses that it has tried, in lines
		return &unreachableError{fmt.Sprintf("%s (%v)", unreachable, dial), err}
	}
	if away(err) {
		return &unreachableError{fmt.Sprintf("%s (%s)", unreachable, strings.Join(strings.Fields(err.Error()), " ")), err}
	}
	return err
}

// away reports whether an error means that PostgreSQL does not answer.
func away(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, net.ErrClosed) || pgconn.Timeout(err) && !errors.Is(err, context.Canceled) ||
		errors.Is(err, driver.ErrBadConn) || strings.Contains(err.Error(), "unexpected EOF") || strings.Contains(err.Error(), "conn closed")
}

// unreachableError is one that passes without a change to the settings.
type unreachableError struct {
	text  string
	cause error
}

// Error returns what it means.
func (e *unreachableError) Error() string { return e.text }

// Unwrap returns the cause.
func (e *unreachableError) Unwrap() error { return e.cause }

// Is reports whether target is history.ErrUnreachable.
func (e *unreachableError) Is(target error) bool { return target == history.ErrUnreachable }

// passes reports whether what an SQLSTATE means ends by itself: a server that starts, or has too much to do.
func passes(code string) bool {
	return strings.HasPrefix(code, classConnection) || strings.HasPrefix(code, classShutdown) ||
		strings.HasPrefix(code, classResources) && code != stateDiskFull
}

// hintOf says what an SQLSTATE means, empty if it is nothing that an operator can act on.
func hintOf(code string) string {
	switch code {
	case stateDiskFull:
		return "the disk of PostgreSQL is full: free some space"
	case stateTooMany:
		return "PostgreSQL has no connections left: raise max_connections, or close others"
	case stateReadOnly:
		return "PostgreSQL is read-only, such as a replica: use the address of the primary server"
	case stateNoRights:
		return "the user of PostgreSQL lacks rights: let it own the database, or grant it ALL on the schema"
	case stateNoDatabase:
		return "PostgreSQL has no such database: create it"
	case stateNoSchema:
		return "there is no schema to write to: create it, or correct search_path in the address"
	case stateNoTable, stateNoColumn:
		return "the tables were changed by another program: restore a backup, or use another database"
	case stateNoStatement, stateStatementIs:
		return "a pooler gives each transaction another connection: add default_query_exec_mode=exec to the address, or have it pool sessions"
	case stateProtocol:
		return "a pooler refuses a parameter of the address: leave it out, and set search_path with ALTER ROLE, or connect to PostgreSQL itself"
	}
	switch {
	case strings.HasPrefix(code, classAuthorization):
		return "PostgreSQL does not let the user in: check the name, the password and pg_hba.conf"
	case strings.HasPrefix(code, classConnection), strings.HasPrefix(code, classShutdown):
		return "PostgreSQL cannot be reached: it stops, starts or closes connections"
	case strings.HasPrefix(code, classResources):
		return "PostgreSQL lacks memory or other resources"
	}
	return ""
}

// annotate says what *err prevented, what it means and what to do about it, unless it is nil or one that callers check for.
func annotate(err *error, format string, args ...any) { tables.Annotate(err, explain, format, args...) }

// noteWrite stores the result of a write for Health.
func (d *DB) noteWrite(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writeErr = err
	if err != nil {
		d.failedAt = d.now()
	}
}
