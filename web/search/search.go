// Package search reads pages of the list of tasks together with how many there are, for pages and API
// alike. It waits for the tasks, but not for long to count them.
package search

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/history"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/query"
)

// CountTimeout is how long a list waits for counts.
const CountTimeout = 150 * time.Millisecond

// Backend has the tasks.
type Backend interface {
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Count(ctx context.Context, q lang.Query) (history.Count, error)
}

// Page is a page of tasks with the number of tasks on all pages.
type Page struct {
	history.TaskPage

	Total history.Count
}

// Read returns the page that q asks for.
func Read(ctx context.Context, b Backend, q query.Tasks, now time.Time) (Page, error) {
	var p Page
	var g errgroup.Group
	g.Go(func() (err error) {
		if p.TaskPage, err = b.Tasks(ctx, q.Request(now)); err != nil {
			err = fmt.Errorf("read tasks: %w", err)
		}
		return err
	})
	var count history.Count
	g.Go(func() error {
		ctx, cancel := context.WithTimeout(ctx, CountTimeout)
		defer cancel()
		if n, err := b.Count(ctx, q.Narrowed()); err == nil { // without it the page tells less
			count = n
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return Page{}, err
	}
	p.Total = count
	shown := len(p.Tasks)
	whole := q.From == nil && p.Next == nil && p.Searched == 0 && q.Sort.Field == 0
	if whole || count.N < shown {
		p.Total = history.Count{N: shown, Exact: whole}
	}
	return p, nil
}
