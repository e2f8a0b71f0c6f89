package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestNodesAsk asks the node that leads to fold events and to dismiss a task, and tells which tasks were removed.
func TestNodesAsk(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: testpostgres.Schema(t), Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	want := []history.NodeRequest{{Task: "x\x00", Dismiss: true, Who: "ann"}, {Task: "x\x00"}, {Events: []byte("y")}}
	for _, r := range want {
		if err := db.Ask(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Asked(t.Context(), 10)
	if err != nil || len(got) != len(want) {
		t.Fatalf("asked %+v, %v, want %+v", got, err, want)
	}
	for i, r := range got {
		want[i].Number = r.Number
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if err := db.Answered(t.Context(), []int64{got[0].Number, got[1].Number}); err != nil {
		t.Fatal(err)
	}
	if left, err := db.Asked(t.Context(), 10); err != nil || len(left) != 1 || string(left[0].Events) != "y" {
		t.Errorf("left %+v, %v, want the events", left, err)
	}
	if leads, err := db.TryLead(t.Context()); !leads || err != nil {
		t.Fatal(leads, err)
	}
	if err := db.NoteRemoved(t.Context(), []string{"x", "y"}); err != nil {
		t.Fatal(err)
	}
	if ids, err := db.RemovedAmong(t.Context(), []string{"y", "z"}); err != nil || !slices.Equal(ids, []string{"y"}) {
		t.Errorf("removed %q, %v, want y", ids, err)
	}
}
