package web

import (
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
)

// Bounds of what the numbers beside facets are counted from, for each query.
const (
	maxFacetTasks = 10_000
	facetPage     = 100 // at first: the next ones are larger
	maxFacetPage  = 500
	facetTimeout  = 5 * time.Millisecond
	breakdownAge  = 2 * time.Second
)

// breakdown is how many tasks that match a query have which values. Unless it is whole, there may be more.
type breakdown struct {
	counts state.Counts // ByState, ByName, ByWorker and ByQueue
	whole  bool
}

// breakdown counts by the values of a field among the tasks that match the other conditions of a query: those are the
// tasks that a choice of another value leads to. all is the breakdown of all tasks.
func (p *tasksPage) breakdown(ctx context.Context, q lang.Query, f lang.Field, all breakdown) (breakdown, error) {
	q = q.Drop(f)
	if q.All() {
		return all, nil
	}
	return p.breakdowns.get(q.String(), func() (breakdown, error) {
		b := breakdown{counts: state.Counts{
			ByState: map[state.State]int{}, ByName: map[string]int{}, ByWorker: map[string]int{}, ByQueue: map[string]int{},
		}}
		r := history.TaskRequest{Query: q, Limit: facetPage, Now: p.now()}
		for start := time.Now(); b.counts.Tasks < maxFacetTasks && (p.trace != nil || time.Since(start) < facetTimeout); {
			page, err := p.backend.Tasks(ctx, r)
			if err != nil {
				return breakdown{}, fmt.Errorf("count facets: %w", err)
			}
			for i := range page.Tasks {
				b.add(&page.Tasks[i])
			}
			if r.From = page.Next; r.From == nil {
				b.whole = page.Searched == 0
				break
			}
			r.Limit = min(2*r.Limit, maxFacetPage)
		}
		return b, nil
	})
}

func (b *breakdown) add(t *state.Task) {
	b.counts.Tasks++
	b.counts.ByState[t.State]++
	count := func(by map[string]int, value *string) {
		if value != nil && *value != "" {
			by[*value]++
		}
	}
	count(b.counts.ByName, t.Name)
	count(b.counts.ByWorker, t.Worker)
	count(b.counts.ByQueue, t.Queue)
}
