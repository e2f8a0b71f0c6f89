package database

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// columnsOf returns the columns that both tables have in django-celery-outbox 0.4, and those of one of them.
func columnsOf(dead bool) []string {
	list := []string{
		"id", "created_at", "retries", "task_id", "task_name", "args", "kwargs", "redacted_args", "redacted_kwargs", "options",
		"sentry_trace_id", "sentry_baggage", "structlog_context", "schema_version",
	}
	if dead {
		return append(list, "dead_at", "failure_reason")
	}
	return append(list, "updated_at", "retry_after")
}

// checkTables returns an error that says what the tables lack.
func (t *reader) checkTables(*outboxwatch.Stats) error {
	for _, dead := range []bool{false, true} {
		table, indexes := t.table, []string{"celery_outbox_pending_idx", "celery_outbox_retry_idx", "celery_outbox_stale_idx"}
		if dead {
			table, indexes = t.dead, []string{"celery_outbox_dlq_dead_at_idx"}
		}
		columns, err := t.columns(table)
		if err != nil {
			return err
		}
		if len(columns) == 0 {
			return t.fault(outboxwatch.FaultNoTable, "The database %s has no table %s: run the migrations of django-celery-outbox, or give ?schema= in the URL.", t.shown, table)
		}
		if lacks := missing(columnsOf(dead), columns); lacks != "" {
			return t.fault(outboxwatch.FaultColumns, "The table %s in %s lacks %s: Umbel reads the tables of django-celery-outbox 0.4, whose migrations add them.", table, t.shown, lacks)
		}
		if columns["created_at"] == "timestamp without time zone" {
			return t.fault(outboxwatch.FaultColumns, "The times in %s have no time zone (USE_TZ is False), so that Umbel cannot tell how old rows are.", table)
		}
		found, err := t.indexes(table)
		if err != nil {
			return err
		}
		if lacks := missing(indexes, found); lacks != "" {
			return t.fault(outboxwatch.FaultIndexes, "The table %s in %s lacks the index %s, without which reading would scan it: run the migrations of django-celery-outbox.", table, t.shown, lacks)
		}
	}
	return nil
}

func (t *reader) fault(f outboxwatch.Fault, format string, args ...any) error {
	return &outboxwatch.Error{Fault: f, Text: fmt.Sprintf(format, args...)}
}

// missing names what of wanted is not there.
func missing(wanted []string, there map[string]string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { _, ok := there[name]; return ok }), ", ")
}

// columns returns the types of a table's columns, none if there is no such table.
func (t *reader) columns(table string) (map[string]string, error) {
	if t.dialect == sqldb.SQLite {
		return t.pairs(`SELECT name, type FROM pragma_table_info(?)`, table)
	}
	return t.pairs(`SELECT attname, format_type(atttypid, NULL) FROM pg_catalog.pg_attribute
		WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped`, sqldb.Quote(table))
}

// indexes returns the names of a table's indexes.
func (t *reader) indexes(table string) (map[string]string, error) {
	if t.dialect == sqldb.SQLite {
		return t.pairs(`SELECT name, '' FROM pragma_index_list(?)`, table)
	}
	return t.pairs(`SELECT c.relname, '' FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = to_regclass(?) AND i.indisvalid`, sqldb.Quote(table))
}

func (t *reader) pairs(query, table string) (map[string]string, error) {
	m := map[string]string{}
	err := t.rows(query, []any{table}, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		m[name] = value
		return err
	})
	return m, err
}

// grants reports what the user lacks for requeuing and purging dead letters.
func (t *reader) grants(s *outboxwatch.Stats) error {
	if t.dialect == sqldb.SQLite {
		if !writable(t.url.Path()) {
			s.ReadOnly = fmt.Sprintf("Umbel may not write to the file %s.", t.url.Path())
		}
		return nil
	}
	var user, identity string
	var sequence sql.NullString
	var standby, insert, remove bool
	err := t.row(`SELECT current_user, pg_is_in_recovery(), has_table_privilege(to_regclass(?), 'INSERT'), has_table_privilege(to_regclass(?), 'DELETE'),
		coalesce((SELECT attidentity::text FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(?) AND attname = 'id'), ''),
		pg_get_serial_sequence(?, 'id')`,
		[]any{sqldb.Quote(t.table), sqldb.Quote(t.dead), sqldb.Quote(t.table), sqldb.Quote(t.table)},
		&user, &standby, &insert, &remove, &identity, &sequence)
	if err != nil {
		return err
	}
	if standby {
		s.ReadOnly = "The database is a standby, which accepts no changes."
	}
	to := " TO " + sqldb.QuoteName(user)
	if !insert {
		s.MissingGrants = append(s.MissingGrants, "GRANT INSERT ON "+sqldb.Quote(t.table)+to)
	}
	if !remove {
		s.MissingGrants = append(s.MissingGrants, "GRANT DELETE ON "+sqldb.Quote(t.dead)+to)
	}
	if identity == "" && sequence.Valid {
		var usage bool
		if err := t.row(`SELECT has_sequence_privilege(?, 'USAGE')`, []any{sequence.String}, &usage); err != nil {
			return err
		}
		if !usage {
			s.MissingGrants = append(s.MissingGrants, "GRANT USAGE ON SEQUENCE "+sequence.String+to)
		}
	}
	return nil
}
