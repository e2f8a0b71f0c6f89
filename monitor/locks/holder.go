package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	maxNames  = 50              // task names whose tasks are read in one pass
	perName   = 200             // running ones, and newest ones, of each
	maxCalls  = 20_000          // calls of tasks remembered
	perView   = 500             // tasks copied under one read lock
	maxAsked  = 100             // tasks that the history is asked for in one pass
	realAfter = 2 * time.Second // a run that goes on for longer was not turned away
)

// names returns the names of tasks that keys of celery-once may begin with.
func (t *tracker) names(keys []string) map[string]bool {
	names := make(map[string]bool)
	if !slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, onceMark) }) {
		return names
	}
	t.options.Tasks.View(func(c state.View) {
		for _, name := range c.Names() {
			names[name] = true
		}
	})
	return names
}

// resolve finds the tasks that hold locks.
func (t *tracker) resolve(ctx context.Context, list []*record) error {
	if err := t.findTasks(ctx, list); err != nil {
		return err
	}
	tasks, offline, err := t.lookUp(ctx, list)
	if err != nil {
		return err
	}
	now := t.options.Now()
	for _, r := range list {
		r.holder = t.holderOf(r, tasks, offline, now)
		if task, ok := tasks[r.content.task]; ok && r.id.name == "" && task.Name != nil {
			r.id.name = *task.Name
		}
	}
	return t.runTimes(ctx, list)
}

// findTasks notes the tasks whose calls are those of locks that name no task.
func (t *tracker) findTasks(ctx context.Context, list []*record) error {
	byName := make(map[string][]*record)
	for _, r := range list {
		if r.content.task == "" && r.id.name != "" && r.id.kind != OtherKind {
			byName[r.id.name] = append(byName[r.id.name], r)
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	if len(names) > maxNames { // the others next time
		t.offset %= len(names)
		names = append(names[t.offset:], names[:t.offset]...)[:maxNames]
		t.offset += maxNames
	}
	for _, name := range names {
		if err := t.findTasksOf(ctx, name, byName[name]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracker) findTasksOf(ctx context.Context, name string, list []*record) error {
	byFingerprint := make(map[string]*record)
	var once []*record
	for _, r := range list {
		if r.id.kind == Idempotent && r.goneAt.IsZero() {
			byFingerprint[r.id.fingerprint] = r
		} else {
			once = append(once, r)
		}
	}
	found := make(map[*record][]string)
	prefix := "" // of keys, where tasks have been found by their calls: fingerprints are made as expected
	for _, r := range list {
		if r.id.kind == Idempotent && len(r.tasks) > 0 {
			prefix = strings.TrimSuffix(r.entry.Key, r.id.fingerprint)
		}
	}
	named := query.New(query.Equal(query.Name, name))
	for _, q := range []query.Query{named.And(query.New(query.Equal(query.State, string(state.Started)))), named} {
		page, err := t.options.Tasks.Tasks(ctx, history.TaskRequest{Query: q, Limit: perName, Now: t.options.Now()})
		if err != nil {
			return fmt.Errorf("read tasks: %w", err)
		}
		for i := range page.Tasks {
			task := &page.Tasks[i]
			c := t.call(task)
			r := byFingerprint[c.fingerprint]
			if r == nil {
				r = byFingerprint[c.whole]
			}
			if r != nil {
				found[r] = append(found[r], task.ID)
			} else if key := prefix + cmp.Or(c.whole, c.fingerprint); prefix != "" && c.fingerprint != "" && task.State == state.Started && len(t.lockless) < maxAsked {
				t.lockless[key] = *task
			}
			for _, r := range once {
				if r.id.matches(c) {
					found[r] = append(found[r], task.ID)
				}
			}
		}
	}
	for r, ids := range found {
		var all []string
		for _, id := range append(ids, r.tasks...) {
			if !slices.Contains(all, id) && len(all) < maxTasks {
				all = append(all, id)
			}
		}
		r.tasks = all
	}
	return nil
}

// call returns the call of a task.
func (t *tracker) call(task *state.Task) call {
	c, ok := t.calls[task.ID]
	if ok || skipped(task.Result) || task.Kwargs == nil {
		return c
	}
	if len(t.calls) >= maxCalls {
		clear(t.calls)
	}
	c = callOf(task)
	t.calls[task.ID] = c
	return c
}

// lookUp returns the tasks that may hold locks, and which workers are offline. Those that memory has not are read from the
// history once.
func (t *tracker) lookUp(ctx context.Context, list []*record) (map[string]state.Task, map[string]bool, error) {
	wanted, ask := make(map[string]bool), make(map[string]*record)
	for _, r := range list {
		for _, id := range append(slices.Clone(r.tasks), r.content.task) {
			if id == "" {
				continue
			}
			wanted[id] = true
			if id == r.content.task && !r.searched {
				ask[id] = r
			}
		}
	}
	tasks, offline := make(map[string]state.Task), make(map[string]bool)
	for ids := range slices.Chunk(slices.Collect(maps.Keys(wanted)), perView) {
		t.options.Tasks.View(func(c state.View) {
			for _, id := range ids {
				if task, ok := c.Task(id); ok {
					tasks[id] = task
				}
			}
		})
	}
	t.options.Tasks.View(func(c state.View) {
		for _, w := range c.Workers() {
			offline[w.Name] = w.Status == state.Offline
		}
	})
	asked := 0
	for id, r := range ask {
		if _, ok := tasks[id]; ok || asked >= maxAsked {
			continue
		}
		asked++
		task, err := t.options.Tasks.Task(ctx, id)
		switch {
		case err == nil:
			tasks[id] = task
		case errors.Is(err, history.ErrNotFound):
			r.searched = true
		default:
			return nil, nil, fmt.Errorf("read task: %w", err)
		}
	}
	return tasks, offline, nil
}

// holderOf returns the task that holds a lock, nil if nothing tells.
func (t *tracker) holderOf(r *record, tasks map[string]state.Task, offline map[string]bool, now time.Time) *Holder {
	if !r.goneAt.IsZero() && r.holder != nil {
		return t.formerHolder(r, tasks, offline, now)
	}
	if id := r.content.task; id != "" {
		task, ok := tasks[id]
		if !ok {
			return &Holder{TaskID: id, Certain: true, Status: UnknownHolder}
		}
		h := run(r.id.kind, &task, offline)
		h.Certain = true
		return &h
	}
	former := ""
	if gone := t.gone[r.entry.Key]; gone != nil && gone.holder != nil && r.content.state != Completed {
		former = gone.holder.TaskID // it holds the lock no longer
	}
	var all []Holder
	for _, id := range r.tasks {
		if task, ok := tasks[id]; ok && id != former {
			all = append(all, run(r.id.kind, &task, offline))
		}
	}
	if r.content.state == Completed {
		return newest(all, func(h *Holder) bool { return h.Status == Ended && h.State == state.Success })
	}
	if h := runner(all, now); h != nil {
		return h
	}
	for _, status := range []HolderStatus{Lost, Waiting} {
		if h := newest(all, func(h *Holder) bool { return h.Status == status && (status == Lost || r.id.kind == Once) }); h != nil {
			return h
		}
	}
	taken, _ := t.acquiredByTTL(r)
	return newest(all, func(h *Holder) bool {
		return h.Status == Ended && (taken.IsZero() || h.EndedAt.IsZero() || h.EndedAt.After(taken.Add(-endedAfter)))
	})
}

// formerHolder returns how the task of a lock that is gone is now, with further runs that started since.
func (t *tracker) formerHolder(r *record, tasks map[string]state.Task, offline map[string]bool, now time.Time) *Holder {
	task, ok := tasks[r.holder.TaskID]
	if !ok {
		return nil
	}
	h := run(r.id.kind, &task, offline)
	h.Certain = r.holder.Certain
	for _, id := range r.tasks {
		other, ok := tasks[id]
		if !ok || id == h.TaskID {
			continue
		}
		if o := run(r.id.kind, &other, offline); o.Status == Running && o.StartedAt.After(h.StartedAt) && now.Sub(o.StartedAt) >= realAfter {
			h.Others = append(h.Others, id)
		}
	}
	return &h
}

// runner returns the running task that holds a lock: the newest one that is not about to be turned away. Runs that have
// been going on beside it are its Others.
func runner(all []Holder, now time.Time) *Holder {
	running := slices.DeleteFunc(slices.Clone(all), func(h Holder) bool { return h.Status != Running })
	if len(running) == 0 {
		return nil
	}
	slices.SortFunc(running, func(a, b Holder) int { return a.StartedAt.Compare(b.StartedAt) })
	last := 0
	for i := range running {
		if now.Sub(running[i].StartedAt) >= realAfter {
			last = i
		}
	}
	h := running[last]
	for _, o := range running[:last] {
		h.Others = append(h.Others, o.TaskID)
	}
	return &h
}

// newest returns the holder that started last of those that ok accepts.
func newest(all []Holder, ok func(h *Holder) bool) *Holder {
	var found *Holder
	for i := range all {
		if h := &all[i]; ok(h) && (found == nil || h.StartedAt.After(found.StartedAt)) {
			found = h
		}
	}
	return found
}

// run returns a task as the holder of a lock of a kind.
func run(kind Kind, t *state.Task, offline map[string]bool) Holder {
	h := Holder{TaskID: t.ID, State: t.State, SentAt: micros(cmp.Or(t.SentAt, t.ReceivedAt))}
	if t.Worker != nil {
		h.Worker = *t.Worker
	}
	last := len(t.Executions) - 1
	at := last
	for at >= 0 && (t.Executions[at].StartedAt == 0 || kind == Idempotent && skipped(t.Executions[at].Result)) {
		at--
	}
	if at >= 0 {
		x := &t.Executions[at]
		h.Worker, h.StartedAt = x.Worker, micros(x.StartedAt)
		h.EndedAt = micros(max(x.SucceededAt, x.FailedAt, x.RetriedAt, x.RevokedAt, x.RejectedAt))
	}
	switch {
	case t.Dismissed != nil:
		h.Status, h.Why = Lost, "was dismissed by a person"
	case t.Lost != nil:
		h.Status, h.Why = Lost, "is lost: "+t.Lost.Evidence
	case t.State.Final() && (kind != Idempotent || at == last && at >= 0):
		h.Status, h.Why = Ended, "has ended with "+string(t.State)
	case kind == Idempotent && at >= 0 && at < last && !t.Executions[at].State.Final() && t.Executions[at].State != state.Retry:
		h.Status, h.Why = Lost, "was delivered again after "+h.Worker+" had started it and died"
	case kind == Idempotent && at >= 0 && (at < last || t.State == state.Retry):
		h.Status, h.Why = Ended, "has ended an attempt with "+string(t.Executions[at].State)
	case kind == Idempotent && at < 0 && t.State.Final():
		h.Status, h.Why = UnknownHolder, "was turned away" // every run of it was
	case at < 0 || t.State == state.Pending || t.State == state.Received || t.State == state.Retry:
		h.Status = Waiting
	case offline[h.Worker]:
		h.Status, h.Why = Lost, "was running on "+h.Worker+", which is offline"
	default:
		h.Status = Running
	}
	return h
}

// micros returns a time in µs since 1970 UTC, zero for 0.
func micros(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMicro(at).UTC()
}
