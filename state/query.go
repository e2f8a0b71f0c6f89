package state

import (
	"slices"
	"strings"
)

const (
	defaultLimit = 50
	maxLimit     = 500
	// maxScan is how many tasks one query looks at when it must read text to decide.
	maxScan = 50_000
)

// Task returns a copy of the task, false if it is not in memory.
func (c *Cluster) Task(id string) (Task, bool) {
	r := c.row(id)
	if r == nil {
		return Task{}, false
	}
	return c.task(r), true
}

// TaskName returns the name of a task, empty if the task or its name is unknown.
func (c *Cluster) TaskName(id string) string {
	r := c.row(id)
	if r == nil {
		return ""
	}
	return c.routes.key(r.name).name
}

// task copies a row out. It uses memory of its own, since readers share the lock.
func (c *Cluster) task(r *row) Task { return c.taskBy(c.reader(), r) }

// taskBy is task with rules that nobody else uses meanwhile.
func (c *Cluster) taskBy(u rules, r *row) Task {
	t := Task{ID: c.id(r), State: Pending, Stamp: c.stamp(r), Children: c.children(r)}
	records := c.chain(r, make([]*record, 0, 8))
	for _, e := range records {
		t.UpdatedAt = max(t.UpdatedAt, e.micros)
	}
	u.fill(&t, records)
	c.fillConclusion(&t, r)
	t.Sends = c.repeatedSends(records)
	return t
}

// reader returns the rules with scratch memory of their own.
func (c *Cluster) reader() rules {
	if c.options.Rules == Celery {
		return c.rules
	}
	return &causalRules{c: c, fold: causal{processes: c.processes}}
}

// TaskEvents returns the events of a task that are in memory, by stamp.
func (c *Cluster) TaskEvents(id string) []TaskEvent {
	r := c.row(id)
	if r == nil {
		return nil
	}
	events := make([]TaskEvent, 0, r.count)
	for _, e := range c.chain(r, nil) {
		process := c.processes.key(e.process)
		v := TaskEvent{
			Type: c.typeOf(e), Hostname: process.Hostname, PID: process.PID, Clock: e.clock, Stamp: c.stampOf(e),
			Kind: e.kind, Name: c.routes.key(e.route).name, OwnParent: e.flags&ownParent != 0, OtherParent: e.flags&otherParent != 0,
		}
		if e.kind == TaskSent || e.kind == TaskReceived {
			v.Attempt = int64(e.n)
		}
		events = append(events, v)
	}
	slices.SortFunc(events, func(a, b TaskEvent) int { return a.Stamp.Compare(b.Stamp) })
	return events
}

// typeOf is Celery's name of the type of a record.
func (c *Cluster) typeOf(e *record) string {
	if e.kind == TaskCustom {
		return "task-" + strings.ToLower(string(c.states.name(stateCode(e.n))))
	}
	return "task-" + subjects[e.kind]
}

var subjects = [...]string{ //nolint:gochecknoglobals // a constant table

	TaskSent: "sent", TaskReceived: "received", TaskStarted: "started", TaskSucceeded: "succeeded",
	TaskFailed: "failed", TaskRejected: "rejected", TaskRevoked: "revoked", TaskRetried: "retried",
}

// Tasks returns copies of the tasks that match q, newest change first, at most q.Limit. The page
// is consistent. A query by text reads at most 50,000 tasks; where
// that is not enough the page may hold fewer than q.Limit and still have an older one.
func (c *Cluster) Tasks(q Query) Page {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	limit = min(limit, maxLimit)
	m := c.matcher(q)
	page := Page{Total: c.total(m)}
	if m.never {
		return page
	}
	chunk, i := c.place(q)
	var found []uint32
	var last uint32 // the row after which the next page begins
	scanned, more := 0, false
	visit := func(e *listItem) bool {
		if more = m.text != "" && scanned == maxScan; more {
			return false
		}
		scanned++
		if m.slow(e) {
			if more = len(found) == limit; more {
				return false
			}
			found = append(found, e.row)
		}
		last = e.row
		return true
	}
	if q.Newer {
		c.byStamp.oldest(chunk, i, func(entries []listItem) bool {
			for n := range entries {
				if m.quick(&entries[n]) && !visit(&entries[n]) {
					return false
				}
			}
			return true
		})
		slices.Reverse(found)
	} else {
		c.byStamp.newest(chunk, i, func(entries []listItem) bool {
			for n := len(entries) - 1; n >= 0; n-- {
				if m.quick(&entries[n]) && !visit(&entries[n]) {
					return false
				}
			}
			return true
		})
	}
	page.Tasks = make([]Task, len(found))
	for n, i := range found {
		page.Tasks[n] = c.task(c.rows.at(i))
	}
	c.link(&page, q, found, last, more)
	return page
}

// place is where a page begins: the first item not before From, or, for a newer page, the first after it.
func (c *Cluster) place(q Query) (chunk, i int) {
	switch {
	case q.From == nil && q.Newer:
		return 0, 0
	case q.From == nil:
		return c.byStamp.end()
	}
	bound := 0
	if q.Newer {
		bound = 1
	}
	return c.byStamp.seek(q.From.Stamp.Clock, func(e listItem) bool {
		return c.position(c.rows.at(e.row)).Compare(*q.From) < bound
	})
}

// link sets where the neighbouring pages start.
func (c *Cluster) link(page *Page, q Query, found []uint32, last uint32, more bool) {
	at := func(i uint32) *Position { return new(c.position(c.rows.at(i))) }
	if q.Newer {
		if more {
			page.Newer = at(last)
		}
		if len(found) > 0 {
			page.Older = at(found[len(found)-1])
		}
		return
	}
	if more {
		page.Older = at(last)
	}
	if q.From != nil && len(found) > 0 {
		page.Newer = at(found[0])
	}
}

// matcher is a query in terms of list items.
type matcher struct {
	c       *Cluster
	states  bitset // nil where the query has no such filter
	names   bitset
	workers bitset
	root    *taskKey
	text    string
	named   bitset // routes whose name contains text
	id      []byte // scratch
	never   bool   // no task in memory can match
}

// bitset is a set of small numbers.
type bitset []bool

func (s bitset) has(i uint32) bool { return int(i) < len(s) && s[i] }

// with returns s with i in it, unless i is 0: no number at all.
func (s bitset) with(i uint32) bitset {
	if i == 0 {
		return s
	}
	if int(i) >= len(s) {
		s = append(s, make(bitset, int(i)+1-len(s))...)
	}
	s[i] = true
	return s
}

func (c *Cluster) matcher(q Query) *matcher {
	m := &matcher{c: c, text: strings.ToLower(q.Text)}
	if len(q.States) > 0 {
		m.states = make(bitset, len(c.states.names))
		known := false
		for _, s := range q.States {
			if code, ok := c.states.codes[s]; ok {
				m.states[code], known = true, true
			}
		}
		m.never = !known
	}
	if len(q.Names) > 0 {
		m.names = c.routesWhere(func(k route) bool { return slices.Contains(q.Names, k.name) })
		m.never = m.never || len(m.names) == 0
	}
	if len(q.Workers) > 0 {
		m.workers = bitset{}
		for _, w := range q.Workers {
			m.workers = m.workers.with(c.hosts.lookup(w))
		}
		m.never = m.never || len(m.workers) == 0
	}
	if q.Root != "" {
		k, _ := key(q.Root)
		m.root = &k
	}
	if m.text != "" {
		m.named = c.routesWhere(func(k route) bool { return strings.Contains(strings.ToLower(k.name), m.text) })
	}
	return m
}

func (c *Cluster) routesWhere(f func(route) bool) bitset {
	set := bitset{}
	for i := range c.routes.items {
		if f(c.routes.items[i].key) {
			set = set.with(uint32(i))
		}
	}
	return set
}

// quick decides by columns alone: a million items pass through here.
func (m *matcher) quick(e *listItem) bool {
	return (m.states == nil || m.states.has(uint32(e.state))) &&
		(m.names == nil || m.names.has(e.name) || e.flags&renamed != 0) &&
		(m.workers == nil || m.workers.has(e.worker))
}

// slow decides by the row and its text.
func (m *matcher) slow(e *listItem) bool {
	byName := m.names != nil && !m.names.has(e.name)
	if m.root == nil && m.text == "" && !byName {
		return true
	}
	r := m.c.rows.at(e.row)
	if byName && !m.c.wasNamed(r, m.names) {
		return false
	}
	if m.root != nil && r.id != *m.root && (r.relation == 0 || m.c.relations.at(r.relation).root != *m.root) {
		return false
	}
	return m.text == "" || m.named.has(e.name) || m.contains(r)
}

// wasNamed reports whether a task was received under one of the names.
func (c *Cluster) wasNamed(r *row, names bitset) bool {
	w := c.walk(r)
	for e := w.next(); e != nil; e = w.next() {
		if e.kind == TaskReceived && names.has(e.route) {
			return true
		}
	}
	return false
}

// contains reports whether the text is in the id or any text of the task.
func (m *matcher) contains(r *row) bool {
	if m.id = append(m.id[:0], m.c.id(r)...); containsFold(m.id, m.text) {
		return true
	}
	w := m.c.walk(r)
	for e := w.next(); e != nil; e = w.next() {
		if m.c.text.contains(e.text, m.text) {
			return true
		}
	}
	return false
}

// total counts the matches where that takes no scan, nil elsewhere.
func (c *Cluster) total(m *matcher) *int {
	n := 0
	filters := 0
	for _, used := range []bool{m.states != nil, m.names != nil, m.workers != nil, m.root != nil, m.text != ""} {
		if used {
			filters++
		}
	}
	switch {
	case m.never:
	case filters == 0:
		n = c.index.len()
	case filters > 1 || m.root != nil || m.text != "":
		return nil
	case m.states != nil:
		each(c.tally.states, func(i uint32, count int) {
			if m.states.has(i) {
				n += count
			}
		})
	case m.names != nil && c.tally.renamed > 0:
		return nil
	case m.names != nil:
		each(c.tally.names, func(i uint32, count int) {
			if m.names.has(i) {
				n += count
			}
		})
	case m.workers != nil:
		each(c.tally.workers, func(i uint32, count int) {
			if m.workers.has(i) {
				n += count
			}
		})
	}
	return &n
}
