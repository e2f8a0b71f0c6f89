package api

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/state"
)

// NewTask is a task to be run.
type NewTask struct {
	ID        string          `json:"id,omitempty" doc:"Of the new task; a random UUID if it is absent." example:"7d1e6a52-1b2c-4d3e-8f90-a1b2c3d4e5f6"`
	Name      string          `json:"name" example:"billing.tasks.charge"`
	Args      json.RawMessage `json:"args,omitempty" doc:"An array; empty if it is absent."`
	Kwargs    json.RawMessage `json:"kwargs,omitempty" doc:"An object; empty if it is absent."`
	Queue     string          `json:"queue,omitempty" doc:"celery if it is absent." example:"mail"`
	Countdown *float64        `json:"countdown,omitempty" doc:"Seconds; it is not started before. Not together with eta." example:"90"`
	ETA       *time.Time      `json:"eta,omitempty" doc:"It is not started before."`
	Expires   *time.Time      `json:"expires,omitempty" doc:"It is not started after."`
	Priority  *uint8          `json:"priority,omitempty" doc:"0 to 9, as the broker understands it."`
	Hard      *float64        `json:"hard,omitempty" doc:"Time limit: seconds after which its process is killed."`
	Soft      *float64        `json:"soft,omitempty" doc:"Time limit: seconds after which SoftTimeLimitExceeded is raised in it."`
	Force     bool            `json:"force,omitempty" doc:"Send it although no worker that answered has the task or consumes from the queue."`
}

// Changes are what is to be otherwise than it was when a task is run again.
type Changes struct {
	Args      json.RawMessage `json:"args,omitempty" doc:"An array, in place of what it was called with."`
	Kwargs    json.RawMessage `json:"kwargs,omitempty" doc:"An object, in place of what it was called with."`
	Queue     string          `json:"queue,omitempty"`
	Countdown *float64        `json:"countdown,omitempty" doc:"As in publish-task."`
	ETA       *time.Time      `json:"eta,omitempty" doc:"As in publish-task."`
	Expires   *time.Time      `json:"expires,omitempty" doc:"As in publish-task."`
	Priority  *uint8          `json:"priority,omitempty" doc:"As in publish-task."`
	Hard      *float64        `json:"hard,omitempty" doc:"As in publish-task."`
	Soft      *float64        `json:"soft,omitempty" doc:"As in publish-task."`
	Force     bool            `json:"force,omitempty" doc:"As in publish-task."`
}

// Retry is what would run a task again as it was. Null is unknown.
type Retry struct {
	Order  *NewTask `json:"order" doc:"Body for publish-task; without args and kwargs if they are not known in full."`
	Source *string  `json:"source" enum:"outbox,broker,worker,result backend,event" doc:"Where the arguments are from; null if they are not known in full."`
	Args   *string  `json:"args" doc:"Python repr as sent, perhaps cut short: a hint for people."`
	Kwargs *string  `json:"kwargs" doc:"Python repr as sent, perhaps cut short: a hint for people."`
}

// TransformSchema lets what may be unknown be null.
func (Retry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return nullable[Retry](s) }

func (a *api) registerPublish(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	if a.service() == nil {
		return
	}
	service := a.service()
	const missing, away = http.StatusNotFound, http.StatusServiceUnavailable
	publish := operation("publish-task", "/publish", "Run a task", orderProblems(missing, http.StatusConflict)...)
	publish.Description = "The name is looked for among the tasks that workers have registered, the queue among those that they " +
		"consume from; where they are not there, the order is refused unless force is set."
	registerOrder(a, h, publish, func(ctx context.Context, o order[NewTask]) (Preview, error) {
		t, err := o.Body.order()
		if err != nil {
			return Preview{}, err
		}
		p, err := service.PreviewTask(ctx, t)
		return fromPreview(p), err
	}, func(ctx context.Context, o order[NewTask]) (command.Receipt, error) {
		t, err := o.Body.order()
		if err != nil {
			return command.Receipt{}, err
		}
		return service.Publish(ctx, o.By, t)
	})
	huma.Register(h, operation("get-retry", "/retry/{id}", "What would run a task again",
		http.StatusBadRequest, missing, away), a.getRetry)
	again := operation("retry-task", "/retry/{id}", "Run a task again, as it was or with changes", orderProblems(missing, http.StatusConflict)...)
	again.Description = "The task gets a new id. It is refused with 409 if its arguments are not known in full and the body has none."
	registerOrder(a, h, again, func(ctx context.Context, o order[Changes]) (Preview, error) {
		t, err := a.changed(ctx, o)
		if err != nil {
			return Preview{}, err
		}
		p, err := service.PreviewTask(ctx, t)
		return fromPreview(p), err
	}, func(ctx context.Context, o order[Changes]) (command.Receipt, error) {
		t, err := a.changed(ctx, o)
		if err != nil {
			return command.Receipt{}, err
		}
		return service.Publish(ctx, o.By, t)
	})
}

// getRetry says what would run a task again.
func (a *api) getRetry(ctx context.Context, r *taskRequest) (*answer[Retry], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, actPatience)
	defer cancel()
	o, source, err := a.service().Retry(ctx, r.ID)
	if err != nil {
		return nil, a.actProblem(ctx, err)
	}
	t, err := a.backend.Task(ctx, r.ID)
	if err != nil {
		t = state.Task{} // it may be known from elsewhere
	}
	return &answer[Retry]{Body: Retry{Order: fromOrder(o), Source: text(source), Args: t.Args, Kwargs: t.Kwargs}}, nil
}

// changed returns the order to run a task again.
func (a *api) changed(ctx context.Context, o order[Changes]) (command.TaskRequest, error) {
	t, source, err := a.service().Retry(ctx, o.Rest)
	if err != nil {
		return t, err
	}
	b := o.Body
	if source == "" && (b.Args == nil || b.Kwargs == nil) {
		return t, problem(http.StatusConflict,
			"The arguments of this task are not known in full; the body must have args and kwargs.")
	}
	edited, err := (NewTask{
		Name: t.Name, Args: b.Args, Kwargs: b.Kwargs, Queue: b.Queue, Countdown: b.Countdown, ETA: b.ETA, Expires: b.Expires,
		Priority: b.Priority, Hard: b.Hard, Soft: b.Soft, Force: b.Force,
	}).order()
	if err != nil {
		return t, err
	}
	return edit(t, edited), nil
}

// edit returns an order with what another one names.
func edit(t, by command.TaskRequest) command.TaskRequest {
	if by.Args != nil {
		t.Args = by.Args
	}
	if by.Kwargs != nil {
		t.Kwargs = by.Kwargs
	}
	if by.Queue != "" {
		t.Queue = by.Queue
	}
	if by.Priority != nil {
		t.Priority = by.Priority
	}
	if by.Hard != nil {
		t.Hard = by.Hard
	}
	if by.Soft != nil {
		t.Soft = by.Soft
	}
	if by.Countdown != 0 || !by.ETA.IsZero() {
		t.Countdown, t.ETA = by.Countdown, by.ETA
	}
	if !by.Expires.IsZero() {
		t.Expires = by.Expires
	}
	t.Force = by.Force
	return t
}

// order returns the request for the command service.
func (t NewTask) order() (command.TaskRequest, error) {
	o := command.TaskRequest{
		ID: t.ID, Name: t.Name, Args: t.Args, Kwargs: t.Kwargs, Queue: t.Queue, Priority: t.Priority,
		Hard: t.Hard, Soft: t.Soft, Force: t.Force,
	}
	if t.Countdown != nil {
		if *t.Countdown < 0 || *t.Countdown > maxCountdown.Seconds() {
			return o, badField("countdown", "must be a number of seconds from 0 to ten years")
		}
		o.Countdown = time.Duration(math.Round(*t.Countdown * float64(time.Second)))
	}
	if t.ETA != nil {
		o.ETA = *t.ETA
	}
	if t.Expires != nil {
		o.Expires = *t.Expires
	}
	return o, nil
}

// maxCountdown bounds how long a task may be put off.
const maxCountdown = 10 * 365 * 24 * time.Hour

func fromOrder(o command.TaskRequest) *NewTask {
	t := &NewTask{
		Name: o.Name, Args: o.Args, Kwargs: o.Kwargs, Queue: o.Queue, Priority: o.Priority, Hard: o.Hard, Soft: o.Soft,
	}
	if !o.ETA.IsZero() {
		t.ETA = new(o.ETA)
	}
	if !o.Expires.IsZero() {
		t.Expires = new(o.Expires)
	}
	return t
}
