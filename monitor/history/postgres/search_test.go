package postgres_test

import (
	"testing"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/historytest"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*postgres.DB){
		"as it is":   func(*postgres.DB) {},
		"row by row": (*postgres.DB).SearchSlowly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			historytest.Search(t, historytest.SearchFixture{Open: func(t *testing.T) history.Store {
				t.Helper()
				d := open(t, testpostgres.Schema(t))
				t.Cleanup(func() { closed(t, d) })
				limit(d)
				return d
			}, Bounded: name == "row by row"})
		})
	}
}
