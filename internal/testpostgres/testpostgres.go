// Package testpostgres gives tests schemas of PostgreSQL. No code outside tests may import it.
package testpostgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/umbelhq/umbel/internal/testenv"
)

// Database returns the URL of an empty database, which ends with the test.
func Database(t testing.TB) string {
	t.Helper()
	server, u, name := fresh(t)
	Execute(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { Execute(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// fresh returns the URL of PostgreSQL, and a name that nothing has there.
func fresh(t testing.TB) (server string, u *url.URL, name string) {
	t.Helper()
	server = testenv.Postgres(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("parse the URL of PostgreSQL: %v", err)
	}
	return server, u, "test_" + strings.ToLower(rand.Text()[:12])
}

// Schema returns the URL of an empty schema, which ends with the test.
func Schema(t testing.TB) string {
	t.Helper()
	server, u, name := fresh(t)
	Execute(t, server, "CREATE SCHEMA "+name)
	t.Cleanup(func() { Execute(t, server, "DROP SCHEMA "+name+" CASCADE") })
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// Execute runs a statement as another program would.
func Execute(t testing.TB, url, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err == nil {
		_, err = db.ExecContext(context.WithoutCancel(t.Context()), statement)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
