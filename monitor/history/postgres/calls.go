package postgres

import (
	"cmp"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/state"
)

// neighbours is how many tasks of its call a task is compared with: as many that were first saved before it, and after.
const neighbours = 32

// alone are the ways to repeat work by which a single task is a group.
const alone = int64(state.Redelivery | state.Resend)

// callRow is what grouping needs of a row of tasks.
type callRow struct {
	task int64
	week int
	call string // 16 bytes, empty if the arguments are not known as a whole
	name string // empty if unknown
	dup  int64
	span duplicates.Span
}

// callColumns are scanned by scanCall.
const callColumns = `task, week, call, coalesce(name, ''), dup, state, coalesce(started, 0), coalesce(finished, 0), coalesce(run, -1), lost IS NOT NULL`

// scanCall scans callColumns, and further ones into more.
func scanCall(rows *sql.Rows, more ...any) (r callRow, lost bool, err error) {
	var times duplicates.Times
	var call []byte
	into := []any{&r.task, &r.week, &call, &r.name, &r.dup, &times.State, &times.Started, &times.Ended, &times.Run, &times.Lost}
	err = rows.Scan(append(into, more...)...)
	times.Skipped = r.dup&int64(state.Skipped) != 0
	r.call, r.span = string(call), times.Span()
	return r, times.Lost, err
}

// findCalls sets the calls of tasks as they are to be saved, without marks of other tasks. A call that is not known from its
// events may be known from a message that Umbel has sent, or from before, if that was for a task of this name.
func (t *tx) findCalls(records []record) error {
	var unknown []string
	known := make([]bool, len(records))
	arguments := make([]duplicates.Arguments, len(records))
	for i := range records {
		v := &records[i].View
		r := &records[i].call
		r.name, r.dup, r.span = nameOf(v), int64(v.OwnDuplicates()), duplicates.SpanOf(v)
		if v.Name == nil {
			continue
		}
		arguments[i], known[i] = duplicates.ArgumentsOf(v)
		if !known[i] && !duplicates.Redacted(v) { // a digest of what was redacted would let it be guessed
			unknown = append(unknown, v.ID)
		}
	}
	published, err := t.publishedArguments(unknown)
	if err != nil {
		return err
	}
	for i := range records {
		r, v := &records[i], &records[i].View
		if v.Name == nil {
			continue
		}
		ok := known[i]
		if !ok && slices.Contains(unknown, v.ID) {
			arguments[i], ok = published[v.ID]
			if !ok && r.old != nil && r.old.call != "" && r.old.callRow.name == r.call.name {
				r.call.call = r.old.call
			}
		}
		if call := arguments[i].Call(*v.Name, t.db.calls.Of(*v.Name)); ok && call.Known() {
			r.call.call = string(call[:])
		}
	}
	return nil
}

// publishedArguments returns the arguments of those tasks that were published through the outbox.
func (t *tx) publishedArguments(ids []string) (map[string]duplicates.Arguments, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found := make(map[string]duplicates.Arguments)
	err := t.Each(`SELECT payload FROM outbox WHERE task = ANY($1) AND task <> '' AND kind = 'task'`, []any{ids}, func(rows *sql.Rows) error {
		var payload []byte
		if err := rows.Scan(&payload); err != nil {
			return err
		}
		var message struct {
			ID           string
			Args, Kwargs json.RawMessage
		}
		if json.Unmarshal(payload, &message) == nil && slices.Contains(ids, message.ID) {
			if a, ok := duplicates.ParseArguments(message.Args, message.Kwargs); ok {
				found[message.ID] = a
			}
		}
		return nil
	})
	return found, err
}

// change is a task before, nil if it is new, and after, nil if it is removed.
type change struct{ old, new *callRow }

// stays reports whether a task has the call that it had.
func (c change) stays() bool { return c.old != nil && c.new != nil && c.old.call == c.new.call }

// joins and leaves report whether a task comes to a call, or goes from one.
func (c change) joins() bool  { return c.new != nil && c.new.call != "" && !c.stays() }
func (c change) leaves() bool { return c.old != nil && c.old.call != "" && !c.stays() }

// unchanged reports whether nothing that others are compared with has changed.
func (c change) unchanged() bool { return c.stays() && c.old.span == c.new.span }

// regrouping is what a transaction changes of groups of duplicates.
type regrouping struct {
	t       *tx
	changes []change
	groups  map[string]*group     // those that are stored, by key
	members map[string][]*callRow // of calls, in the order of their numbers, as far as they were read
	before  map[*callRow]int64    // marks of those that were read
	lose    map[*callRow]bool     // that may lose marks
}

// group is a row of duplicates.
type group struct {
	key    string
	name   string
	n      int64
	newest int64
	marks  int64
}

// singleKey is the key of the group of a single task.
func singleKey(task int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(task))) }

// regroup sets the marks of tasks that change, as they follow from others of their calls, and brings the table of groups up to
// date. It returns other tasks whose marks have changed.
func (t *tx) regroup(changes []change) ([]*callRow, error) {
	g := regrouping{
		t: t, changes: changes, groups: make(map[string]*group), members: make(map[string][]*callRow),
		before: make(map[*callRow]int64), lose: make(map[*callRow]bool),
	}
	if err := g.readGroups(); err != nil {
		return nil, err
	}
	if err := g.readMembers(); err != nil {
		return nil, err
	}
	for _, c := range changes {
		g.compare(c)
	}
	for r := range g.lose {
		r.dup &= int64(state.OwnDuplicates)
		g.around(r.call, r.task, func(o *callRow) {
			mine, _ := duplicates.Compare(r.span, o.span)
			r.dup |= int64(mine)
		})
	}
	var marked []*callRow
	for r, before := range g.before {
		if r.dup != before {
			marked = append(marked, r)
		}
	}
	return marked, g.save()
}

// readGroups reads the groups of all calls before and after.
func (g *regrouping) readGroups() error {
	seen := make(map[string]bool)
	var keys [][]byte
	add := func(key string) {
		if key != "" && !seen[key] {
			seen[key] = true
			keys = append(keys, []byte(key))
		}
	}
	for _, c := range g.changes {
		if c.old != nil {
			add(c.old.call)
		}
		if c.new != nil {
			add(c.new.call)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return g.t.Each(`SELECT key, name, n, newest, marks FROM duplicates WHERE key = ANY($1)`, []any{keys}, func(rows *sql.Rows) error {
		var key []byte
		var r group
		err := rows.Scan(&key, &r.name, &r.n, &r.newest, &r.marks)
		r.key = string(key)
		g.groups[r.key] = &r
		return err
	})
}

// Reads of other tasks of calls. Twice as many as neighbours are all that a neighbour is compared with.
const (
	newestOfCall = `SELECT o.* FROM unnest($1::bytea[]) AS w (c) CROSS JOIN LATERAL
		(SELECT ` + callColumns + ` FROM tasks WHERE call = w.c AND call <> '' ORDER BY task DESC LIMIT 64) AS o`
	aroundOfCall = `SELECT o.* FROM unnest($1::bytea[], $2::bigint[]) AS w (c, n) CROSS JOIN LATERAL (
		(SELECT ` + callColumns + ` FROM tasks WHERE call = w.c AND call <> '' AND task < w.n ORDER BY task DESC LIMIT 64) UNION ALL
		(SELECT ` + callColumns + ` FROM tasks WHERE call = w.c AND call <> '' AND task > w.n ORDER BY task LIMIT 64)) AS o`
)

// readMembers reads the tasks around those that come to a call, that go from one, or whose times have changed.
func (g *regrouping) readMembers() error {
	replaced, joined := make(map[int64]bool), make(map[string]bool)
	var newest, calls [][]byte
	var numbers []int64
	around := func(call string, task int64) { calls, numbers = append(calls, []byte(call)), append(numbers, task) }
	for _, c := range g.changes {
		if c.new != nil && c.new.call != "" {
			g.members[c.new.call] = append(g.members[c.new.call], c.new)
		}
		if c.old != nil {
			replaced[c.old.task] = true
		}
		switch {
		case c.unchanged():
		case c.old == nil:
			if c.new.call != "" && !joined[c.new.call] {
				joined[c.new.call] = true
				newest = append(newest, []byte(c.new.call))
			}
		case c.stays():
			if g.groups[c.old.call] != nil { // else there are no others
				around(c.old.call, c.old.task)
			}
		default:
			if c.joins() {
				around(c.new.call, c.new.task)
			}
			if c.leaves() {
				around(c.old.call, c.old.task)
			}
		}
	}
	read := make(map[int64]bool)
	take := func(rows *sql.Rows) error {
		r, _, err := scanCall(rows)
		if err == nil && !replaced[r.task] && !read[r.task] {
			read[r.task] = true
			g.members[r.call] = append(g.members[r.call], &r)
			g.before[&r] = r.dup
		}
		return err
	}
	if len(newest) > 0 {
		if err := g.t.Each(newestOfCall, []any{newest}, take); err != nil {
			return err
		}
	}
	if len(calls) > 0 {
		if err := g.t.Each(aroundOfCall, []any{calls, numbers}, take); err != nil {
			return err
		}
	}
	for _, m := range g.members {
		slices.SortFunc(m, func(a, b *callRow) int { return cmp.Compare(a.task, b.task) })
	}
	return nil
}

// around calls f with the neighbours of a task among those of a call.
func (g *regrouping) around(call string, task int64, f func(o *callRow)) {
	m := g.members[call]
	i, _ := slices.BinarySearchFunc(m, task, func(r *callRow, task int64) int { return cmp.Compare(r.task, task) })
	for _, o := range m[max(0, i-neighbours):min(len(m), i+neighbours+1)] {
		if o.task != task {
			f(o)
		}
	}
}

// compare compares a task that changes with others.
func (g *regrouping) compare(c change) {
	if c.unchanged() {
		c.new.dup |= c.old.dup &^ int64(state.OwnDuplicates)
		return
	}
	if c.leaves() {
		g.around(c.old.call, c.old.task, func(o *callRow) {
			if _, had := duplicates.Compare(c.old.span, o.span); had != 0 && c.new != nil {
				g.lose[o] = true
			}
		})
	}
	if c.new == nil || c.new.call == "" {
		return
	}
	var before duplicates.Span
	if c.stays() {
		before = c.old.span
	}
	g.around(c.new.call, c.new.task, func(o *callRow) {
		mine, theirs := duplicates.Compare(c.new.span, o.span)
		c.new.dup |= int64(mine)
		o.dup |= int64(theirs)
		if _, had := duplicates.Compare(before, o.span); had&^theirs != 0 {
			g.lose[o] = true
		}
	})
}

// save saves what changes of the table of groups.
func (g *regrouping) save() error {
	joined, left := make(map[string]int64), make(map[string]int64)
	var calls []string
	for _, c := range g.changes {
		if c.joins() {
			joined[c.new.call]++
		}
		if c.leaves() {
			left[c.old.call]++
		}
	}
	seen := make(map[string]bool)
	for _, c := range g.changes {
		for _, r := range []*callRow{c.old, c.new} {
			if r != nil && r.call != "" && !seen[r.call] {
				seen[r.call] = true
				calls = append(calls, r.call)
			}
		}
	}
	var put []group
	var gone [][]byte
	had := make(map[int64]bool)
	single := func(r *callRow) {
		if r.dup&alone != 0 {
			put = append(put, group{singleKey(r.task), r.name, 1, r.task, r.dup})
		} else if had[r.task] {
			gone = append(gone, []byte(singleKey(r.task)))
		}
	}
	for _, c := range g.changes {
		if c.old != nil && c.old.dup&alone != 0 {
			had[c.old.task] = true
		}
		switch {
		case c.new == nil && had[c.old.task]:
			gone = append(gone, []byte(singleKey(c.old.task)))
		case c.new != nil && c.new.call == "":
			single(c.new)
		}
	}
	for _, call := range calls {
		members, was := g.members[call], g.groups[call]
		n := int64(len(members)) // without a group, all are read: there is one at most
		if was != nil {
			n = was.n + joined[call] - left[call]
		}
		if n >= 2 {
			now := group{key: call, n: n}
			for _, r := range members {
				now.name, now.newest, now.marks = r.name, max(now.newest, r.task), now.marks|r.dup
				if was == nil && r.dup&alone != 0 {
					gone = append(gone, []byte(singleKey(r.task)))
				}
			}
			if was != nil {
				now.marks |= was.marks
				now.name = was.name
				if left[call] == 0 {
					now.newest = max(now.newest, was.newest)
				} else if err := g.t.Get(`SELECT coalesce(max(task), 0) FROM tasks WHERE call = $1 AND call <> '' AND task <> ALL($2)`,
					[]any{[]byte(call), g.leaving(call)}, &was.newest); err != nil {
					return err
				} else {
					now.newest = max(now.newest, was.newest)
				}
			}
			if was == nil || *was != now {
				put = append(put, now)
			}
			continue
		}
		if was != nil {
			gone = append(gone, []byte(call))
		}
		for _, r := range members {
			single(r)
		}
	}
	return g.t.putGroups(put, gone)
}

// leaving returns the numbers of the tasks that leave a call.
func (g *regrouping) leaving(call string) []int64 {
	var numbers []int64
	for _, c := range g.changes {
		if c.leaves() && c.old.call == call {
			numbers = append(numbers, c.old.task)
		}
	}
	return numbers
}

// putGroups writes groups, and removes others.
func (t *tx) putGroups(put []group, gone [][]byte) error {
	if len(gone) > 0 {
		if err := t.Exec(`DELETE FROM duplicates WHERE key = ANY($1)`, gone); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	var keys [][]byte
	var names []string
	var ns, newest, marks []int64
	for _, p := range put {
		keys, names, ns = append(keys, []byte(p.key)), append(names, p.name), append(ns, p.n)
		newest, marks = append(newest, p.newest), append(marks, p.marks)
	}
	return t.Exec(`INSERT INTO duplicates (key, name, n, newest, marks)
		SELECT * FROM unnest($1::bytea[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
		ON CONFLICT (key) DO UPDATE SET name = excluded.name, n = excluded.n, newest = excluded.newest, marks = excluded.marks`,
		keys, names, ns, newest, marks)
}

// mark saves the marks of tasks.
func (t *tx) mark(list []*callRow) error {
	byWeek := make(map[int][2][]int64)
	for _, r := range list {
		m := byWeek[r.week]
		m[0], m[1] = append(m[0], r.task), append(m[1], r.dup)
		byWeek[r.week] = m
	}
	for week, m := range byWeek {
		err := t.Exec(`UPDATE tasks SET dup = u.dup FROM unnest($2::bigint[], $3::bigint[]) AS u (number, dup) WHERE week = $1 AND task = u.number`,
			week, m[0], m[1])
		if err != nil {
			return err
		}
	}
	return nil
}
