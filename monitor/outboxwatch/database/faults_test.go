package database_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/outboxwatch/database"
)

// fails checks that an outbox cannot be read, and that one sentence says why.
func fails(t *testing.T, b *database.Outbox, fault outboxwatch.Fault, words ...string) {
	t.Helper()
	_, err := b.Stats(t.Context())
	e, ok := errors.AsType[*outboxwatch.Error](err)
	if !ok || e.Fault != fault {
		t.Errorf("error = %v, want the fault %s", err, fault)
		return
	}
	for _, word := range append(words, ".") {
		if !strings.Contains(e.Text, word) {
			t.Errorf("the sentence %q does not contain %q", e.Text, word)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v contains the password", err)
	}
}

func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	fails(t, open(t, "postgres://u:s3cret@127.0.0.1:1/shop?connect_timeout=1"), outboxwatch.FaultAway, "cannot be reached", "127.0.0.1:1/shop")
	fails(t, open(t, "sqlite:///"+filepath.Join(t.TempDir(), "none.db")), outboxwatch.FaultAway, "cannot be opened", "none.db")
}

// as returns a URL for another user of the same database, created by the statements.
func as(t *testing.T, p *testdjango.Project, user string, statements ...string) string {
	t.Helper()
	db := connect(t, "pgx", p.URL)
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	user += strings.TrimPrefix(u.Path, "/shop")
	execute(t, db, "CREATE ROLE "+user+" LOGIN PASSWORD 's3cret'")
	t.Cleanup(func() {
		db := connect(t, "pgx", p.URL)
		for _, s := range []string{"DROP OWNED BY " + user, "DROP ROLE " + user} {
			if _, err := db.Exec(s); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
		_ = db.Close()
	})
	for _, s := range statements {
		execute(t, db, s+" TO "+user)
	}
	u.User = url.UserPassword(user, "s3cret")
	return u.String()
}

// TestSelectOnly reads as a user who may only read, and grants it what the page says.
func TestSelectOnly(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, "")
	b := open(t, as(t, p, "reader", "GRANT SELECT ON celery_outbox, celery_outbox_dead_letter"))
	s, err := b.Stats(t.Context())
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	if got := strings.Join(s.MissingGrants, "\n"); len(s.MissingGrants) != 2 || !strings.Contains(got, `GRANT INSERT ON "celery_outbox" TO "reader`) ||
		!strings.Contains(got, `GRANT DELETE ON "celery_outbox_dead_letter" TO "reader`) {
		t.Errorf("missing grants:\n%s\nwant INSERT and DELETE", got)
	}
	for _, grant := range s.MissingGrants {
		execute(t, connect(t, "pgx", p.URL), grant)
	}
	if s, err = b.Stats(t.Context()); err != nil || len(s.MissingGrants) > 0 {
		t.Errorf("missing grants after they were granted: %q, %v", s.MissingGrants, err)
	}
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, "")
	fails(t, open(t, as(t, p, "nobody", "GRANT SELECT ON celery_outbox")), outboxwatch.FaultPermission, "SELECT on celery_outbox and celery_outbox_dead_letter")
}

func TestOtherTables(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *testdjango.Project) {
		t.Helper()
		b := open(t, p.URL)
		change := func(sql string) {
			p.Do(t, nil, "from django.db import connection\nconnection.cursor().execute(args[0])", sql)
		}
		if _, err := b.Stats(t.Context()); err != nil {
			t.Fatalf("stats: %v", err)
		}
		change("DROP INDEX celery_outbox_retry_idx")
		fails(t, b, outboxwatch.FaultIndexes, "lacks the index celery_outbox_retry_idx")
		change("ALTER TABLE celery_outbox RENAME COLUMN redacted_args TO other")
		fails(t, b, outboxwatch.FaultColumns, "celery_outbox", "lacks redacted_args", "migrations")
		if _, err := b.Rows(t.Context(), outboxwatch.RowRequest{Limit: 1, Payload: true}); err == nil {
			t.Error("rows without the column are read")
		}
		change("DROP TABLE celery_outbox")
		fails(t, b, outboxwatch.FaultNoTable, "no table celery_outbox", "migrations")
	})
}

func TestTimesWithoutZone(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, "")
	execute(t, connect(t, "pgx", p.URL), "ALTER TABLE celery_outbox ALTER COLUMN created_at TYPE timestamp")
	fails(t, open(t, p.URL), outboxwatch.FaultColumns, "USE_TZ")
}

func TestTablesInASchema(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, "")
	db := connect(t, "pgx", p.URL)
	execute(t, db, `CREATE SCHEMA "Billing"`)
	for _, table := range []string{"celery_outbox", "celery_outbox_dead_letter"} {
		execute(t, db, `ALTER TABLE `+table+` SET SCHEMA "Billing"`)
	}
	fails(t, open(t, p.URL), outboxwatch.FaultNoTable, "?schema=")
	b := open(t, p.URL+"&schema=Billing&name=billing&stale_timeout=600")
	if s, err := b.Stats(t.Context()); err != nil || b.Name() != "billing" || len(s.MissingGrants) > 0 {
		t.Errorf("stats of %s: %+v, %v", b.Name(), s, err)
	}
}

func TestLockedFile(t *testing.T) {
	t.Parallel()
	p := testdjango.SQLite(t, "")
	db := connect(t, "sqlite", strings.TrimPrefix(p.URL, "sqlite:///"))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	b := open(t, p.URL)
	fails(t, b, outboxwatch.FaultLocked, "Another process locks")
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stats(t.Context()); err != nil {
		t.Errorf("after the lock: %v", err)
	}
}

// TestSlowStatement holds a table so that the timeout of a statement ends the wait for it.
func TestSlowStatement(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, "")
	tx, err := connect(t, "pgx", p.URL).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE celery_outbox IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	b := open(t, p.URL)
	_, err = b.Stats(t.Context())
	e, ok := errors.AsType[*outboxwatch.Error](err)
	if !ok || e.Fault != outboxwatch.FaultSlow && e.Fault != outboxwatch.FaultLocked {
		t.Errorf("error = %v, want that of a timeout", err)
	}
}

// TestReadingWritesNothing shows that a reading session cannot write.
func TestReadingWritesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p *testdjango.Project) {
		t.Helper()
		b := open(t, p.URL)
		if err := b.TryToWrite(t.Context()); err == nil {
			t.Error("a reading session has written")
		}
		if got := b.MaxConnections(); got > 2 {
			t.Errorf("%d connections at most, want 2", got)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"mysql://u:s3cret@h/d":                    "mysql are not supported",
		"postgres:":                               "no scheme",
		"sqlite://":                               "path",
		"postgres://u:s3cret%zz@h/d":              "malformed",
		"postgres://u:s3cret@h":                   "?name=",
		"postgres://u:s3cret@h/d?stale_timeout=x": "stale_timeout",
	} {
		b, err := database.New(database.Options{URL: text})
		if err == nil {
			_ = b.Close()
			t.Errorf("%s: no error", text)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

// TestStatsKeepLocks reads the outbox while the same process writes to the file, and has another process write too. On Unix
// the locks of SQLite end when the process closes any descriptor of the file.
func TestStatsKeepLocks(t *testing.T) {
	t.Parallel()
	p := testdjango.SQLite(t, "")
	conn, err := connect(t, "sqlite", strings.TrimPrefix(p.URL, "sqlite:///")).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, p.URL).Stats(t.Context()); err != nil {
		t.Fatal(err)
	}
	var result string
	p.Do(t, &result, `
import sqlite3
try:
    sqlite3.connect(args[0], timeout=0.1).execute("BEGIN IMMEDIATE")
    result = "begun"
except sqlite3.OperationalError as e:
    result = str(e)`, strings.TrimPrefix(p.URL, "sqlite:///"))
	if !strings.Contains(result, "locked") {
		t.Errorf("another process writes at the same time: %s", result)
	}
}
