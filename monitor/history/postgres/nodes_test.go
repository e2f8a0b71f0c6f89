package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

func TestOneNodeLeads(t *testing.T) {
	t.Parallel()
	url := testpostgres.Schema(t)
	open := func(name string) *postgres.DB {
		db, err := postgres.Open(t.Context(), postgres.Options{URL: url, Node: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	a, b := open("a"), open("b")
	try := func(db *postgres.DB, want bool) {
		t.Helper()
		if got, err := db.TryLead(t.Context()); got != want || err != nil {
			t.Fatalf("leads: %t, %v, want %t", got, err, want)
		}
	}
	try(a, true)
	try(b, false)
	if _, err := b.Write(t.Context(), history.Batch{Journal: []byte("x")}); err == nil {
		t.Error("a node that follows has written")
	}
	_, before, err := b.Removed(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.NoteRemoved(t.Context(), []string{"x", "y\x00"}); err != nil {
		t.Fatal(err)
	}
	if ids, _, err := b.Removed(t.Context(), before); !slices.Equal(ids, []string{"x", "y\x00"}) || err != nil {
		t.Errorf("removed %q, %v", ids, err)
	}
	lost := a.Lost()
	if err := a.GiveUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-lost
	try(b, true)
	if _, err := a.Write(t.Context(), history.Batch{Journal: []byte("x")}); err == nil {
		t.Error("a node that led has written")
	}
	nodes, _, err := b.Report(t.Context(), history.NodeReport{Connected: true})
	if err != nil || len(nodes) != 1 || !nodes[0].Leads || !nodes[0].Self || !nodes[0].Running() || !strings.HasPrefix(nodes[0].Process, fmt.Sprintf("process %d on ", os.Getpid())) {
		t.Errorf("nodes %+v, %v, want b, which leads", nodes, err)
	}
	if _, _, err := open("b").Report(t.Context(), history.NodeReport{}); err == nil {
		t.Error("two nodes have one name")
	}
}
