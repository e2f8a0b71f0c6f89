package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
)

// maxCounted bounds the counts of a plan.
const maxCounted = 100_000

// lastReceipt is the receipt of a task's newest event, as in the index tasks_by_receipt. Tasks of older versions have the
// time of their workers instead.
const lastReceipt = `coalesce(last_receipt, finished, updated)`

// PlanPrune returns what Prune would remove.
func (d *DB) PlanPrune(ctx context.Context, now time.Time) (p history.PrunePlan, err error) {
	defer annotate(&err, "plan retention")
	if p.Tasks, err = tables.Number[int](ctx, d.read, `SELECT count(*) FROM tasks`); err != nil {
		return p, err
	}
	usage, err := d.fileUsage(ctx)
	if err != nil {
		return p, err
	}
	p.UsedBytes, p.Events.Exact = usage.used(), true
	var oldest int64
	for _, class := range finished(d.rules) {
		first, err := tables.Number[int64](ctx, d.read,
			`SELECT coalesce((SELECT `+lastReceipt+` FROM tasks WHERE `+class.where+` ORDER BY `+lastReceipt+` LIMIT 1), 0)`)
		if err != nil {
			return p, err
		}
		oldest = cmp.Or(min(oldest, first), oldest, first)
		due, err := d.countOld(ctx, class, 0, class.before(now))
		if err != nil {
			return p, err
		}
		if class.final == where.ClassSucceeded {
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
	if p.Lost, err = d.countOld(ctx, lostClass(d.rules), 0, lostClass(d.rules).before(now)); err != nil {
		return p, err
	}
	return p, d.planSize(ctx, &p)
}

// planEvents counts the tasks of a class that would lose events.
func (d *DB) planEvents(ctx context.Context, n *history.Count, c retentionClass, now time.Time) error {
	if d.rules.Events == 0 {
		return nil
	}
	done, err := tables.Number[int64](ctx, d.read, `SELECT coalesce((SELECT ended FROM thinned WHERE final = ?), 0)`, c.final)
	if err != nil {
		return err
	}
	more, err := d.countOld(ctx, c, max(c.before(now), done+1), now.Add(-d.rules.Events).UnixMicro())
	n.N, n.Exact = n.N+more.N, n.Exact && more.Exact
	return err
}

// planSize estimates what MaxSize removes beyond what is too old.
func (d *DB) planSize(ctx context.Context, p *history.PrunePlan) error {
	p.Size.Exact = true
	if p.Tasks == 0 {
		return nil
	}
	active, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1 FROM tasks WHERE `+active+` LIMIT ?)`, maxCounted+1)
	if err != nil {
		return err
	}
	p.Active = history.Count{N: min(active, maxCounted), Exact: active <= maxCounted}
	var share activeShare
	if d.rules.MaxSize > 0 && p.UsedBytes > d.rules.MaxSize {
		if share, err = d.activeShare(ctx, p.UsedBytes); err != nil {
			return err
		}
		p.ActiveBytes = share.bytes
	}
	old, others := p.Succeeded.N+p.Failed.N+p.Lost.N, p.Tasks-share.active
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

// countSilent counts tasks of a class with from ≤ end < to, in µs.
func (d *DB) countOld(ctx context.Context, c retentionClass, from, to int64) (history.Count, error) {
	n, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1 FROM tasks
		WHERE `+c.where+` AND `+c.end+` >= ? AND `+c.end+` < ? LIMIT ?)`, from, to, maxCounted+1)
	if n > maxCounted {
		return history.Count{N: maxCounted}, err
	}
	return history.Count{N: n, Exact: true}, err
}

// active is the condition for tasks that no rule removes.
const active = `final = 0 AND lost IS NULL`

// retentionClass is a class of tasks and how long they are retained.
type retentionClass struct {
	final int
	where string // condition, as in the index of end
	end   string // expression of its last receipt, or when it was lost
	keep  time.Duration
}

func finished(r history.RetentionRules) [2]retentionClass {
	return [...]retentionClass{
		{where.ClassSucceeded, `final = 1`, lastReceipt, r.Succeeded},
		{where.ClassFailed, `final = 2`, lastReceipt, r.Failed},
	}
}

func lostClass(r history.RetentionRules) retentionClass {
	return retentionClass{where.ClassActive, `lost IS NOT NULL`, `lost`, r.Lost}
}

func classes(r history.RetentionRules) []retentionClass {
	f := finished(r)
	return append(f[:], lostClass(r))
}

// activeShare is the estimated size of active tasks.
type activeShare struct {
	active, others int   // number of tasks
	bytes          int64 // of active tasks
}

// activeShare estimates how many of the used bytes belong to active tasks, from the sizes of their events and of a sample
// of others.
func (d *DB) activeShare(ctx context.Context, used int64) (p activeShare, err error) {
	const beside = 1000 // approximate bytes of a row and its index entries
	var share, other float64
	err = d.read.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(length(body)), 0) FROM tasks JOIN events USING (task)
		WHERE `+active).Scan(&p.active, &share)
	if err != nil {
		return p, err
	}
	all, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM tasks`)
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
	for _, final := range []int{where.ClassSucceeded, where.ClassFailed} {
		samples = append(samples, fmt.Sprintf(some, final, "ASC"), fmt.Sprintf(some, final, "DESC"))
	}
	samples = append(samples, `SELECT task FROM (SELECT task FROM tasks WHERE lost IS NOT NULL LIMIT 500)`)
	other, err = tables.Number[float64](ctx, d.read, `SELECT coalesce(avg(length(body)), 0.0) FROM events WHERE task IN (`+strings.Join(samples, " UNION ")+`)`)
	share, other = share+beside*float64(p.active), (other+beside)*float64(p.others)
	p.bytes = int64(float64(used) * share / (share + other))
	return p, err
}

// before returns the last receipt, in µs, before which a task is too old.
func (c retentionClass) before(now time.Time) int64 {
	if c.keep == 0 {
		return 0
	}
	return now.Add(-c.keep).UnixMicro()
}

// sizeTarget returns the size that pruning by MaxSize reduces the file to.
func sizeTarget(most int64) int64 { return most / 10 * 9 }

// fileUsage counts the pages of a file.
type fileUsage struct{ page, pages, free int64 }

func (r fileUsage) used() int64 { return (r.pages - r.free) * r.page }

func (d *DB) fileUsage(ctx context.Context) (r fileUsage, err error) {
	err = d.read.QueryRowContext(ctx, `SELECT page_size, page_count, freelist_count
		FROM pragma_page_size, pragma_page_count, pragma_freelist_count`).Scan(&r.page, &r.pages, &r.free)
	return r, err
}
