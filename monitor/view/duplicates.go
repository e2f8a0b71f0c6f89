package view

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/state"
)

// judgedTasks is how many tasks of a group are judged for a list.
const judgedTasks = 10

// DuplicatePage is a part of the list of groups.
type DuplicatePage struct {
	Groups []DuplicateGroup
	Next   *history.DuplicatePosition // where the next page starts, nil at the end
	Stats  history.DuplicateStats
}

// DuplicateGroup is tasks of one call, with verdicts on how they came about.
type DuplicateGroup struct {
	history.DuplicateGroup

	Excluded []string // paths of the arguments that do not count
	// Pairs are verdicts on the tasks in Tasks, newest first: on each run with the one that it repeats.
	Pairs         []duplicates.Pair
	Verdicts      map[duplicates.Verdict]int // pairs by verdict
	WastedSeconds float64                    // of all pairs, but not of those that ran again as scheduled
	Period        time.Duration              // between the tasks, if they are sent at regular intervals; else 0
	Partial       bool                       // the group has tasks beyond those in Tasks, which are not judged
}

// Duplicates returns a page of groups, with verdicts on the newest tasks of each.
func (r *Reader) Duplicates(ctx context.Context, q history.DuplicateRequest) (DuplicatePage, error) {
	if q.Tasks == 0 {
		q.Tasks = judgedTasks
	}
	found, err := r.store.DuplicateGroups(ctx, q)
	if err != nil {
		return DuplicatePage{}, err
	}
	page := DuplicatePage{Groups: make([]DuplicateGroup, len(found.Groups)), Next: found.Next}
	if page.Stats, err = r.store.DuplicateStats(ctx); err != nil {
		return DuplicatePage{}, err
	}
	excluded, err := r.excluded(ctx)
	if err != nil {
		return DuplicatePage{}, err
	}
	o := r.judgeOptions()
	for i, g := range found.Groups {
		page.Groups[i] = judge(g, excluded[g.Name], o)
	}
	return page, nil
}

// DuplicateGroup returns a group with its newest tasks, at most limit, and verdicts on them, history.ErrNotFound if there
// is none.
func (r *Reader) DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (DuplicateGroup, error) {
	g, err := r.store.DuplicateGroup(ctx, key, limit)
	if err != nil {
		return DuplicateGroup{}, err
	}
	excluded, err := r.excluded(ctx)
	if err != nil {
		return DuplicateGroup{}, err
	}
	return judge(g, excluded[g.Name], r.judgeOptions()), nil
}

// excluded returns the excluded fields by name of the task.
func (r *Reader) excluded(ctx context.Context) (map[string][]string, error) {
	rules, err := r.store.DuplicateRules(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[string][]string, len(rules))
	for _, rule := range rules {
		by[rule.Name] = rule.Exclude
	}
	return by, nil
}

func judge(g history.DuplicateGroup, excluded []string, o duplicates.Options) DuplicateGroup {
	judged := DuplicateGroup{DuplicateGroup: g, Excluded: excluded, Partial: g.N > len(g.Tasks)}
	judged.Pairs = duplicates.Judge(g.Tasks, o)
	judged.Verdicts = make(map[duplicates.Verdict]int)
	if learnt := schedules.Learn(g.Tasks); len(learnt) == 1 && len(learnt[0].Runs) == len(g.Tasks) {
		judged.Period = time.Duration(learnt[0].Period) * time.Microsecond
	}
	for _, p := range judged.Pairs {
		judged.Verdicts[p.Verdict]++
		if p.Verdict != duplicates.Rerun || judged.Period == 0 {
			judged.WastedSeconds += p.WastedSeconds
		}
	}
	return judged
}

// SetCluster says which one of several clusters is read, as conditions of queries may name it. Call it before anything is read.
func (r *Reader) SetCluster(name string) { r.cluster = name }

// SetAcksLate has verdicts on duplicates say whether a worker acknowledges a task after it has run, as f reports where it
// knows. f is called often and must not wait. Call SetAcksLate before anything is read.
func (r *Reader) SetAcksLate(f func(worker, task string) (late, ok bool)) { r.acksLate = f }

// judgeOptions returns what is known of the workers.
func (r *Reader) judgeOptions() duplicates.Options {
	offsets := make(map[string]int64)
	r.source.View(func(c state.View) {
		for _, w := range c.Workers() {
			if w.ClockOffsetMicros != nil {
				offsets[w.Name] = *w.ClockOffsetMicros
			}
		}
	})
	return duplicates.Options{
		Now:      r.now().UnixMicro(),
		AcksLate: r.acksLate,
		Offset:   func(worker string) (int64, bool) { n, ok := offsets[worker]; return n, ok },
	}
}
