package web

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
)

// maxHeld bounds how many tasks one page asks events for.
const maxHeld = 500

// part is the list of a worker that a task is in, by inspection method.
type part string

const (
	active    part = "active"
	reserved  part = "reserved"
	scheduled part = "scheduled"
)

// held is what a worker holds, according to its replies and to events. Where the two differ, the later one counts.
func (p *workerPages) held(worker string, i remote.Inspection) templates.WorkerNow {
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
		}
		lists[as] = append(lists[as], t)
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		events := known[id]
		as := partOf(&events, worker, now)
		lists[as] = append(lists[as], byEvents(&events))
	}
	// Those that run longest and those that are due next come first; reserved ones stay as they came.
	slices.SortStableFunc(lists[active], func(a, b templates.WorkerTask) int { return cmp.Compare(a.StartedAt, b.StartedAt) })
	slices.SortStableFunc(lists[scheduled], func(a, b templates.WorkerTask) int { return cmp.Compare(a.ETA, b.ETA) })
	return templates.WorkerNow{Active: lists[active], Reserved: lists[reserved], Scheduled: lists[scheduled], Revoked: i.Revoked}
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
	h := templates.WorkerTask{ID: t.ID, StartedAt: t.StartedAt, ByEvents: true}
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
		ByWorker: true, ID: r.ID, Name: r.Name, Args: r.Args, Kwargs: r.Kwargs, StartedAt: micros(r.StartedAt), PID: r.PID,
		Queue: r.Queue, Priority: r.Priority, Redelivered: r.Redelivered != nil && *r.Redelivered, Soft: r.SoftLimit, Hard: r.HardLimit,
	}
	if !r.StartedAt.IsZero() {
		t.Elapsed = max(asked.Sub(r.StartedAt), 0).Seconds()
	}
	return t
}
