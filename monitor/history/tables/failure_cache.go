package tables

import (
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// FailureCache caches pages of groups for requests with a MaxAge. It reads one page at a time.
type FailureCache struct {
	mu    sync.Mutex
	pages map[failureKey]failureEntry
}

type failureKey struct {
	resolved, all, busiest bool
	assignee               string
	after                  history.FailurePosition
	limit                  int
	from, to               int64
	only                   fingerprint.ID
}

type failureEntry struct {
	at   time.Time
	page history.FailurePage
}

// Page returns the page that r asks for, from f if no cached one is new enough.
func (c *FailureCache) Page(r history.FailureRequest, f func() (history.FailurePage, error)) (history.FailurePage, error) {
	const most = 32
	k := failureKey{assignee: r.Assignee, all: r.Resolved == nil, busiest: r.Busiest, limit: r.Limit}
	if r.Resolved != nil {
		k.resolved = *r.Resolved
	}
	if r.After != nil {
		k.after = *r.After
	}
	if r.Spanned() {
		k.from, k.to = r.From.UnixMicro(), r.To.UnixMicro()
	}
	if r.Only != nil {
		k.only = *r.Only
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.pages[k]; ok && r.Now.Sub(e.at) < r.MaxAge {
		return e.page, nil
	}
	page, err := f()
	if err != nil {
		return history.FailurePage{}, err
	}
	if c.pages == nil || len(c.pages) >= most {
		c.pages = make(map[failureKey]failureEntry)
	}
	c.pages[k] = failureEntry{r.Now, page}
	return page, nil
}

// Forget has pages read anew.
func (c *FailureCache) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages = nil
}
