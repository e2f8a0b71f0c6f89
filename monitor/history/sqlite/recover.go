package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

const (
	recoveryBatch  = 500 // tasks written at once
	repairedSuffix = ".repaired"
)

// Recovered is what was copied from a damaged file.
type Recovered struct {
	Tasks      int // new ones; events are also added to tasks that were there
	Unreadable int // rows of tasks and journal entries that cannot be decoded
	// Rows counts the rows copied from other tables, by name. Skipped are tables that were not copied since the history
	// has rows of its own that must not be mixed with them; Incomplete are tables with parts that cannot be read.
	Rows       map[string]int
	Skipped    []string
	Incomplete []string
}

// formerFailureColumns are those of the schemas up to 19.
const formerFailureColumns = "failure, name, type, message, place, resolved"

// copiedTables returns the tables that are copied row by row, each after those it refers to. Tables with alone are copied
// only if the history has no rows in the table of that name.
func copiedTables() []struct{ name, columns, key, alone string } {
	return []struct{ name, columns, key, alone string }{
		{name: "failures", columns: formerFailureColumns + ", note, note_by, note_at, assignee, assigned_at", key: "failure"},
		{name: "views", columns: "name, query, sort, cols"},
		{name: "marks", columns: "at, text, link, service, version, actor", alone: "marks"},
		{name: "workers", columns: "name, body"},
		{name: "snapshots", columns: "at, clock, body", key: "at"},
		{name: "rollups", columns: "span, at, name, worker, queue, received, succeeded, failed, retried, wait, run"},
		{name: "outbox_samples", columns: "at, outbox, ready, oldest, dead"},
		{name: "alert_rules", alone: "alert_rules", key: "rule", columns: "rule, name, enabled, definition, receivers, muted, muted_by, saved, saved_by"},
		{name: "alert_firings", alone: "alert_rules", key: "firing", columns: "firing, rule, name, subject, began, ended, value, evidence, notified, acked, acked_by"},
		{name: "tokens", alone: "tokens", key: "token", columns: "token, hash, name, identity, role, payload, created, expires, used"},
		{name: "outbox", alone: "outbox", key: "command", columns: tables.CommandColumns},
		{name: "outbox_nodes", alone: "outbox", columns: "node, command"},
		{name: "dead_letters", alone: "outbox", key: "command", columns: "command, reason, at"},
		{name: "idempotency", alone: "outbox", columns: "key, print, first, at"},
		{name: "audit", alone: "audit", key: "record", columns: tables.AuditColumns},
	}
}

// Recover copies what can be read from the damaged file at path, and calls progress after each step. It does not change
// that file.
func (d *DB) Recover(ctx context.Context, path string, progress func(Recovered)) (Recovered, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Recovered{}, fmt.Errorf("repair: %w", err)
	}
	from, err := connect(path, url.Values{"mode": {"ro"}, "_busy_timeout": {"5000"}, "_pragma": {"cell_size_check(1)"}}, 1)
	if err != nil {
		return Recovered{}, fmt.Errorf("repair %s: %w", path, err)
	}
	s := &recovery{
		d: d, from: from, size: info.Size(), progress: progress, done: Recovered{Rows: make(map[string]int)},
		cluster: state.New(state.Options{MaxTasks: 2 * recoveryBatch, Track: true}),
	}
	err = s.run(ctx)
	if e := from.Close(); err == nil {
		err = e
	}
	return s.done, tables.Wrap("repair "+path, err)
}

// MarkRepaired renames a damaged file, so that DamagedFiles does not return it anymore.
func MarkRepaired(path string) (string, error) {
	to := path + repairedSuffix
	for _, suffix := range []string{"-wal", "-shm", "-mark", ""} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return to, nil
}

// recovery is one call of Recover.
type recovery struct {
	d        *DB
	from     *sql.DB
	size     int64 // of the file
	progress func(Recovered)
	done     Recovered
	cluster  *state.Cluster // merges the events that are read with those that are there
}

func (s *recovery) run(ctx context.Context) error {
	if err := checkApplicationID(ctx, s.from); err != nil && !damaged(err) {
		return err
	}
	if err := s.from.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(new(int)); err != nil {
		return fmt.Errorf("nothing can be read of it: %w", err)
	}
	alone := make(map[string]bool)
	for _, t := range copiedTables() {
		if t.alone != "" {
			var n int
			if err := s.d.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM `+t.alone+`)`).Scan(&n); err != nil {
				return err
			}
			alone[t.alone] = n == 0
		}
	}
	if err := s.duplicateRules(ctx); err != nil {
		return err
	}
	if err := s.tasks(ctx); err != nil {
		return err
	}
	if err := s.journal(ctx); err != nil {
		return err
	}
	symbols, err := s.symbols(ctx)
	if err != nil {
		return err
	}
	for _, t := range copiedTables() {
		if t.alone != "" && !alone[t.alone] {
			s.done.Skipped = append(s.done.Skipped, t.name)
			continue
		}
		if err := s.table(ctx, t.name, t.columns, t.key, symbols); err != nil {
			return err
		}
		s.progress(s.done)
	}
	return nil
}

// duplicateRules copies the rules by which the tasks are grouped that follow, and has those of the history grouped by them.
func (s *recovery) duplicateRules(ctx context.Context) error {
	const name = "duplicate_rules"
	err := s.from.QueryRowContext(ctx, `SELECT 1 FROM sqlite_schema WHERE name = ?`, name).Scan(new(int))
	if errors.Is(err, sql.ErrNoRows) { // up to schema 11
		return nil
	}
	if err := s.table(ctx, name, "name, exclude, at, actor", "", nil); err != nil {
		return err
	}
	if s.done.Rows[name] == 0 {
		return nil
	}
	if err := s.d.ReloadRules(ctx); err != nil {
		return err
	}
	return s.d.update(ctx, func(t *tx) error {
		return t.exec(`INSERT INTO duplicate_steps (name, done, last) SELECT name, 0, (SELECT max(task) FROM tasks) FROM duplicate_rules
			WHERE EXISTS (SELECT 1 FROM tasks) ON CONFLICT DO UPDATE SET done = 0, last = excluded.last`)
	})
}

// tasks copies every task that has its events.
func (s *recovery) tasks(ctx context.Context) error {
	n := 0
	query := `SELECT t.task, t.id, e.body FROM tasks t NOT INDEXED CROSS JOIN events e USING (task) WHERE t.task `
	err := s.ranges(ctx, "tasks", query, "t.task", func(rows *sql.Rows) (int64, error) {
		var key int64
		var id any
		var body []byte
		if err := rows.Scan(&key, &id, &body); err != nil {
			return 0, err
		}
		if n++; n%recoveryBatch == 0 {
			if err := s.save(ctx); err != nil {
				return 0, fatalError{err}
			}
		}
		if s.replay(idText(id), body) != nil {
			s.done.Unreadable++
		}
		return key, nil
	})
	if err != nil {
		return err
	}
	return s.save(ctx)
}

// replay applies the saved events of a task, so that they are saved.
func (s *recovery) replay(id string, body []byte) error {
	journal, err := state.Journal(id, body)
	if err != nil {
		return err
	}
	return s.cluster.Replay(journal, nil, func(*state.Event, state.Change) {})
}

// journal copies the events that were not in tasks yet.
func (s *recovery) journal(ctx context.Context) error {
	err := s.ranges(ctx, "journal", `SELECT entry, body FROM journal WHERE entry `, "entry", func(rows *sql.Rows) (int64, error) {
		var key int64
		var body []byte
		if err := rows.Scan(&key, &body); err != nil {
			return 0, err
		}
		if s.cluster.Replay(body, nil, func(*state.Event, state.Change) {}) != nil {
			s.done.Unreadable++
		}
		if s.cluster.Unsaved() >= recoveryBatch {
			if err := s.save(ctx); err != nil {
				return 0, fatalError{err}
			}
		}
		return key, nil
	})
	if err != nil {
		return err
	}
	return s.save(ctx)
}

// save writes the tasks of the cluster, merged with those that are there.
func (s *recovery) save(ctx context.Context) error {
	for s.cluster.Unsaved() > 0 {
		var b history.Batch
		fresh := 0
		for _, u := range s.cluster.TakeUnsaved(recoveryBatch) {
			b.Tasks = append(b.Tasks, history.Task(u))
			if !u.Stored {
				fresh++
			}
		}
		w, err := s.d.Write(ctx, b)
		if err != nil {
			return err
		}
		if err := s.cluster.Saved(true, w.Existing); err != nil {
			return err
		}
		s.done.Tasks += fresh - len(w.Existing)
	}
	s.progress(s.done)
	return nil
}

// symbols reads the symbols of the file.
func (s *recovery) symbols(ctx context.Context) (map[int64]string, error) {
	all := make(map[int64]string)
	err := s.ranges(ctx, "symbols", `SELECT symbol, text FROM symbols WHERE symbol `, "symbol", func(rows *sql.Rows) (int64, error) {
		var n int64
		var text string
		err := rows.Scan(&n, &text)
		all[n] = text
		return n, err
	})
	return all, err
}

// table copies rows that are not there yet. One without a numeric key is read up to the first damaged place.
func (s *recovery) table(ctx context.Context, name, columns, key string, symbols map[int64]string) error {
	var rows [][]any
	from := name
	if name == "rollups" && s.from.QueryRowContext(ctx, `SELECT 1 FROM sqlite_schema WHERE name = 'minutes'`).Scan(new(int)) == nil {
		from = "minutes" // as it was called up to schema 10
	}
	newer := slices.Contains([]string{"outbox_samples", "tokens", "snapshots", "alert_rules", "alert_firings", "marks"}, name)
	if newer && s.from.QueryRowContext(ctx, `SELECT 1 FROM sqlite_schema WHERE name = ?`, name).Scan(new(int)) != nil {
		return nil // the file is of a schema before 13, 14, 16, 17 or 19
	}
	if name == "audit" && s.from.QueryRowContext(ctx, `SELECT 1 FROM pragma_table_info('audit') WHERE name = 'kind'`).Scan(new(int)) != nil {
		columns = tables.FormerAuditColumns
	}
	if name == "failures" && s.from.QueryRowContext(ctx, `SELECT 1 FROM pragma_table_info('failures') WHERE name = 'note'`).Scan(new(int)) != nil {
		columns = formerFailureColumns
	}
	width := strings.Count(columns, ",") + 1
	take := func(r *sql.Rows) (int64, error) {
		row := make([]any, width)
		into := make([]any, width)
		for i := range row {
			into[i] = &row[i]
		}
		if err := r.Scan(into...); err != nil {
			return 0, err
		}
		rows = append(rows, row)
		n, _ := row[0].(int64) // the key
		return n, nil
	}
	if key != "" {
		if err := s.ranges(ctx, name, `SELECT `+columns+` FROM `+from+` WHERE `+key+` `, key, take); err != nil {
			return err
		}
	} else if whole, err := s.each(ctx, `SELECT `+columns+` FROM `+from, nil, take); err != nil {
		return err
	} else if !whole {
		s.markIncomplete(name)
	}
	return s.insert(ctx, name, columns, rows, symbols)
}

func (s *recovery) insert(ctx context.Context, name, columns string, rows [][]any, symbols map[int64]string) error {
	query := `INSERT INTO ` + name + ` (` + columns + `) VALUES (?` + strings.Repeat(`, ?`, strings.Count(columns, ",")) + `) ON CONFLICT DO NOTHING`
	if name == "views" { // the table allows equal names, but users could not tell them apart
		query = `INSERT INTO views (` + columns + `) SELECT ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM views WHERE name = ?1)`
	}
	for len(rows) > 0 {
		some := rows[:min(len(rows), recoveryBatch)]
		rows = rows[len(some):]
		taken := 0
		err := s.d.update(ctx, func(t *tx) error {
			added := sums{}
			for _, row := range some {
				if name == "rollups" {
					if err := t.translate(row[2:5], symbols); err != nil {
						return err
					}
				}
				n, err := t.change(query, row...)
				if err != nil {
					return err
				}
				if taken += n; n > 0 && name == "rollups" {
					added.addRow(row)
				}
			}
			return t.addSums(added)
		})
		if err != nil {
			return explain(err)
		}
		s.done.Rows[name] += taken
	}
	return nil
}

// translate replaces symbols of the other file by those of this one.
func (t *tx) translate(row []any, symbols map[int64]string) error {
	for i := range row {
		n, _ := row[i].(int64)
		if n == 0 {
			continue
		}
		own, err := t.symbol(symbols[n])
		if err != nil {
			return err
		}
		row[i] = own
	}
	return nil
}

func (s *recovery) markIncomplete(table string) {
	if n := len(s.done.Incomplete); n == 0 || s.done.Incomplete[n-1] != table {
		s.done.Incomplete = append(s.done.Incomplete, table)
	}
}
