package web

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/fair"
)

const (
	maxNamed   = 3                // tasks that are named in place of one that is not kept
	similarAge = 30 * time.Second // of the last tasks of a name
)

// taskPage shows one task.
type taskPage struct {
	*common
	failures *failurePages
	repeated *duplicatePages
	results  *storedResults // nil if there is no result backend
	runs     *cache[[]templates.SimilarRun]
}

func (p *taskPage) load(ctx context.Context, a address) (page, error) {
	id := a.name
	outbox := p.taskOutbox(ctx, id) // first, since it may be all that knows the task
	t, err := p.backend.Task(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		return page{}, unknown(p.unknownTask(ctx, id))
	}
	if err != nil {
		return page{}, fmt.Errorf("read task: %w", err)
	}
	v := templates.Task{Task: t, Outbox: outbox, Root: p.relative(ctx, t.RootID, id), Parent: p.relative(ctx, t.ParentID, id)}
	p.backend.View(func(c state.View) {
		if w, ok := c.Waited(&v.Task); ok {
			v.Waited = &w
		}
	})
	if v.Events, err = p.backend.TaskEvents(ctx, id); err != nil && !errors.Is(err, history.ErrNotFound) {
		return page{}, fmt.Errorf("read events: %w", err)
	}
	// What the history alone knows is left out while it is away.
	unless := func(err error) error {
		if err == nil || errors.Is(err, fair.ErrBusy) || ctx.Err() != nil {
			return err
		}
		p.log.DebugContext(ctx, "part of a task's page not read", "error", err)
		v.Incomplete = true
		return nil
	}
	v.Commands, v.Effects, err = p.taskCommands(ctx, &v.Task)
	if err := unless(err); err != nil {
		return page{}, err
	}
	v.Retries, err = p.retries(ctx, &v.Task)
	if err := unless(err); err != nil {
		return page{}, err
	}
	v.Actions, v.Stored = p.taskActions(&v.Task), p.stored(ctx, &v.Task)
	v.Alike = p.failures.of(ctx, &v.Task)
	v.Repeats = p.repeated.of(ctx, id)
	v.Similar, err = p.similar(ctx, &v.Task)
	if err := unless(err); err != nil {
		return page{}, err
	}
	timed := a.query.Get(paramOrder) == orderByTime
	near, err := p.family(ctx, &v.Task)
	if err := unless(err); err != nil {
		return page{}, err
	}
	v.Family = p.waterfall(&v.Task, near)
	if v.SpaceTime, err = p.spaceTime(ctx, &v.Task, near, v.Commands, timed); err != nil {
		return page{}, err
	}
	path := templates.TaskPath(id)
	if timed {
		path += "?" + paramOrder + "=" + orderByTime
	}
	return page{
		url:     path,
		title:   taskTitle(t),
		section: templates.SectionTasks,
		view:    v,
	}, nil
}

// taskOutbox returns what an application's outbox tells of a task, nil if none does.
func (p *taskPage) taskOutbox(ctx context.Context, id string) *templates.TaskOutbox {
	if p.appOutboxes == nil {
		return nil
	}
	trace, ok := p.appOutboxes.Look(ctx, id)
	if !ok {
		return nil
	}
	return p.fromOutbox(trace)
}

func taskTitle(t state.Task) string {
	if t.Name == nil {
		return t.ID
	}
	return *t.Name
}

// relative is the task that id refers to, nil if that is nothing or the task itself.
func (p *taskPage) relative(ctx context.Context, id *string, self string) *templates.RelatedTask {
	if id == nil || *id == "" || *id == self {
		return nil
	}
	return new(p.lookUp(ctx, *id))
}

// lookUp returns what a link to a task shows; without name and state if the task cannot be read.
func (p *taskPage) lookUp(ctx context.Context, id string) templates.RelatedTask {
	t, err := p.backend.Task(ctx, id)
	if err != nil {
		return templates.RelatedTask{ID: id}
	}
	return templates.RelatedTask{ID: id, Name: t.Name, State: t.State}
}

// unknownTask says why there may be no such task. If other tasks refer to it, there was one.
func (p *taskPage) unknownTask(ctx context.Context, id string) templates.Problem {
	v := templates.Problem{
		Title: "Unknown task",
		Message: "Task " + id + " was not found. Either Umbel received no event of it, because it was published before Umbel " +
			"started or its worker sends no task events, or it was removed after its retention period.",
		Back:     p.urls.Prefix + "/tasks",
		BackText: "All tasks",
	}
	if near := command.NearestTask(ctx, p.backend, id, p.now()); near != "" {
		v.Similar = append(v.Similar, templates.Link{Text: near, Href: p.urls.Prefix + templates.TaskPath(near)})
		return v
	}
	named := lang.New(lang.Or{lang.Equal(lang.Root, id), lang.Equal(lang.Parent, id)})
	page, err := p.backend.Tasks(ctx, history.TaskRequest{Query: named, Limit: maxNamed, Now: p.now()})
	if err != nil || len(page.Tasks) == 0 {
		return v
	}
	v.Title = "Task not retained"
	v.Message = "Other tasks refer to task " + id + ". It was removed after its retention " +
		"period, or its events were never received."
	for _, t := range page.Tasks {
		v.Similar = append(v.Similar, templates.Link{Text: taskTitle(t), Href: p.urls.Prefix + templates.TaskPath(t.ID)})
	}
	return v
}
