package postgres_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	address := testpostgres.Schema(t)
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
	address := testpostgres.Schema(t)
	closed(t, open(t, address))
	testpostgres.Execute(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, true)")
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
	address := testpostgres.Schema(t)
	d := open(t, address)
	defer closed(t, d)
	if _, err := d.Write(t.Context(), history.Batch{Journal: []byte("before")}); err != nil {
		t.Fatal(err)
	}
	testpostgres.Execute(t, address, "UPDATE lease SET holder = 'another', epoch = epoch + 1, until = clock_timestamp() + interval '1 hour'")
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
	address := testpostgres.Schema(t)
	closed(t, open(t, address))
	testpostgres.Execute(t, address, "UPDATE lease SET holder = 'killed', until = clock_timestamp() + interval '700 milliseconds'")
	closed(t, open(t, address))
}

// TestSchemas opens two histories in one database, and one whose user may create no schema.
func TestSchemas(t *testing.T) {
	t.Parallel()
	address := testpostgres.Database(t)
	const one, other = "umbel_eu-1", `umbel_"`
	role := "role_" + strings.ToLower(rand.Text()[:12])
	for _, name := range []string{one, other} {
		d, err := postgres.Open(t.Context(), postgres.Options{URL: address, Schema: name})
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, d)
		if _, err := d.AddMark(t.Context(), history.Mark{At: time.Now(), Text: name}); err != nil {
			t.Fatal(err)
		}
		if h := d.Health().Location; !strings.HasSuffix(h, "?search_path="+name) {
			t.Errorf("location %s does not name the schema", h)
		}
	}
	r, err := postgres.Open(t.Context(), postgres.Options{URL: address, Schema: one, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	marks, err := r.Marks(t.Context(), time.Time{}, time.Now().Add(time.Hour), 9)
	if err != nil || len(marks) != 1 || marks[0].Text != one {
		t.Errorf("marks of %s: %v, %v", one, marks, err)
	}

	testpostgres.Execute(t, address, "CREATE ROLE "+role)
	t.Cleanup(func() { testpostgres.Execute(t, address, "DROP OWNED BY "+role+" CASCADE; DROP ROLE "+role) })
	denied := postgres.Options{URL: address, Schema: "umbel_shop"}
	if strings.Contains(denied.URL, "?") {
		denied.URL += "&role=" + role
	} else {
		denied.URL += "?role=" + role
	}
	_, err = postgres.Open(t.Context(), denied)
	if err == nil || !strings.Contains(err.Error(), "may not create the schema umbel_shop: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without rights: %v", err)
	}
	testpostgres.Execute(t, address, "CREATE SCHEMA umbel_shop AUTHORIZATION "+role)
	d, err := postgres.Open(t.Context(), denied)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, d)
}

func TestSpaceOfActiveTasksIsUsedAgain(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	d := open(t, address)
	defer closed(t, d)
	d.VacuumAfter(100)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, func([]string) {}) }()
	for _, b := range batches(1, true) {
		if _, err := d.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	looks := time.NewTicker(10 * time.Millisecond)
	defer looks.Stop()
	for vacuums := 0; vacuums == 0; <-looks.C {
		if err := db.QueryRowContext(ctx, `SELECT pg_stat_get_vacuum_count('tasks_active'::regclass)`).Scan(&vacuums); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
