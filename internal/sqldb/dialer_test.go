package sqldb_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
)

// TestSilentServer connects to a server that accepts connections and never answers.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	u, err := sqldb.Parse("postgres://u:s3cret@" + l.Addr().String() + "/shop")
	if err != nil {
		t.Fatal(err)
	}
	db, err := u.OpenReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if tx, err := db.BeginTx(ctx, nil); err == nil { // without a limit it would wait until the test's deadline
		_ = tx.Rollback()
		t.Error("a silent server has begun a transaction")
	}
}
