package shelf

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/query"
)

// Health says that all is well.
func (m *memory) Health() history.Health { return history.Health{Location: ":memory:"} }

// RetentionRules keep everything.
func (m *memory) RetentionRules() history.RetentionRules { return history.RetentionRules{} }

// ReferenceTime is what the clock says.
func (m *memory) ReferenceTime(context.Context) (time.Time, error) { return time.Now(), nil }

// PlanPrune removes nothing.
func (m *memory) PlanPrune(_ context.Context, now time.Time) (history.PrunePlan, error) {
	all := history.Count{Exact: true}
	return history.PrunePlan{Succeeded: all, Failed: all, Events: all, Size: all, Tasks: len(m.match(query.Query{}, now))}, nil
}
