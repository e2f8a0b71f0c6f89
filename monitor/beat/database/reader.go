package database

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/celery"
)

// reader reads within one transaction.
type reader struct {
	*Database
	ctx context.Context //nolint:containedctx // of the transaction
	tx  *sql.Tx
}

// named is the name of a table, with its schema.
func (r *reader) named(table string) string {
	if r.schema != "" {
		return r.schema + "." + table
	}
	return table
}

// columns returns the types of a table's columns, none if there is no such table.
func (r *reader) columns(table string) (map[string]string, error) {
	query, name := `SELECT attname, format_type(atttypid, NULL) FROM pg_catalog.pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`, sqldb.Quote(r.named(table))
	if r.url.Dialect == sqldb.SQLite {
		query, name = `SELECT name, type FROM pragma_table_info(?)`, table
	}
	rows, err := r.tx.QueryContext(r.ctx, query, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	m := map[string]string{}
	for rows.Next() {
		var column, kind string
		if err := rows.Scan(&column, &kind); err != nil {
			return nil, err
		}
		m[column] = kind
	}
	return m, rows.Err()
}

// parts are the tables of schedules with what is read of them: alias, table, the task's column that refers to it, columns.
func parts() [][]string {
	return [][]string{
		{"i", "intervalschedule", "interval_id", "every", "period"},
		{"c", "crontabschedule", "crontab_id", "minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"},
		{"s", "solarschedule", "solar_id", "event", "latitude", "longitude"},
		{"k", "clockedschedule", "clocked_id", "clocked_time"},
	}
}

// table reads every periodic task with its schedule. Versions of the package differ in columns: what a table does not
// have is read as NULL.
func (r *reader) table() (t beat.Table, err error) {
	columns, err := r.columns(taskTable)
	if err != nil {
		return t, err
	}
	if len(columns) == 0 {
		return t, &beat.Error{Text: fmt.Sprintf("The database %s has no table %s: run the migrations of django-celery-beat, or give ?schema= in the URL.", r.shown, r.named(taskTable))}
	}
	for _, needed := range []string{"id", "name", "task", "enabled"} {
		if _, ok := columns[needed]; !ok {
			return t, &beat.Error{Text: fmt.Sprintf("The table %s in %s has no column %s, and so is not that of django-celery-beat as Umbel knows it.", r.named(taskTable), r.shown, needed)}
		}
	}
	t.Naive = columns["last_run_at"] == "timestamp without time zone"
	var selected []string
	add := func(alias, column string, there map[string]string) {
		if _, ok := there[column]; ok {
			selected = append(selected, alias+"."+column)
		} else {
			selected = append(selected, "NULL")
		}
	}
	for _, c := range []string{"id", "name", "task", "queue", "enabled", "one_off", "start_time", "expires", "last_run_at", "date_changed", "total_run_count"} {
		add("p", c, columns)
	}
	from := []string{"FROM " + sqldb.Quote(r.named(taskTable)) + " p"}
	for _, part := range parts() {
		alias, table, key := part[0], prefix+part[1], part[2]
		there, err := r.columns(table)
		if err != nil {
			return t, err
		}
		if _, ok := columns[key]; !ok || len(there) == 0 {
			there = nil
		}
		if there == nil && columns[key] != "" {
			t.Lacks = append(t.Lacks, r.named(table))
		}
		if there == nil {
			selected = append(selected, "NULL")
		} else {
			from = append(from, "LEFT JOIN "+sqldb.Quote(r.named(table))+" "+alias+" ON "+alias+".id = p."+key)
			selected = append(selected, alias+".id")
		}
		for _, c := range part[3:] {
			add(alias, c, there)
		}
	}
	query := fmt.Sprintf("SELECT %s %s ORDER BY p.id LIMIT %d", strings.Join(selected, ", "), strings.Join(from, " "), beat.MaxEntries+1)
	if t.Entries, err = r.entries(query); err != nil {
		return t, err
	}
	if t.Cut = len(t.Entries) > beat.MaxEntries; t.Cut {
		t.Entries = slices.Delete(t.Entries, beat.MaxEntries, len(t.Entries))
	}
	return t, nil
}

func (r *reader) entries(query string) ([]beat.Entry, error) {
	rows, err := r.tx.QueryContext(r.ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []beat.Entry
	for rows.Next() {
		e, err := entry(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, rows.Err()
}

func entry(rows *sql.Rows) (e beat.Entry, err error) {
	var queue, period, minute, hour, days, months, weekdays, zone, event, latitude, longitude sql.NullString
	var enabled, oneOff sql.NullBool
	var runs, interval, crontab, solar, clocked, every sql.NullInt64
	var start, expires, last, changed, at moment
	err = rows.Scan(&e.ID, &e.Name, &e.Task, &queue, &enabled, &oneOff, &start, &expires, &last, &changed, &runs,
		&interval, &every, &period, &crontab, &minute, &hour, &days, &months, &weekdays, &zone,
		&solar, &event, &latitude, &longitude, &clocked, &at)
	if err != nil {
		return e, err
	}
	e.Queue, e.Enabled, e.OneOff, e.Runs = queue.String, enabled.Bool, oneOff.Bool, runs.Int64
	e.StartTime, e.Expires, e.LastRunAt, e.ChangedAt = start.Time, expires.Time, last.Time, changed.Time
	s := &e.Schedule
	switch {
	case interval.Valid:
		s.Kind, s.Every, s.Period = beat.Interval, every.Int64, period.String
	case crontab.Valid:
		s.Kind, s.Minute, s.Hour, s.DayOfMonth = beat.Crontab, minute.String, hour.String, days.String
		s.MonthOfYear, s.DayOfWeek, s.Timezone = months.String, weekdays.String, zone.String
	case solar.Valid:
		s.Kind, s.Event, s.Latitude, s.Longitude = beat.Solar, event.String, degrees(latitude.String), degrees(longitude.String)
	case clocked.Valid:
		s.Kind, s.At = beat.Clocked, at.Time
	}
	return e, nil
}

// degrees leaves out zeros at the end, which only PostgreSQL keeps.
func degrees(decimal string) string {
	if strings.Contains(decimal, ".") {
		return strings.TrimRight(strings.TrimRight(decimal, "0"), ".")
	}
	return decimal
}

// moment is a column with a time, zero for NULL.
type moment struct{ time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		m.Time = time.Time{}
	case time.Time:
		m.Time = v.UTC()
	case string:
		m.Time, _ = celery.ParseTime(v)
	case []byte:
		m.Time, _ = celery.ParseTime(string(v))
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}
