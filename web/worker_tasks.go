package web

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
)

const (
	maxHeld = 500 // tasks that one page asks events for
	maxLost = 10  // listed
)

// part is the list of a worker that a task is in, by inspection method.
type part string

const (
	active    part = "active"
	reserved  part = "reserved"
	scheduled part = "scheduled"
)

// held is what a worker holds, according to its replies and to events. Where the two differ, the later one counts.
func (p *workerPages) held(w state.Worker, i remote.Inspection, counts workers.Counts) templates.WorkerNow {
	worker := w.Name
	known := p.knownTasks(worker, reportedTasks(i))
	now := p.now().UnixMicro()
	lists := map[part][]templates.WorkerTask{}
	for _, reported := range reportedTasks(i) {
		t, as := reported.task, reported.as
		if events, ok := known[t.ID]; ok {
			delete(known, t.ID)
			at := partOf(&events, worker, now)
			if t.ByEvents = at == as; !t.ByEvents && events.UpdatedAt > micros(i.Times[string(as)]) {
				t, as = byEvents(&events), at
			}
			t.EventsAt = events.UpdatedAt
		}
		lists[as] = append(lists[as], t)
	}
	var lost []templates.WorkerTask
	for _, id := range slices.Sorted(maps.Keys(known)) {
		events := known[id]
		as := partOf(&events, worker, now)
		t := byEvents(&events)
		t.Soft, t.Hard = limits(remote.TaskInfo{Name: t.Name}, i)
		if lists[as] = append(lists[as], t); events.Orphaned {
			lost = append(lost, t)
		}
	}
	for _, list := range lists {
		for n := range list {
			timed(&list[n], w, now, counts)
		}
	}
	// Those that run longest and those that are due next come first; reserved ones stay as they came.
	slices.SortStableFunc(lists[active], func(a, b templates.WorkerTask) int { return cmp.Compare(a.StartedAt, b.StartedAt) })
	slices.SortStableFunc(lists[scheduled], func(a, b templates.WorkerTask) int {
		return cmp.Compare(uint64(a.ETA-1), uint64(b.ETA-1)) // 0 is unknown, and last
	})
	slices.SortStableFunc(lost, func(a, b templates.WorkerTask) int { return cmp.Compare(b.StartedAt, a.StartedAt) })
	return templates.WorkerNow{
		Active: lists[active], Reserved: lists[reserved], Scheduled: lists[scheduled], Revoked: i.Revoked,
		Lost: lost[:min(len(lost), maxLost)], LostInAll: len(lost),
	}
}

// timed corrects the times of a task on a worker by how far its clock is ahead, and fills in how long the task has run and
// how long such tasks usually do.
func timed(t *templates.WorkerTask, w state.Worker, now int64, counts workers.Counts) {
	if ahead := w.ClockOffsetMicros; ahead != nil {
		t.StartedAt, t.EventsAt = earlier(t.StartedAt, *ahead), earlier(t.EventsAt, *ahead)
	}
	t.Usual = counts.Usual[t.Name]
	if t.StartedAt != 0 {
		t.Elapsed = float64(max(now-t.StartedAt, 0)) / 1e6
	}
}

// earlier is a time, µs, less a difference; 0 stays unknown.
func earlier(at, by int64) int64 {
	if at == 0 {
		return 0
	}
	return at - by
}

// knownTasks are the tasks of a worker according to events, with those that it reported, by ID.
func (p *workerPages) knownTasks(worker string, reported []reportedTask) map[string]state.Task {
	known := map[string]state.Task{}
	p.backend.View(func(c state.View) {
		for _, t := range c.Tasks(state.Query{Workers: []string{worker}, States: unfinished(c), Limit: maxHeld}).Tasks {
			known[t.ID] = t
		}
		for _, t := range reported[:min(len(reported), maxHeld)] {
			if _, ok := known[t.task.ID]; ok {
				continue
			}
			if events, ok := c.Task(t.task.ID); ok {
				known[t.task.ID] = events
			}
		}
	})
	return known
}

// partOf is what a worker does with a task by its events, empty if it does not have it.
func partOf(t *state.Task, worker string, now int64) part {
	switch {
	case t.Worker == nil || *t.Worker != worker || t.Orphaned || t.Returned || !onWorker(t.State):
		return ""
	case t.State != state.Received:
		return active // in a state of its own, if not started
	}
	if eta, ok := lang.ETA.Int(t); ok && eta > now {
		return scheduled
	}
	return reserved
}

// onWorker reports whether a worker has the tasks of a state.
func onWorker(s state.State) bool { return !s.Final() && s != state.Pending && s != state.Retry }

// unfinished are the states of the tasks that workers have.
func unfinished(c state.View) []state.State {
	return slices.DeleteFunc(templates.States(c.Counts().ByState), func(s state.State) bool { return !onWorker(s) })
}

// byEvents is a task according to its events.
func byEvents(t *state.Task) templates.WorkerTask {
	h := templates.WorkerTask{ID: t.ID, StartedAt: t.StartedAt, ByEvents: true, EventsAt: t.UpdatedAt}
	for to, from := range map[*string]*string{&h.Name: t.Name, &h.Args: t.Args, &h.Kwargs: t.Kwargs, &h.Queue: t.Queue} {
		if from != nil {
			*to = *from
		}
	}
	h.ETA, _ = lang.ETA.Int(t)
	return h
}

// reportedTask is a task that a worker reported.
type reportedTask struct {
	as   part
	task templates.WorkerTask
}

func reportedTasks(i remote.Inspection) []reportedTask {
	var list []reportedTask
	for _, r := range i.Active {
		t := byWorker(r, i.Times["active"])
		t.Soft, t.Hard = limits(r, i)
		list = append(list, reportedTask{active, t})
	}
	for _, r := range i.Reserved {
		list = append(list, reportedTask{reserved, byWorker(r, i.Times["reserved"])})
	}
	for _, s := range i.Scheduled {
		t := byWorker(s.Task, i.Times["scheduled"])
		t.ETA = micros(s.ETA)
		list = append(list, reportedTask{scheduled, t})
	}
	return list
}

// byWorker is a task as the worker reported it.
func byWorker(r remote.TaskInfo, asked time.Time) templates.WorkerTask {
	t := templates.WorkerTask{
		ByWorker: true, WorkerAt: micros(asked), ID: r.ID, Name: r.Name, Args: r.Args, Kwargs: r.Kwargs, StartedAt: micros(r.StartedAt), PID: r.PID,
		Queue: r.Queue, Priority: r.Priority, Redelivered: r.Redelivered != nil && *r.Redelivered, Soft: r.SoftLimit, Hard: r.HardLimit,
	}
	if !r.StartedAt.IsZero() {
		t.Elapsed = max(asked.Sub(r.StartedAt), 0).Seconds()
	}
	return t
}
