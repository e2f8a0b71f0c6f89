package api

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
)

// NewTask is a task to publish.
type NewTask struct {
	_ struct{} `additionalProperties:"false"`

	ID   string `json:"id,omitempty" doc:"ID of the new task. Defaults to a random UUID." example:"7d1e6a52-1b2c-4d3e-8f90-a1b2c3d4e5f6"`
	Name string `json:"name" minLength:"1" example:"billing.tasks.charge"`
	CallOptions
}

// Changes are what to change when a task is retried.
type Changes struct {
	_ struct{} `additionalProperties:"false"`

	CallOptions
}

// CallOptions are the arguments and options of a task, as in Task.apply_async.
type CallOptions struct {
	Args      json.RawMessage `json:"args,omitempty" doc:"Positional arguments, an array. Defaults to none, or to the original's when retrying; the same holds for the other fields."`
	Kwargs    json.RawMessage `json:"kwargs,omitempty" doc:"Keyword arguments, an object."`
	Queue     string          `json:"queue,omitempty" doc:"Queue to publish to. Defaults to celery." example:"mail"`
	Countdown float64         `json:"countdown,omitempty" minimum:"0" maximum:"315360000" doc:"Delay in seconds before the task may start. Cannot be combined with eta." example:"90"`
	ETA       *time.Time      `json:"eta,omitempty" doc:"Earliest start time."`
	Expires   *time.Time      `json:"expires,omitempty" doc:"Latest start time."`
	Priority  *uint8          `json:"priority,omitempty" maximum:"9" doc:"Message priority, interpreted by the broker."`
	Hard      *float64        `json:"hard,omitempty" doc:"Hard time limit in seconds: the process is killed."`
	Soft      *float64        `json:"soft,omitempty" doc:"Soft time limit in seconds: SoftTimeLimitExceeded is raised."`
	// Serializer writes the message.
	Serializer string `json:"serializer,omitempty" enum:"json,msgpack,yaml" doc:"How the message is written: the workers' accept_content must have it. Defaults to the original's when retrying, else to the task_serializer that the workers have reported, else to json."`
	Force      bool   `json:"force,omitempty" doc:"Publish even if no responding worker has registered the task or consumes from the queue."`
}

// apply returns t with the options that are given.
func (o CallOptions) apply(t command.TaskRequest) command.TaskRequest {
	if o.Args != nil {
		t.Args = o.Args
	}
	if o.Kwargs != nil {
		t.Kwargs = o.Kwargs
	}
	t.Queue, t.Priority, t.Force = cmp.Or(o.Queue, t.Queue), cmp.Or(o.Priority, t.Priority), o.Force
	t.Hard, t.Soft = cmp.Or(o.Hard, t.Hard), cmp.Or(o.Soft, t.Soft)
	if o.Countdown != 0 || o.ETA != nil {
		t.Countdown = time.Duration(math.Round(o.Countdown * float64(time.Second)))
		t.ETA = deref(o.ETA)
	}
	if o.Expires != nil {
		t.Expires = *o.Expires
	}
	if o.Serializer != "" {
		t.Serializer = celery.Serializer(o.Serializer)
	}
	return t
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

type publishInput struct {
	SendOptions
	Body NewTask
}

type retryInput struct {
	TaskPath
	SendOptions
	Body *Changes
}

// Retry is what it takes to run a task again. Null means unknown.
type Retry struct {
	Request *NewTask `json:"request" doc:"Body for publish-task; args and kwargs are absent if they are not known in full."`
	Source  *string  `json:"source" enum:"outbox,broker,worker,result backend,event" doc:"Source of the arguments; null if they are not known in full."`
	Args    *string  `json:"args" doc:"Python repr as sent, possibly truncated."`
	Kwargs  *string  `json:"kwargs" doc:"Python repr as sent, possibly truncated."`
}

func (a *api) registerPublish(h huma.API) {
	if a.service() == nil {
		return
	}
	service := a.service()
	publish := postSend(h, auth.PublishTask, "publish-task", "/publish", "Publish a task", notFound, conflict)
	publish.Description = "Refused, unless force is set, if no worker has registered the task or consumes from the queue."
	preview := func(ctx context.Context, o command.TaskRequest) (Preview, error) {
		p, err := service.PreviewTask(ctx, o)
		return fromPreview(p), err
	}
	registerSend(a, h, publish, sendSteps[publishInput, command.TaskRequest, Preview]{
		request: func(_ context.Context, in *publishInput) (command.TaskRequest, error) {
			return in.Body.apply(command.TaskRequest{ID: in.Body.ID, Name: in.Body.Name}), nil
		},
		preview: preview, send: service.Publish,
	})
	huma.Register(h, operation(h, auth.ReadPayload, "get-retry", "/retry/{id}", "Get the request that would retry a task", notFound, unavailable), a.getRetry)
	again := postSend(h, auth.RetryTask, "retry-task", "/retry/{id}", "Retry a task, as it was or with changes", notFound, conflict)
	again.Description = "The new task gets a new ID. Fails with 409 if the arguments are not known in full and not given."
	registerSend(a, h, again, sendSteps[retryInput, command.TaskRequest, Preview]{request: a.changed, preview: preview, send: service.Publish})
}

// getRetry returns the request that would retry a task.
func (a *api) getRetry(ctx context.Context, r *TaskPath) (*response[Retry], error) {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	o, source, err := a.service().Retry(ctx, r.ID)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	t, err := a.backend.Task(ctx, r.ID)
	if err != nil {
		t = state.Task{} // the arguments may be known from elsewhere
	}
	return &response[Retry]{Body: Retry{Request: fromTaskRequest(o), Source: text(source), Args: t.Args, Kwargs: t.Kwargs}}, nil
}

// changed returns the request to run a task again.
func (a *api) changed(ctx context.Context, in *retryInput) (command.TaskRequest, error) {
	t, source, err := a.service().Retry(ctx, in.ID)
	if err != nil {
		return t, err
	}
	var o CallOptions
	if in.Body != nil {
		o = in.Body.CallOptions
	}
	if source == "" && (o.Args == nil || o.Kwargs == nil) {
		return t, problem(http.StatusConflict,
			"The arguments of this task are not known in full; args and kwargs are required.")
	}
	return o.apply(t), nil
}

func fromTaskRequest(o command.TaskRequest) *NewTask {
	t := &NewTask{Name: o.Name, CallOptions: CallOptions{
		Args: o.Args, Kwargs: o.Kwargs, Queue: o.Queue, Priority: o.Priority, Hard: o.Hard, Soft: o.Soft, Serializer: string(o.Serializer),
	}}
	if !o.ETA.IsZero() {
		t.ETA = &o.ETA
	}
	if !o.Expires.IsZero() {
		t.Expires = &o.Expires
	}
	return t
}
