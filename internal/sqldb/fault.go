package sqldb

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// Fault says why a statement failed.
type Fault string

// The faults.
const (
	FaultAway       Fault = "away"        // no connection, or it broke
	FaultSlow       Fault = "slow"        // the statement ran into its timeout
	FaultUser       Fault = "user"        // the server does not let the user in
	FaultPermission Fault = "permission"  // the user may not
	FaultNoDatabase Fault = "no_database" // the server has no such database
	FaultNoTable    Fault = "no_table"    // a table or its schema does not exist
	FaultColumns    Fault = "columns"     // a column does not exist
	FaultLocked     Fault = "locked"      // another transaction or process locks what is read
	FaultOther      Fault = "other"
)

// FaultOf says what an error of a database means. An error that is not of its driver says that it is away.
func FaultOf(err error) Fault {
	if errors.Is(err, context.DeadlineExceeded) {
		return FaultSlow
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return postgresFault(server.Code)
	}
	if file, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteFault(file)
	}
	return FaultAway
}

// postgresFault says what an SQLSTATE means.
func postgresFault(code string) Fault {
	switch {
	case strings.HasPrefix(code, "28"): // invalid authorization
		return FaultUser
	case code == "42501": // insufficient privilege
		return FaultPermission
	case code == "3D000": // no such database
		return FaultNoDatabase
	case code == "42P01" || code == "3F000": // undefined table; invalid schema
		return FaultNoTable
	case code == "42703": // undefined column
		return FaultColumns
	case code == "57014": // query cancelled
		return FaultSlow
	case code == "55P03": // lock not available
		return FaultLocked
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"): // connection; resources; shutdown
		return FaultAway
	}
	return FaultOther
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

func sqliteFault(e *sqlite.Error) Fault {
	switch e.Code() & 0xff {
	case sqliteBusy, sqliteLocked:
		return FaultLocked
	case sqliteCantOpen:
		return FaultAway
	case sqlitePerm, sqliteAuth, sqliteReadOnly:
		return FaultPermission
	case sqliteError:
		switch {
		case strings.Contains(e.Error(), "no such table"):
			return FaultNoTable
		case strings.Contains(e.Error(), "no such column"):
			return FaultColumns
		}
	}
	return FaultOther
}
