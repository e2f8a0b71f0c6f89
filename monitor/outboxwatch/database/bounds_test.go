package database_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/outboxwatch/database"
)

// million is the number of rows of the test of bounds, fewer unless the tests are thorough.
func million() int {
	if testenv.Thorough() {
		return 1_000_000
	}
	return outboxwatch.MaxCount + 1000 // more than are counted
}

// statement is one that an outbox has executed.
type statement struct {
	query string
	args  []any
}

// everything reads an outbox in every way and returns the statements, those on the catalogue left out.
func everything(t *testing.T, b *database.Outbox) []statement {
	t.Helper()
	var all []statement
	b.Trace(func(query string, args []any) {
		if strings.Contains(query, `"celery_outbox`) && !strings.Contains(query, "to_regclass") {
			all = append(all, statement{query, args})
		}
	})
	defer b.Trace(nil)
	s, err := b.Stats(t.Context())
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	if got, want := s.States[outboxwatch.Pending], (outboxwatch.Count{N: outboxwatch.MaxCount}); got != want {
		t.Errorf("pending = %v, want %v: no more is counted", got, want)
	}
	if got, want := s.DeadLetters, (outboxwatch.Count{N: outboxwatch.MaxCount}); got != want {
		t.Errorf("dead letters = %v, want %v", got, want)
	}
	states := outboxwatch.States()
	for _, state := range append(states[:], "") {
		for _, name := range []string{"", "shop.nothing", "shop.n*"} {
			r := outboxwatch.RowRequest{State: state, Name: name, Limit: 50, Payload: true}
			for range 2 {
				page, err := b.Rows(t.Context(), r)
				if err != nil {
					t.Fatalf("rows %+v: %v", r, err)
				}
				if r.After = page.Next; page.Next == "" {
					break
				}
			}
		}
	}
	for _, name := range []string{"", "shop.nothing"} {
		page, err := b.DeadLetters(t.Context(), outboxwatch.DeadLetterRequest{Name: name, Limit: 50, Payload: true})
		if err != nil {
			t.Fatalf("dead letters: %v", err)
		}
		if _, err := b.DeadLetters(t.Context(), outboxwatch.DeadLetterRequest{Name: name, Limit: 50, After: page.Next}); err != nil {
			t.Fatalf("dead letters: %v", err)
		}
	}
	ids := make([]string, outboxwatch.MaxByTask)
	for i := range ids {
		ids[i] = fmt.Sprintf("t%d", i)
	}
	if rows, _, err := b.ByTask(t.Context(), ids); err != nil || len(rows) != len(ids)-1 { // there is no t0
		t.Fatalf("%d rows by task, %v, want %d", len(rows), err, len(ids)-1)
	}
	return all
}

// TestNoReadScans fills both tables and has PostgreSQL and SQLite explain every statement.
func TestNoReadScans(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		p := testdjango.PostgreSQL(t, "")
		db := connect(t, "pgx", p.URL)
		for _, fill := range []string{
			`INSERT INTO celery_outbox (task_id, task_name, args, kwargs, options, created_at, retries, schema_version, updated_at, retry_after)
				SELECT 't' || i, 'shop.n' || i %% 50, '[1]', '{}', '{}', now() - interval '1 hour', i %% 3, 1,
					CASE WHEN i %% 4 > 0 THEN now() - i %% 600 * interval '1 s' END, CASE WHEN i %% 4 > 1 THEN now() + (i %% 600 - 300) * interval '1 s' END
				FROM generate_series(1, %d) i`,
			`INSERT INTO celery_outbox (task_id, task_name, args, kwargs, options, created_at, retries, schema_version)
				SELECT 'p' || i, 'shop.pending', '[1]', '{}', '{}', now(), 0, 1 FROM generate_series(1, %d) i`,
			`INSERT INTO celery_outbox_dead_letter (task_id, task_name, args, kwargs, options, created_at, dead_at, retries, schema_version, failure_reason)
				SELECT 't' || i, 'shop.n' || i %% 50, '[1]', '{}', '{}', now(), now(), 5, 1, 'max retries exceeded' FROM generate_series(1, %d) i`,
		} {
			execute(t, db, fmt.Sprintf(fill, million()))
		}
		execute(t, db, "VACUUM ANALYZE celery_outbox")
		execute(t, db, "VACUUM ANALYZE celery_outbox_dead_letter")
		b := open(t, p.URL)
		for _, s := range everything(t, b) {
			var plan []struct{ Plan node }
			explain(t, db, s, &plan)
			plan[0].Plan.walk(func(n node) {
				if n.Type == "Seq Scan" {
					t.Errorf("%s of %s in %s", n.Type, n.Relation, s.query)
				}
				if read := (n.Rows + n.Removed) * n.Loops; read > outboxwatch.MaxCount+1 {
					t.Errorf("%s %s reads %.0f rows in %s", n.Type, n.Index, read, s.query)
				}
			})
		}
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		p := testdjango.SQLite(t, "")
		db := connect(t, "sqlite", strings.TrimPrefix(p.URL, "sqlite:///"))
		for _, fill := range []string{
			`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO celery_outbox (task_id, task_name, args, kwargs, options, created_at, retries, schema_version, updated_at, retry_after)
				SELECT 't' || i, 'shop.n' || i %% 50, '[1]', '{}', '{}', strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-1 hour'), i %% 3, 1,
					CASE WHEN i %% 4 > 0 THEN strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-' || i %% 600 || ' seconds') END,
					CASE WHEN i %% 4 > 1 THEN strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', (i %% 600 - 300) || ' seconds') END FROM n`,
			`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO celery_outbox (task_id, task_name, args, kwargs, options, created_at, retries, schema_version)
				SELECT 'p' || i, 'shop.pending', '[1]', '{}', '{}', strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'), 0, 1 FROM n`,
			`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO celery_outbox_dead_letter (task_id, task_name, args, kwargs, options, created_at, dead_at, retries, schema_version, failure_reason)
				SELECT 't' || i, 'shop.n' || i %% 50, '[1]', '{}', '{}', strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'), strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'), 5, 1, 'max retries exceeded' FROM n`,
		} {
			execute(t, db, fmt.Sprintf(fill, million()))
		}
		b := open(t, p.URL)
		for _, s := range everything(t, b) {
			rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+s.query, s.args...)
			if err != nil {
				t.Fatalf("explain %s: %v", s.query, err)
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					t.Fatal(err)
				}
				// An index that is walked is named; all statements that do have a LIMIT.
				if strings.HasPrefix(detail, "SCAN celery_outbox") && (!strings.Contains(detail, "INDEX") || !strings.Contains(s.query, "LIMIT")) {
					t.Errorf("%s in %s", detail, s.query)
				}
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// node is one of a plan of PostgreSQL.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Plans    []node  `json:"Plans"`
}

func (n node) walk(f func(node)) {
	f(n)
	for _, child := range n.Plans {
		child.walk(f)
	}
}

// explain executes a statement as an Outbox does.
func explain(t *testing.T, db *sql.DB, s statement, plan any) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off"); err != nil {
		t.Fatal(err)
	}
	var text string
	if err := tx.QueryRowContext(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+s.query, s.args...).Scan(&text); err != nil {
		t.Fatalf("explain %s: %v", s.query, err)
	}
	if err := json.Unmarshal([]byte(text), plan); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, driver, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// BenchmarkStats reads an outbox of a million rows.
func BenchmarkStats(b *testing.B) {
	p := testdjango.PostgreSQL(b, "")
	db, err := sql.Open("pgx", p.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(`INSERT INTO celery_outbox (task_id, task_name, args, kwargs, options, created_at, retries, schema_version)
		SELECT 'p' || i, 'shop.pending', '[1]', '{}', '{}', now(), 0, 1 FROM generate_series(1, 1000000) i`); err != nil {
		b.Fatal(err)
	}
	o, err := database.New(database.Options{URL: p.URL})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	for b.Loop() {
		if _, err := o.Stats(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
