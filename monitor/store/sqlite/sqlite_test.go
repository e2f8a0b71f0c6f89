package sqlite_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/monitor/store/sqlite"
	"github.com/umbelhq/umbel/monitor/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) storetest.Fixture { return fixture(t.TempDir(), true) })
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(*testing.T) storetest.Fixture { return fixture(sqlite.Memory, false) })
	})
}

func fixture(dir string, durable bool) storetest.Fixture {
	return storetest.Fixture{
		Durable: durable,
		Open:    func(t *testing.T) store.Store { return open(t, dir) },
		Keep: func(t *testing.T, rules store.Rules) store.Store {
			t.Helper()
			d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Rules: rules})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	}
}

// open opens the history in a directory. The caller closes it.
func open(t testing.TB, dir string) *sqlite.DB {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func closed(t testing.TB, d *sqlite.DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
