package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

// TestEmptyWeeksAreDroppedOnceNobodyReads prunes while another session reads tasks, as a backup does.
func TestEmptyWeeksAreDroppedOnceNobodyReads(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	rules := history.RetentionRules{Succeeded: time.Hour, Failed: time.Hour, Lost: time.Hour}
	d, err := postgres.Open(t.Context(), postgres.Options{URL: address, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	old := batches(1, false)[0]
	if _, err := d.Write(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	weeks := func() (n int) {
		t.Helper()
		const count = `SELECT count(*) FROM pg_inherits WHERE inhparent = 'tasks'::regclass AND inhrelid <> 'tasks_active'::regclass`
		if err := db.QueryRowContext(t.Context(), count).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	reads, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reads.Rollback() }()
	var tasks int
	if err := reads.QueryRowContext(t.Context(), `SELECT count(*) FROM tasks`).Scan(&tasks); err != nil || tasks == 0 {
		t.Fatalf("%d tasks, %v", tasks, err)
	}
	prune := func() {
		t.Helper()
		if err := d.Prune(t.Context(), time.Now(), func(history.Pruned) {}); err != nil {
			t.Errorf("prune: %v", err)
		}
	}
	before := weeks()
	if prune(); before == 0 || weeks() != before {
		t.Errorf("%d weeks while tasks are read, want %d", weeks(), before)
	}
	if err := reads.Rollback(); err != nil {
		t.Fatal(err)
	}
	if prune(); weeks() != 0 {
		t.Errorf("%d weeks are left, want none", weeks())
	}
}
