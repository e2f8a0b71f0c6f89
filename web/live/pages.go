package live

import (
	"sync"
	"time"
)

// The most that is kept of pages whose sockets are yet to come.
const (
	maxPages = 64
	pageAge  = 15 * time.Second
)

// pages keeps what pages showed when they were served, so that the first frame holds only what has changed since. It is
// safe for concurrent use; the zero value is ready.
type pages struct {
	mu   sync.Mutex
	list []served // oldest first
}

// served is a page that was served.
type served struct {
	key  key
	name string
	at   time.Time
	snap Snapshot
}

func (p *pages) add(s served) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.list) > 0 && (len(p.list) >= maxPages || s.at.Sub(p.list[0].at) > pageAge) {
		p.list[0] = served{}
		p.list = p.list[1:]
	}
	p.list = append(p.list, s)
}

// find returns what the page of that name showed, nil if that is not kept.
func (p *pages) find(k key, name string) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.list {
		if s := &p.list[i]; s.name == name && s.key == k && time.Since(s.at) <= pageAge {
			return &s.snap
		}
	}
	return nil
}
