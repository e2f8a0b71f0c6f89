package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// callsThen are the tasks that an instant divides, with their calls; nil before they are read.
type callsThen struct {
	mu   sync.Mutex
	list []state.Task
}

// maxGroupsThen bounds the groups that are read for a page of their list.
const maxGroupsThen = 500

// Duplicates returns a page of the groups that there were, each of the tasks that were known and as they were. They are in
// the order that their groups have now, and compared by the fields that are excluded now. The page is shorter than asked for
// where more would have to be read, and continues with the next.
func (p *Past) Duplicates(ctx context.Context, q history.DuplicateRequest) (page DuplicatePage, err error) {
	limit := min(max(q.Limit, 1), maxPage)
	rows := q
	rows.Limit, rows.Tasks = limit, 1
	excluded, err := p.excluded(ctx)
	if err != nil {
		return page, err
	}
	for read, tasks := 0, 0; ; {
		found, err := p.store.DuplicateGroups(ctx, rows)
		if err != nil {
			return page, err
		}
		for i := range found.Groups {
			row := &found.Groups[i]
			if read++; read > maxGroupsThen || tasks >= maxTasksThen || len(page.Groups) == limit {
				page.Next = rows.After
				if i > 0 {
					last := &found.Groups[i-1]
					page.Next = &history.DuplicatePosition{Tasks: last.N, Newest: last.Position}
				}
				return page, nil
			}
			g, err := p.groupThen(ctx, *row, history.MaxDuplicateTasks, excluded)
			if err != nil && !errors.Is(err, history.ErrNotFound) {
				return page, err
			}
			tasks += max(len(g.Tasks), 1)
			if err == nil && repeats(g) && (q.Marks == 0 || g.Marks&q.Marks != 0) {
				page.Groups = append(page.Groups, g)
			}
		}
		if rows.After = found.Next; found.Next == nil {
			return page, nil
		}
	}
}

// repeats reports whether tasks are a group for the list.
func repeats(g DuplicateGroup) bool { return g.N > 1 || g.Marks&(state.Redelivery|state.Resend) != 0 }

// DuplicateGroup returns a group of the tasks that were known, as they were, history.ErrNotFound if there was none.
func (p *Past) DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (DuplicateGroup, error) {
	row, err := p.store.DuplicateGroup(ctx, key, 1)
	if err != nil {
		return DuplicateGroup{}, err
	}
	excluded, err := p.excluded(ctx)
	if err != nil {
		return DuplicateGroup{}, err
	}
	return p.groupThen(ctx, row, min(max(limit, 1), history.MaxDuplicateTasks), excluded)
}

// groupThen returns what a group was. Of one with more tasks than are read, the newest are, and it is Partial.
func (p *Past) groupThen(ctx context.Context, row history.DuplicateGroup, limit int, excluded map[string][]string) (DuplicateGroup, error) {
	g := history.DuplicateGroup{Key: row.Key, Name: row.Name, Position: row.Position, Oldest: row.Oldest}
	tasks, more, err := p.tasksOf(ctx, row.Key, limit)
	if err != nil {
		return DuplicateGroup{}, err
	}
	if len(tasks) == 0 {
		return DuplicateGroup{}, history.ErrNotFound
	}
	slices.SortStableFunc(tasks, func(a, b state.Task) int { return cmp.Compare(firstAt(&b), firstAt(&a)) })
	for i := range tasks {
		tasks[i].Duplicates = tasks[i].OwnDuplicates() // what others made of it since is not of then
		g.Marks |= tasks[i].Duplicates
	}
	g.Tasks, g.N, g.Newest = tasks, len(tasks), time.UnixMicro(firstAt(&tasks[0])).UTC()
	if !more {
		g.Oldest = time.UnixMicro(firstAt(&tasks[len(tasks)-1])).UTC()
	}
	judged := judge(g, excluded[g.Name], p.judgeOptionsThen())
	judged.Partial = more
	for v := range judged.Verdicts {
		judged.Marks |= v.Mark()
	}
	return judged, nil
}

// tasksOf returns the newest tasks of a group that were known, as they were, and whether there were more.
func (p *Past) tasksOf(ctx context.Context, key history.DuplicateKey, limit int) (tasks []state.Task, more bool, err error) {
	if !key.Call.Known() {
		t, err := p.Task(ctx, key.TaskID)
		if errors.Is(err, history.ErrNotFound) {
			return nil, false, nil
		}
		list := []state.Task{t}
		if err == nil {
			err = p.store.MarkDuplicates(ctx, list)
		}
		return list, false, err
	}
	divided, err := p.dividedCalls(ctx)
	if err != nil {
		return nil, false, err
	}
	page, err := p.tasks(ctx, history.TaskRequest{Query: query.New(query.Equal(query.Dup, key.Call.String())), Limit: limit}, divided)
	return page.Tasks, page.Next != nil, err
}

// dividedCalls returns the tasks that the instant divides, with their calls, which are read once.
func (p *Past) dividedCalls(ctx context.Context) ([]state.Task, error) {
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	if p.calls.list == nil {
		list := slices.Clone(p.divided)
		for chunk := range slices.Chunk(list, maxPage) {
			if err := p.store.MarkDuplicates(ctx, chunk); err != nil {
				return nil, err
			}
		}
		p.calls.list = list
	}
	return p.calls.list, nil
}

// firstAt is when a task was sent, or else received or started.
func firstAt(t *state.Task) int64 { return cmp.Or(t.SentAt, t.ReceivedAt, t.StartedAt, t.UpdatedAt) }

// judgeOptionsThen returns what was known of the workers. Their settings are known only as they are now.
func (p *Past) judgeOptionsThen() duplicates.Options {
	offsets := make(map[string]int64)
	for _, w := range p.cluster.Workers() {
		if w.ClockOffsetMicros != nil {
			offsets[w.Name] = *w.ClockOffsetMicros
		}
	}
	return duplicates.Options{
		Now:    p.at,
		Offset: func(worker string) (int64, bool) { n, ok := offsets[worker]; return n, ok },
	}
}
