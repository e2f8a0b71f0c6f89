package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
)

// maxCounted is how far a plan counts.
const maxCounted = 100_000

// lastHeard is when Umbel heard of a task last, as the index tasks_by_receipt has it. Tasks that were written before that
// was kept have the time that their workers gave.
const lastHeard = `coalesce(heard, finished, updated)`

// Prunable says what the rules would remove now.
func (d *DB) Prunable(ctx context.Context, now time.Time) (store.Plan, error) {
	p, err := d.plan(ctx, now)
	if err != nil {
		return store.Plan{}, fmt.Errorf("plan retention: %w", explain(err))
	}
	return p, nil
}

func (d *DB) plan(ctx context.Context, now time.Time) (p store.Plan, err error) {
	if p.Tasks, err = number[int](ctx, d.read, `SELECT count(*) FROM tasks`); err != nil {
		return p, err
	}
	room, err := d.room(ctx)
	if err != nil {
		return p, err
	}
	p.Used, p.Events.Exact = room.used(), true
	var oldest int64
	for _, class := range classes(d.rules) {
		first, err := number[int64](ctx, d.read,
			`SELECT coalesce((SELECT `+lastHeard+` FROM tasks WHERE final = ? ORDER BY `+lastHeard+` LIMIT 1), 0)`, class.final)
		if err != nil {
			return p, err
		}
		oldest = cmp.Or(min(oldest, first), oldest, first)
		due, err := d.countSilent(ctx, class.final, 0, class.before(now))
		if err != nil {
			return p, err
		}
		if class.final == classSucceeded {
			p.Succeeded = due
		} else {
			p.Failed = due
		}
		if err := d.planEvents(ctx, &p.Events, class, now); err != nil {
			return p, err
		}
	}
	if oldest != 0 {
		p.Oldest = time.UnixMicro(oldest).UTC()
	}
	d.planSize(&p)
	return p, nil
}

// planEvents adds how many tasks of a class will be thinned.
func (d *DB) planEvents(ctx context.Context, n *store.Count, c kept, now time.Time) error {
	if d.rules.Events == 0 {
		return nil
	}
	done, err := number[int64](ctx, d.read, `SELECT coalesce((SELECT ended FROM thinned WHERE final = ?), 0)`, c.final)
	if err != nil {
		return err
	}
	more, err := d.countSilent(ctx, c.final, max(c.before(now), done+1), now.Add(-d.rules.Events).UnixMicro())
	n.N, n.Exact = n.N+more.N, n.Exact && more.Exact
	return err
}

// planSize estimates what has to go beside what is too old.
func (d *DB) planSize(p *store.Plan) {
	p.Size.Exact = true
	if p.Tasks == 0 {
		return
	}
	each := float64(p.Used) / float64(p.Tasks)
	old := p.Succeeded.N + p.Failed.N
	p.Bytes = int64(each * float64(old))
	if d.rules.MaxSize == 0 || p.Used-p.Bytes <= d.rules.MaxSize {
		return
	}
	over := p.Used - p.Bytes - enough(d.rules.MaxSize)
	p.Size = store.Count{N: min(int(float64(over)/each)+1, p.Tasks-old)}
	p.Bytes += over
}

// countSilent counts tasks of a class that were heard of last at from ≤ end < to, µs.
func (d *DB) countSilent(ctx context.Context, final int, from, to int64) (store.Count, error) {
	n, err := number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1 FROM tasks
		WHERE final = ? AND `+lastHeard+` >= ? AND `+lastHeard+` < ? LIMIT ?)`, final, from, to, maxCounted+1)
	if n > maxCounted {
		return store.Count{N: maxCounted}, err
	}
	return store.Count{N: n, Exact: true}, err
}

// kept is a class of finished tasks with what is kept of it.
type kept struct {
	final int
	keep  time.Duration
}

func classes(r store.Rules) [2]kept {
	return [...]kept{{classSucceeded, r.Succeeded}, {classFailed, r.Failed}}
}

// before is when a task must have been heard of last to be too old, µs.
func (c kept) before(now time.Time) int64 {
	if c.keep == 0 {
		return 0
	}
	return now.Add(-c.keep).UnixMicro()
}

// enough is the size below which the rule of size has done its work.
func enough(most int64) int64 { return most / 10 * 9 }

// room is how a file is filled.
type room struct{ page, pages, free int64 }

func (r room) used() int64 { return (r.pages - r.free) * r.page }

func (d *DB) room(ctx context.Context) (r room, err error) {
	err = d.read.QueryRowContext(ctx, `SELECT page_size, page_count, freelist_count
		FROM pragma_page_size, pragma_page_count, pragma_freelist_count`).Scan(&r.page, &r.pages, &r.free)
	return r, err
}

// number returns the only value of a query.
func number[T any](ctx context.Context, q queryer, query string, args ...any) (n T, err error) {
	found, err := list[T](ctx, q, query, args...)
	if err == nil {
		n = found[0]
	}
	return n, err
}
