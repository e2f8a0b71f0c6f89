package web

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/query"
)

// countAge is how old the count of a view may be, countKept how long an unused one is kept.
const (
	countAge  = 60 * time.Second
	countKept = 10 * time.Minute
)

// counter counts in the background what open pages show beside their views, so that no page waits for it
// for long. It is safe for concurrent use.
type counter struct {
	count   func(ctx context.Context, q query.Query) (history.Count, error)
	changed func() // called when a number is another one
	log     *slog.Logger
	wake    chan struct{} // holds one element when there may be something to count

	mu      sync.Mutex
	running bool
	known   map[string]*counted // by the spelling of the query
}

type counted struct {
	query  query.Query
	count  history.Count
	good   bool          // count was counted
	at     time.Time     // when that was tried last
	wanted time.Time     // when it was asked for last
	first  chan struct{} // closed when it was tried once
}

func newCounter(count func(context.Context, query.Query) (history.Count, error), changed func(), log *slog.Logger) *counter {
	return &counter{count: count, changed: changed, log: log, wake: make(chan struct{}, 1), known: map[string]*counted{}}
}

// get returns how many tasks matched at most a minute ago, false if that is not known. A query that is new
// is waited for until ctx ends.
func (c *counter) get(ctx context.Context, q query.Query) (history.Count, bool) {
	e := c.want(q)
	if e == nil {
		return history.Count{}, false
	}
	select {
	case <-e.first:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.count, e.good
}

// want marks a count as used. It returns nil if run is not running.
func (c *counter) want(q query.Query) *counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return nil
	}
	e := c.known[q.String()]
	if e == nil {
		e = &counted{query: q, first: make(chan struct{})}
		c.known[q.String()] = e
	}
	e.wanted = time.Now()
	if e.wanted.Sub(e.at) >= countAge {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return e
}

// run counts until ctx ends. It returns nil.
func (c *counter) run(ctx context.Context) error {
	c.setRunning(true)
	defer c.setRunning(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		}
		for e := c.due(time.Now()); e != nil && ctx.Err() == nil; e = c.due(time.Now()) {
			c.recount(ctx, e)
		}
	}
}

func (c *counter) setRunning(running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = running
}

// due returns a used count that is too old, nil if there is none, and removes unused ones.
func (c *counter) due(now time.Time) *counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *counted
	for key, e := range c.known {
		switch unseen := now.Sub(e.wanted); {
		case unseen > countKept:
			delete(c.known, key)
		case unseen < countAge && now.Sub(e.at) >= countAge:
			found = e
		}
	}
	return found
}

func (c *counter) recount(ctx context.Context, e *counted) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	n, err := c.count(ctx, e.query)
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "tasks of a view cannot be counted", "error", err)
	}
	c.mu.Lock()
	before := *e
	if e.at.IsZero() {
		close(e.first)
	}
	e.at = time.Now()
	if e.good = err == nil; e.good {
		e.count = n
	}
	another := e.good != before.good || e.count != before.count
	c.mu.Unlock()
	if another {
		c.changed()
	}
}
