package postgres_test

import (
	"testing"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/historytest"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	historytest.Run(t, func(t *testing.T) historytest.Fixture { return fixture(testpostgres.Schema(t)) })
}

func fixture(address string) historytest.Fixture {
	return historytest.Fixture{
		Durable: true,
		Open:    func(t *testing.T) history.Store { t.Helper(); return open(t, address) },
		OpenWithRules: func(t *testing.T, rules history.RetentionRules) history.Store {
			t.Helper()
			d, err := postgres.Open(t.Context(), postgres.Options{URL: address, Rules: rules})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	}
}
