package ingest

import (
	"context"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	maxPage    = 500
	maxFresh   = 20_000 // tasks looked at in memory for one page
	freshChunk = 1_000  // of them under one lock
)

// Tasks returns a page of all tasks that are kept, in memory or in the store.
func (m *Ingester) Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error) {
	r.Limit = min(max(r.Limit, 1), maxPage)
	if page, ok := m.recent(r); ok {
		return page, nil
	}
	return m.merged(ctx, r)
}

// recent answers from memory alone, false where the store could know more.
func (m *Ingester) recent(r history.TaskRequest) (history.TaskPage, bool) {
	q, simple := r.Query.Simple()
	if !simple || r.Sort != (query.Sort{}) {
		return history.TaskPage{}, false
	}
	q.Limit, q.From, q.Newer = r.Limit, r.From, r.Newer
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.restored {
		return history.TaskPage{}, false
	}
	page := m.cluster.Tasks(q)
	if h := m.cluster.LowWaterMark(); h != nil {
		end := page.Older
		if r.Newer {
			end = r.From
		}
		if end == nil || end.Compare(*h) < 0 {
			return history.TaskPage{}, false
		}
	}
	return history.TaskPage{Tasks: page.Tasks, Next: page.Older, Prev: page.Newer}, true
}

// merged answers from the store and from what it does not know yet. Memory is read first: a task that is written
// meanwhile is in both, and one that changes meanwhile is read from memory again.
func (m *Ingester) merged(ctx context.Context, r history.TaskRequest) (history.TaskPage, error) {
	l := newList(r)
	m.fresh(l)
	for asked := r; ; {
		page, err := m.store.Tasks(ctx, asked)
		if err != nil {
			return history.TaskPage{}, err
		}
		m.add(l, page.Tasks)
		onward := page.Next
		if r.Newer {
			onward = page.Prev
		}
		l.searched += page.Searched
		if onward == nil || page.Searched > 0 || l.count(onward) >= r.Limit || l.ends(*onward) {
			return l.page(onward), nil
		}
		asked.From = onward
	}
}

// list gathers a page in the direction in which it is read, from r.From on.
type list struct {
	r        history.TaskRequest
	rows     []listed
	ids      map[string]bool
	end      *state.Position // of what was gathered from memory, nil if that is all
	searched int
}

// listed is a task with its place in the list.
type listed struct {
	state.Task
	at state.Position
}

func newList(r history.TaskRequest) *list { return &list{r: r, ids: make(map[string]bool)} }

// compare orders places in the direction of reading.
func (l *list) compare(a, b state.Position) int {
	if l.r.Sort.Ascending == l.r.Newer {
		return -a.Compare(b)
	}
	return a.Compare(b)
}

// place returns a task's place in the list, false if it has none.
func (l *list) place(t *state.Task) (state.Position, bool) {
	at := state.Position{Stamp: t.Stamp, ID: t.ID}
	if f := l.r.Sort.Field; f != 0 {
		var known bool
		if at.Value, known = f.Int(t); !known {
			return at, false
		}
	}
	return at, l.r.From == nil || l.compare(at, *l.r.From) > 0
}

// take adds a task if it belongs to what is listed.
func (l *list) take(t *state.Task) {
	at, ok := l.place(t)
	if ok && !l.ids[t.ID] && l.r.Query.Match(t, l.r.Now) {
		l.ids[t.ID] = true
		l.rows = append(l.rows, listed{*t, at})
	}
}

// count sorts what was gathered and returns how much of it lies before the place or at it; nil is the end.
func (l *list) count(bound *state.Position) int {
	slices.SortFunc(l.rows, func(a, b listed) int { return l.compare(a.at, b.at) })
	if bound == nil {
		return len(l.rows)
	}
	n, found := slices.BinarySearchFunc(l.rows, *bound, func(a listed, p state.Position) int {
		return l.compare(a.at, p)
	})
	if found {
		n++
	}
	return n
}

// ends reports whether nothing was gathered from memory beyond a place.
func (l *list) ends(at state.Position) bool { return l.end != nil && l.compare(at, *l.end) >= 0 }

// page returns the page. Of what the store has, everything up to the bound was gathered, all of it if that is
// nil.
func (l *list) page(bound *state.Position) history.TaskPage {
	if bound == nil || l.end != nil && l.compare(*l.end, *bound) < 0 {
		bound = l.end
	}
	n := l.count(bound)
	onward := bound
	if n > l.r.Limit || n == l.r.Limit && bound != nil {
		n = l.r.Limit
		onward = new(l.rows[n-1].at)
	}
	page := history.TaskPage{Searched: l.searched}
	for _, row := range l.rows[:n] {
		page.Tasks = append(page.Tasks, row.Task)
	}
	var back *state.Position
	if l.r.From != nil && n > 0 {
		back = new(l.rows[0].at)
	}
	page.Prev, page.Next = back, onward
	if l.r.Newer {
		slices.Reverse(page.Tasks)
		page.Prev, page.Next = onward, back
	}
	return page
}

// fresh gathers the tasks that the store does not know as they are now.
func (m *Ingester) fresh(l *list) {
	m.gather(l, func(c *state.Cluster, from *state.Position, newer bool) []state.Task {
		return c.UnsavedTasks(from, newer, freshChunk)
	})
}

// gather takes tasks from memory, chunk by chunk, each in the direction in which next was told to go.
func (m *Ingester) gather(l *list, next func(c *state.Cluster, from *state.Position, newer bool) []state.Task) {
	byStamp := l.r.Sort.Field == 0
	newer := byStamp && l.r.Sort.Ascending != l.r.Newer
	var from *state.Position
	if byStamp {
		from = l.r.From
	}
	for looked := 0; ; {
		m.mu.RLock()
		chunk := next(m.cluster, from, newer)
		m.mu.RUnlock()
		for i := range chunk {
			l.take(&chunk[i])
		}
		if len(chunk) == 0 {
			return
		}
		last := &chunk[len(chunk)-1]
		from = &state.Position{Stamp: last.Stamp, ID: last.ID}
		looked += len(chunk)
		if byStamp && len(l.rows) > l.r.Limit {
			l.stop(from)
			return
		}
		if looked >= maxFresh {
			l.searched += looked
			if byStamp {
				l.stop(from)
			}
			return
		}
	}
}

// stop notes that nothing beyond a place was gathered from memory.
func (l *list) stop(at *state.Position) {
	if l.end == nil || l.compare(*at, *l.end) < 0 {
		l.end = at
	}
}

// add takes rows of the store, as memory knows them where it does.
func (m *Ingester) add(l *list, rows []state.Task) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for i := range rows {
		t, held := m.cluster.Task(rows[i].ID)
		switch {
		case held:
			l.take(&t)
		case !l.ids[rows[i].ID]:
			at, _ := l.place(&rows[i])
			l.ids[rows[i].ID] = true
			l.rows = append(l.rows, listed{rows[i], at})
		}
	}
}
