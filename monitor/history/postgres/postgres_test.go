package postgres_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schema makes a schema for a test, and returns the address of the database with it.
func schema(t testing.TB) string {
	t.Helper()
	address := os.Getenv("UMBEL_TEST_POSTGRES_URL")
	if address == "" {
		t.Skip("UMBEL_TEST_POSTGRES_URL is not set: run it with scripts/services")
	}
	name := "test_" + strings.ToLower(rand.Text()[:12])
	execute(t, address, "CREATE SCHEMA "+name)
	t.Cleanup(func() { execute(t, address, "DROP SCHEMA "+name+" CASCADE") })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// execute runs a statement as another program would.
func execute(t testing.TB, address, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err == nil {
		_, err = db.ExecContext(context.Background(), statement)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, address string) *postgres.DB {
	t.Helper()
	d, err := postgres.Open(t.Context(), postgres.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func closed(t testing.TB, d *postgres.DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestOpenTwice(t *testing.T) {
	t.Parallel()
	address := schema(t)
	begin := time.Now()
	d := open(t, address)
	t.Logf("opened in %v", time.Since(begin))
	defer closed(t, d)
	if _, err := postgres.Open(t.Context(), postgres.Options{URL: address}); !errors.Is(err, history.ErrLocked) {
		t.Errorf("opened twice: %v, want %v", err, history.ErrLocked)
	}
	r, err := postgres.Open(t.Context(), postgres.Options{URL: address, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, r)
}

func TestNewerSchema(t *testing.T) {
	t.Parallel()
	address := schema(t)
	closed(t, open(t, address))
	execute(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, true)")
	if _, err := postgres.Open(t.Context(), postgres.Options{URL: address}); !errors.Is(err, history.ErrNewerVersion) {
		t.Errorf("open: %v, want %v", err, history.ErrNewerVersion)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(t.Context(), postgres.Options{URL: "postgres://u:s3cret@127.0.0.1:1/umbel"})
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL cannot be reached") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("open: %v", err)
	}
	_, err = postgres.Open(t.Context(), postgres.Options{URL: "postgres://u:s3cret@127.0.0.1:port/umbel"})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("open: %v", err)
	}
}

// TestTakenLease has another process take the lease, as after 5 s of silence.
func TestTakenLease(t *testing.T) {
	t.Parallel()
	address := schema(t)
	d := open(t, address)
	defer closed(t, d)
	if _, err := d.Write(t.Context(), history.Batch{Journal: []byte("before")}); err != nil {
		t.Fatal(err)
	}
	execute(t, address, "UPDATE lease SET holder = 'another', epoch = epoch + 1, until = clock_timestamp() + interval '1 hour'")
	if _, err := d.Write(t.Context(), history.Batch{Journal: []byte("after")}); !errors.Is(err, history.ErrLocked) {
		t.Errorf("write without the lease: %v, want %v", err, history.ErrLocked)
	}
	if n := d.Health().LastError; !strings.Contains(n, "has taken the lease") {
		t.Errorf("health says %q", n)
	}
}

// TestAbandonedLease opens a history whose last writer was killed.
func TestAbandonedLease(t *testing.T) {
	t.Parallel()
	address := schema(t)
	closed(t, open(t, address))
	execute(t, address, "UPDATE lease SET holder = 'killed', until = clock_timestamp() + interval '700 milliseconds'")
	closed(t, open(t, address))
}

func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	address := schema(t)
	_, err := postgres.Open(t.Context(), postgres.Options{URL: address + "&default_transaction_read_only=on"})
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL is read-only") {
		t.Errorf("open: %v", err)
	}
}
