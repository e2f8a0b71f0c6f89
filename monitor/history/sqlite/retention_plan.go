package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// maxCounted is how far a plan counts.
const maxCounted = 100_000

// lastReceipt is when Umbel heard of a task last, as the index tasks_by_receipt has it. Tasks that were written before that
// was kept have the time that their workers gave.
const lastReceipt = `coalesce(heard, finished, updated)`

// PlanPrune says what the rules would remove now.
func (d *DB) PlanPrune(ctx context.Context, now time.Time) (history.PrunePlan, error) {
	p, err := d.plan(ctx, now)
	if err != nil {
		return history.PrunePlan{}, fmt.Errorf("plan retention: %w", explain(err))
	}
	return p, nil
}

func (d *DB) plan(ctx context.Context, now time.Time) (p history.PrunePlan, err error) {
	if p.Tasks, err = number[int](ctx, d.read, `SELECT count(*) FROM tasks`); err != nil {
		return p, err
	}
	room, err := d.fileUsage(ctx)
	if err != nil {
		return p, err
	}
	p.UsedBytes, p.Events.Exact = room.used(), true
	var oldest int64
	for _, class := range finished(d.rules) {
		first, err := number[int64](ctx, d.read,
			`SELECT coalesce((SELECT `+lastReceipt+` FROM tasks WHERE `+class.where+` ORDER BY `+lastReceipt+` LIMIT 1), 0)`)
		if err != nil {
			return p, err
		}
		oldest = cmp.Or(min(oldest, first), oldest, first)
		due, err := d.countSilent(ctx, class, 0, class.before(now))
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
	if p.Lost, err = d.countSilent(ctx, lostClass(d.rules), 0, lostClass(d.rules).before(now)); err != nil {
		return p, err
	}
	return p, d.planSize(ctx, &p)
}

// planEvents adds how many tasks of a class will be thinned.
func (d *DB) planEvents(ctx context.Context, n *history.Count, c retentionClass, now time.Time) error {
	if d.rules.Events == 0 {
		return nil
	}
	done, err := number[int64](ctx, d.read, `SELECT coalesce((SELECT ended FROM thinned WHERE final = ?), 0)`, c.final)
	if err != nil {
		return err
	}
	more, err := d.countSilent(ctx, c, max(c.before(now), done+1), now.Add(-d.rules.Events).UnixMicro())
	n.N, n.Exact = n.N+more.N, n.Exact && more.Exact
	return err
}

// planSize estimates what has to go beside what is too old.
func (d *DB) planSize(ctx context.Context, p *history.PrunePlan) error {
	p.Size.Exact = true
	if p.Tasks == 0 {
		return nil
	}
	active, err := number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1 FROM tasks WHERE `+active+` LIMIT ?)`, maxCounted+1)
	if err != nil {
		return err
	}
	p.Active = history.Count{N: min(active, maxCounted), Exact: active <= maxCounted}
	var held activeShare
	if d.rules.MaxSize > 0 && p.UsedBytes > d.rules.MaxSize {
		if held, err = d.activeShare(ctx, p.UsedBytes); err != nil {
			return err
		}
		p.ActiveBytes = held.bytes
	}
	old, others := p.Succeeded.N+p.Failed.N+p.Lost.N, p.Tasks-held.active
	if others == 0 {
		return nil
	}
	used := p.UsedBytes - p.ActiveBytes
	each := float64(used) / float64(others)
	p.Bytes = int64(each * float64(old))
	if d.rules.MaxSize == 0 || used-p.Bytes <= d.rules.MaxSize {
		return nil
	}
	over := used - p.Bytes - sizeTarget(d.rules.MaxSize)
	p.Size = history.Count{N: min(int(float64(over)/each)+1, others-old)}
	p.Bytes += over
	return nil
}

// countSilent counts tasks of a class that were heard of last, or lost, at from ≤ end < to, µs.
func (d *DB) countSilent(ctx context.Context, c retentionClass, from, to int64) (history.Count, error) {
	n, err := number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1 FROM tasks
		WHERE `+c.where+` AND `+c.end+` >= ? AND `+c.end+` < ? LIMIT ?)`, from, to, maxCounted+1)
	if n > maxCounted {
		return history.Count{N: maxCounted}, err
	}
	return history.Count{N: n, Exact: true}, err
}

// active is the condition of tasks that no rule removes.
const active = `final = 0 AND lost IS NULL`

// retentionClass is a class of tasks that are not active with what is kept of it.
type retentionClass struct {
	final int
	where string // condition, as the index of end has it
	end   string // when one was heard of last, or was lost
	keep  time.Duration
}

func finished(r history.RetentionRules) [2]retentionClass {
	return [...]retentionClass{
		{classSucceeded, `final = 1`, lastReceipt, r.Succeeded},
		{classFailed, `final = 2`, lastReceipt, r.Failed},
	}
}

func lostClass(r history.RetentionRules) retentionClass {
	return retentionClass{classActive, `lost IS NOT NULL`, `lost`, r.Lost}
}

func classes(r history.RetentionRules) []retentionClass {
	f := finished(r)
	return append(f[:], lostClass(r))
}

// activeShare is what active tasks take.
type activeShare struct {
	active, others int   // tasks that are active, and those that are not
	bytes          int64 // that the active ones take, about
}

// activeShare estimates how much of the used bytes active tasks take, by their events and those of some others.
func (d *DB) activeShare(ctx context.Context, used int64) (p activeShare, err error) {
	const beside = 1000 // bytes, about, that a task takes in the table of tasks and its indexes
	var held, other float64
	err = d.read.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(length(body)), 0) FROM tasks JOIN events USING (task)
		WHERE `+active).Scan(&p.active, &held)
	if err != nil {
		return p, err
	}
	all, err := number[int](ctx, d.read, `SELECT count(*) FROM tasks`)
	p.others = max(all-p.active, 0)
	switch {
	case err != nil || p.active == 0:
		return p, err
	case p.others == 0:
		p.bytes = used
		return p, nil
	}
	const some = `SELECT task FROM (SELECT task FROM tasks WHERE final = %d ORDER BY ` + lastReceipt + ` %s LIMIT 500)`
	samples := make([]string, 0, 4)
	for _, final := range []int{classSucceeded, classFailed} {
		samples = append(samples, fmt.Sprintf(some, final, "ASC"), fmt.Sprintf(some, final, "DESC"))
	}
	samples = append(samples, `SELECT task FROM (SELECT task FROM tasks WHERE lost IS NOT NULL LIMIT 500)`)
	other, err = number[float64](ctx, d.read, `SELECT coalesce(avg(length(body)), 0.0) FROM events WHERE task IN (`+strings.Join(samples, " UNION ")+`)`)
	held, other = held+beside*float64(p.active), (other+beside)*float64(p.others)
	p.bytes = int64(float64(used) * held / (held + other))
	return p, err
}

// before is when a task must have been heard of last to be too old, µs.
func (c retentionClass) before(now time.Time) int64 {
	if c.keep == 0 {
		return 0
	}
	return now.Add(-c.keep).UnixMicro()
}

// sizeTarget is the size below which the rule of size has done its work.
func sizeTarget(most int64) int64 { return most / 10 * 9 }

// fileUsage is how a file is filled.
type fileUsage struct{ page, pages, free int64 }

func (r fileUsage) used() int64 { return (r.pages - r.free) * r.page }

func (d *DB) fileUsage(ctx context.Context) (r fileUsage, err error) {
	err = d.read.QueryRowContext(ctx, `SELECT page_size, page_count, freelist_count
		FROM pragma_page_size, pragma_page_count, pragma_freelist_count`).Scan(&r.page, &r.pages, &r.free)
	return r, err
}
