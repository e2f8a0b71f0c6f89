package sqlite_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/monitor/store/sqlite"
	"github.com/umbelhq/umbel/monitor/store/storetest"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	storetest.Search(t, func(t *testing.T) store.Store {
		t.Helper()
		d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}, func(t *testing.T, s store.Store) {
		t.Helper()
		if err := s.(*sqlite.DB).Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
