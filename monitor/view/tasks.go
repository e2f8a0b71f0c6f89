package view

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	maxPage      = 500
	unsavedChunk = 1_000 // of them under one lock
)

// Tasks returns a page of all retained tasks, those in memory and those in the history alike.
func (r *Reader) Tasks(ctx context.Context, q history.TaskRequest) (history.TaskPage, error) {
	q.Limit = min(max(q.Limit, 1), maxPage)
	var err error
	if q.Query, err = r.resolveCauses(ctx, q.Query); err != nil {
		return history.TaskPage{}, err
	}
	if q.Sort.Field.Alphabetical() {
		return history.TasksByWord(ctx, r, q)
	}
	if page, ok := r.tasksInMemory(q); ok {
		return page, nil
	}
	resolved, done, err := r.outboxTasks(ctx, q)
	if done != nil || err != nil {
		return *cmp.Or(done, &history.TaskPage{}), err
	}
	return r.mergedTasks(ctx, resolved)
}

// Words returns values of a field that tasks in memory or in the history have, in alphabetical order.
func (r *Reader) Words(ctx context.Context, w history.WordRange) ([]string, error) {
	stored, err := r.store.Words(ctx, w)
	if err != nil {
		return nil, err
	}
	var counts state.Counts
	r.source.View(func(c state.View) { counts = c.Counts() })
	return w.Next(slices.Concat(stored, wordsOf(counts, w.Field))), nil
}

// wordsOf returns the values of a field that is Alphabetical.
func wordsOf(c state.Counts, f query.Field) []string {
	switch f {
	case query.Name:
		return slices.Collect(maps.Keys(c.ByName))
	case query.Worker:
		return slices.Collect(maps.Keys(c.ByWorker))
	case query.Queue:
		return slices.Collect(maps.Keys(c.ByQueue))
	default:
		var states []string
		for s := range c.ByState {
			states = append(states, string(s))
		}
		return states
	}
}

// tasksInMemory answers from memory alone, false if the history may have more tasks for the page.
func (r *Reader) tasksInMemory(request history.TaskRequest) (page history.TaskPage, ok bool) {
	q, simple := request.Query.Simple()
	if !simple || request.Sort != (query.Sort{}) || !r.source.Restored() {
		return page, false
	}
	q.Limit, q.From, q.Newer = request.Limit, request.From, request.Newer
	r.source.View(func(c state.View) {
		found := c.Tasks(q)
		end := found.Older
		if request.Newer {
			end = request.From
		}
		mark := c.LowWaterMark()
		page = history.TaskPage{Tasks: found.Tasks, Next: found.Older, Prev: found.Newer}
		ok = mark == nil || end != nil && end.Compare(*mark) >= 0
	})
	return page, ok
}

// mergedTasks answers from the history and from the tasks that are not saved yet. Memory is read first: a task that is
// saved meanwhile is in both, and one that changes meanwhile is read from memory again.
func (r *Reader) mergedTasks(ctx context.Context, q history.TaskRequest) (history.TaskPage, error) {
	l := newList(q)
	if err := r.addUnsent(ctx, l); err != nil {
		return history.TaskPage{}, err
	}
	r.addUnsaved(l)
	for rest := q; ; {
		var evicted uint64
		r.source.View(func(c state.View) { evicted = c.Evicted() })
		page, err := r.store.Tasks(ctx, rest)
		if err != nil {
			return history.TaskPage{}, err
		}
		if err := r.addStored(ctx, l, page.Tasks, evicted); err != nil {
			return history.TaskPage{}, err
		}
		next := page.Next
		if q.Newer {
			next = page.Prev
		}
		l.searched += page.Searched
		if next == nil || page.Searched > 0 || l.count(next) >= q.Limit || l.pastMemory(*next) {
			return l.page(next), nil
		}
		rest.From = next
	}
}

// list gathers a page in the direction in which it is read, from request.From on.
type list struct {
	request  history.TaskRequest
	rows     []row
	ids      map[string]bool
	end      *state.Position // no task beyond it was gathered from memory; nil if all were
	searched int
}

// row is a task with its place in the list.
type row struct {
	state.Task
	at state.Position
}

func newList(r history.TaskRequest) *list { return &list{request: r, ids: make(map[string]bool)} }

// compare orders places in the direction of reading.
func (l *list) compare(a, b state.Position) int {
	if l.request.Sort.Ascending == l.request.Newer {
		return -a.Compare(b)
	}
	return a.Compare(b)
}

// place returns a task's place in the list, false if it has none.
func (l *list) place(t *state.Task) (state.Position, bool) {
	at := state.Position{Stamp: t.Stamp, ID: t.ID}
	if f := l.request.Sort.Field; f != 0 {
		var known bool
		if at.Value, known = f.Int(t); !known {
			return at, false
		}
	}
	return at, l.request.From == nil || l.compare(at, *l.request.From) > 0
}

// add adds a task if it matches and belongs on the page.
func (l *list) add(t *state.Task) {
	at, ok := l.place(t)
	if ok && !l.ids[t.ID] && l.request.Query.Match(t, l.request.Now) {
		l.ids[t.ID] = true
		l.rows = append(l.rows, row{*t, at})
	}
}

// count sorts the rows and returns how many lie at bound or before it; nil is the end of the list.
func (l *list) count(bound *state.Position) int {
	slices.SortFunc(l.rows, func(a, b row) int { return l.compare(a.at, b.at) })
	if bound == nil {
		return len(l.rows)
	}
	n, found := slices.BinarySearchFunc(l.rows, *bound, func(a row, p state.Position) int {
		return l.compare(a.at, p)
	})
	if found {
		n++
	}
	return n
}

// pastMemory reports whether at is at or beyond the end of what was gathered from memory.
func (l *list) pastMemory(at state.Position) bool { return l.end != nil && l.compare(at, *l.end) >= 0 }

// page returns the page. Every stored task up to bound was gathered; a nil bound means every stored task.
func (l *list) page(bound *state.Position) history.TaskPage {
	if bound == nil || l.end != nil && l.compare(*l.end, *bound) < 0 {
		bound = l.end
	}
	n := l.count(bound)
	onward := bound
	if n > l.request.Limit || n == l.request.Limit && bound != nil {
		n = l.request.Limit
		onward = new(l.rows[n-1].at)
	}
	page := history.TaskPage{Searched: l.searched}
	for i := range l.rows[:n] {
		page.Tasks = append(page.Tasks, l.rows[i].Task)
	}
	var back *state.Position
	if l.request.From != nil && n > 0 {
		back = new(l.rows[0].at)
	}
	page.Prev, page.Next = back, onward
	if l.request.Newer {
		slices.Reverse(page.Tasks)
		page.Prev, page.Next = onward, back
	}
	return page
}

// addUnsaved gathers the tasks that have changed since they were saved, chunk by chunk.
func (r *Reader) addUnsaved(l *list) {
	byStamp := l.request.Sort.Field == 0
	newer := byStamp && l.request.Sort.Ascending != l.request.Newer
	var from *state.Position
	if byStamp {
		from = l.request.From
	}
	for read := 0; ; {
		var chunk []state.Task
		r.source.View(func(c state.View) { chunk = c.UnsavedTasks(from, newer, unsavedChunk) })
		for i := range chunk {
			l.add(&chunk[i])
		}
		if len(chunk) == 0 {
			return
		}
		last := &chunk[len(chunk)-1]
		from = &state.Position{Stamp: last.Stamp, ID: last.ID}
		read += len(chunk)
		if byStamp && len(l.rows) > l.request.Limit {
			l.end = from
			return
		}
		if read >= ingest.UnsavedTarget {
			l.searched += read
			if byStamp {
				l.end = from
			}
			return
		}
	}
}

// addStored adds tasks of the history, in their state in memory where they are there. If tasks were evicted since evicted
// were, one that is not in memory may have been saved after it was read, and is read again.
func (r *Reader) addStored(ctx context.Context, l *list, tasks []state.Task, evicted uint64) error {
	var again []int
	r.source.View(func(c state.View) {
		for i := range tasks {
			t, inMemory := c.Task(tasks[i].ID)
			switch {
			case inMemory:
				t.CallID, t.Duplicates = tasks[i].CallID, tasks[i].Duplicates
				l.add(&t)
			case l.ids[tasks[i].ID]:
			case c.Evicted() != evicted:
				again = append(again, i)
			default:
				at, _ := l.place(&tasks[i])
				l.ids[tasks[i].ID] = true
				l.rows = append(l.rows, row{tasks[i], at})
			}
		}
	})
	for _, i := range again {
		id := tasks[i].ID
		saved, err := r.store.Task(ctx, id)
		if errors.Is(err, history.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		t, _, err := state.DecodeTask(id, saved)
		if err != nil {
			return err
		}
		t.CallID, t.Duplicates = tasks[i].CallID, tasks[i].Duplicates
		l.add(&t)
	}
	return nil
}
