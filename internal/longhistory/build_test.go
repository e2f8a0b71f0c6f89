package longhistory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/umbelhq/umbel/internal/longhistory"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state/query"
)

func TestBuildGoesOnWhereItWasEnded(t *testing.T) {
	t.Parallel()
	const n = longhistory.Tasks(3000)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	if err := longhistory.Build(ctx, dir, n, func(string, int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatalf("Build = %v, want that it is canceled", err)
	}
	first := 0
	err := longhistory.Build(t.Context(), dir, n, func(_ string, done int) {
		if first == 0 {
			first = done
		}
	})
	if err != nil || first != 2000 {
		t.Fatalf("Build = %v after %d tasks first, want 2000: those of before and a batch", err, first)
	}
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	if c, err := d.Count(t.Context(), query.Query{}, longhistory.Now(), 10_000); err != nil || c != (history.Count{N: int(n), Exact: true}) {
		t.Errorf("%+v tasks, %v, want %d", c, err, n)
	}
	for _, q := range n.Queries() {
		parsed, err := query.Parse(q.Query(1))
		if err != nil {
			t.Fatalf("%s: %v", q.Name, err)
		}
		if _, err := d.Tasks(t.Context(), history.TaskRequest{Query: parsed, Sort: q.Sort, Limit: 50, Now: longhistory.Now()}); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
	}
}
