package sqlite_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/historytest"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
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
		historytest.Run(t, func(t *testing.T) historytest.Fixture { return fixture(t.TempDir(), true) })
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		historytest.Run(t, func(*testing.T) historytest.Fixture { return fixture(sqlite.Memory, false) })
	})
}

func fixture(dir string, durable bool) historytest.Fixture {
	return historytest.Fixture{
		Durable: durable,
		Open:    func(t *testing.T) history.Store { return open(t, dir) },
		OpenWithRules: func(t *testing.T, rules history.RetentionRules) history.Store {
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
