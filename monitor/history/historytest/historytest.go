// Package historytest is the conformance suite of history: every Store passes the same tests. It knows no
// database; an adapter's test hands it one in a Fixture. An adapter's TestMain should run goleak, which then
// covers the suite too.
package historytest

import (
	"maps"
	"testing"

	"github.com/umbelhq/umbel/monitor/history"
)

// Fixture is a place for a history. Every call of the function given to Run makes a fresh, empty one.
type Fixture struct {
	// Open opens the history as its last Close left it.
	Open func(t *testing.T) history.Store
	// Keep is Open with rules of retention.
	OpenWithRules func(t *testing.T, rules history.RetentionRules) history.Store
	// Durable says that a history outlives Close.
	Durable bool
}

// Run runs the suite, each test on its own fixture.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Helper()
	run(t, fixture, historyTests(), minutes(), failures(), duplicateTests(), retention(), pastTests())
	RunTables(t, fixture)
}

// RunTables runs the part of the suite that is about what package tables stores.
func RunTables(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Helper()
	run(t, fixture, views(), marks(), outboxes(), outboxSamples(), credentials(), alerts())
}

func run(t *testing.T, fixture func(t *testing.T) Fixture, groups ...map[string]func(storeTest)) {
	t.Helper()
	tests := make(map[string]func(storeTest))
	for _, group := range groups {
		maps.Copy(tests, group)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture(t)
			c := storeTest{t, f, new(openStore)}
			c.Store = c.open()
			test(c)
		})
	}
}

// storeTest is one test of the suite, on its own open store.
type storeTest struct {
	*testing.T
	Fixture
	*openStore
}

// openStore is the store that is open.
type openStore struct{ history.Store }

// open opens the history until the test ends, or until the test closes it.
func (c storeTest) open() history.Store {
	c.Helper()
	s := c.Open(c.T)
	c.Cleanup(func() {
		if err := s.Close(); err != nil {
			c.Errorf("close store: %v", err)
		}
	})
	return s
}

// reopen closes the store and opens it again, if that keeps anything.
func (c storeTest) reopen() {
	c.Helper()
	if !c.Durable {
		return
	}
	if err := c.Close(); err != nil {
		c.Fatalf("close store: %v", err)
	}
	c.Store = c.open()
}

// write commits a batch.
func (c storeTest) write(b history.Batch) history.WriteResult {
	c.Helper()
	w, err := c.Write(c.Context(), b)
	if err != nil {
		c.Fatalf("write: %v", err)
	}
	return w
}
