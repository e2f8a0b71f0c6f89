package main_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// emptySchema returns the address of a schema of PostgreSQL that ends with the test.
func emptySchema(t *testing.T) string {
	t.Helper()
	address := os.Getenv("UMBEL_TEST_POSTGRES_URL")
	if address == "" {
		t.Skip("UMBEL_TEST_POSTGRES_URL is not set: run it with scripts/services")
	}
	execute := func(statement string) {
		db, err := sql.Open("pgx", address)
		if err == nil {
			_, err = db.ExecContext(context.Background(), statement)
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	name := "test_" + strings.ToLower(rand.Text()[:12])
	execute("CREATE SCHEMA " + name)
	t.Cleanup(func() { execute("DROP SCHEMA " + name + " CASCADE") })
	return address + "?search_path=" + name
}

func TestOneServerUsesADatabase(t *testing.T) {
	t.Parallel()
	url := emptySchema(t)
	first := start(t, nil, "demo", "--history", url)
	status, out, complaint := once(t, nil, nil, "demo", "--history", url, "--listen", "127.0.0.1:0")
	if status != 1 || out != "" || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, "in use by another process: process ") {
		t.Errorf("a second one: status %d and %q, want 1 and a line that says who uses the database", status, complaint)
	}
	if status := first.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("the first one stopped with status %d, want 0", status)
	}
	start(t, nil, "demo", "--history", url).end(t, syscall.SIGTERM)
}

func TestHistoryIsCopiedToADatabase(t *testing.T) {
	t.Parallel()
	url, dir := emptySchema(t), t.TempDir()
	start(t, nil, "demo", "--data-dir", dir).end(t, syscall.SIGTERM)
	for _, want := range []int{0, 1} { // not over another history
		status, out, complaint := once(t, nil, nil, "history", "copy", dir, url)
		if status != want || strings.HasPrefix(out, "copied ") != (want == 0) {
			t.Errorf("copy: status %d, want %d; %q, %q", status, want, out, complaint)
		}
	}
	_, kept, _ := once(t, nil, nil, "tasks", "--data-dir", dir)
	if _, copied, complaint := once(t, nil, nil, "tasks", "--history", url); copied != kept || copied == "" {
		t.Errorf("tasks of the copy: %q, %s; want %q", copied, complaint, kept)
	}
}
