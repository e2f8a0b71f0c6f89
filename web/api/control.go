package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// inspectTimeout is how long a worker may take that is asked anew.
const inspectTimeout = 3 * time.Second

// Method is a remote control command.
type Method struct {
	Name    string  `json:"name" example:"pool_grow"`
	Title   string  `json:"title"`
	Doc     string  `json:"doc"`
	Inspect bool    `json:"inspect" doc:"Whether the command only reads."`
	Silent  bool    `json:"silent" doc:"Whether workers never reply to it."`
	Danger  bool    `json:"danger" doc:"Whether the dashboard asks for confirmation."`
	Params  []Param `json:"params" nullable:"false"`
}

// Param is an argument of a Method.
type Param struct {
	Name     string   `json:"name"`
	Type     string   `json:"type" enum:"text,texts,whole,seconds,rate,signal,flag,anything"`
	Required bool     `json:"required"`
	Doc      string   `json:"doc"`
	Choices  []string `json:"choices" nullable:"false" doc:"Allowed values; empty if any value is allowed."`
}

// Topology is which workers have which tasks and queues, as they told.
type Topology struct {
	At      Time                `json:"at" doc:"When the workers were asked; null if not yet."`
	Tasks   map[string][]string `json:"tasks" doc:"Workers by registered task name."`
	Queues  map[string][]string `json:"queues" doc:"Workers by consumed queue."`
	Asked   []string            `json:"asked" nullable:"false" doc:"Workers expected to reply."`
	Missing []string            `json:"missing" nullable:"false" doc:"Workers that did not reply."`
}

// ControlBody asks workers for something.
type ControlBody struct {
	_ struct{} `additionalProperties:"false"`

	Method    string         `json:"method" example:"pool_grow"`
	Arguments map[string]any `json:"arguments,omitempty" doc:"Arguments as listed by list-methods."`
	Workers   []string       `json:"workers,omitempty" doc:"Node names. Defaults to all workers."`
	Expires   float64        `json:"expires_seconds,omitempty" exclusiveMinimum:"0" maximum:"86400" doc:"Discard the command if it cannot be sent within this time. Defaults to 60."`
}

type controlInput struct {
	Sending
	Body ControlBody
}

type inspectInput struct {
	WorkerPath
	Refresh bool `query:"refresh" doc:"Wait up to 3 s for a fresh reply, unless the last one is less than 5 s old."`
}

func paramType(t remote.ParamType) string {
	switch t {
	case remote.TextList:
		return "texts"
	case remote.Integer:
		return "whole"
	case remote.Seconds:
		return "seconds"
	case remote.Rate:
		return "rate"
	case remote.Signal:
		return "signal"
	case remote.Flag:
		return "flag"
	case remote.AnyJSON:
		return "anything"
	case remote.Text:
	}
	return "text"
}

func fromMethod(m remote.Method) Method {
	return Method{
		Name: m.Name, Title: m.Title, Doc: m.Doc, Inspect: m.Inspect, Silent: m.NoReply, Danger: m.Dangerous,
		Params: each(m.Params, func(p remote.Param) Param {
			return Param{
				Name: p.Name, Type: paramType(p.Type), Required: p.Required, Doc: p.Doc, Choices: append([]string{}, p.Choices...),
			}
		}),
	}
}

// registerControl adds the operations on what workers tell and are told.
func (a *api) registerControl(h huma.API) {
	if a.operations == nil {
		return
	}
	huma.Register(h, operation(h, "list-methods", "/methods", "Remote control commands that Umbel offers"), a.methods)
	huma.Register(h, operation(h, "get-topology", "/topology", "Which workers have which tasks and queues, asked now unless 5 s ago"), a.topology)
	inspect := operation(h, "inspect-worker", "/inspect/{name}", "What a worker tells of itself", notFound)
	inspect.Description = "What was told lately is shared by all who ask: a worker is asked at most once in 5 s. Secrets are masked."
	huma.Register(h, inspect, a.inspect)
	service := a.service()
	if service == nil {
		return
	}
	a.registerForget(h)
	tell := postOrder(h, "control-workers", "/control", "Tell workers something", notFound)
	tell.Description = "One command for each worker that is named, or one for all. Workers answer into the commands of the order."
	registerOrder(a, h, tell, takes[controlInput, command.ControlRequest, Preview]{
		order: func(_ context.Context, in *controlInput) (command.ControlRequest, error) { return in.Body.order(), nil },
		preview: func(ctx context.Context, o command.ControlRequest) (Preview, error) {
			p, err := service.PreviewControl(ctx, o)
			return fromPreview(p), err
		},
		send: service.Control,
	})
}

// order returns what the desk is asked for.
func (b ControlBody) order() command.ControlRequest {
	return command.ControlRequest{
		Method: b.Method, Arguments: b.Arguments, Workers: b.Workers,
		Expires: time.Duration(b.Expires * float64(time.Second)),
	}
}

func (a *api) methods(context.Context, *struct{}) (*answer[List[Method]], error) {
	return &answer[List[Method]]{Body: whole(remote.Methods(), fromMethod)}, nil
}

func (a *api) topology(ctx context.Context, _ *struct{}) (*answer[Topology], error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	t := a.operations.Inspector.Topology(ctx)
	return &answer[Topology]{Body: Topology{
		At: timeOf(t.At), Tasks: filled(t.Tasks), Queues: filled(t.Queues),
		Asked: append([]string{}, t.Expected...), Missing: append([]string{}, t.Missing...),
	}}, nil
}

func (a *api) inspect(ctx context.Context, r *inspectInput) (*answer[Inspection], error) {
	var known bool
	var status state.Status
	var others []state.Worker
	a.backend.View(func(c *state.Cluster) {
		var w state.Worker
		if w, known = c.Worker(r.Name); !known {
			others = c.Workers()
		}
		status = w.Status
	})
	if !known {
		return nil, unknownWorker(r.Name, each(others, func(w state.Worker) string { return w.Name }))
	}
	if r.Refresh && status == state.Online {
		ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		return &answer[Inspection]{Body: fromInspection(r.Name, a.operations.Inspector.Inspect(ctx, r.Name))}, nil
	}
	return &answer[Inspection]{Body: fromInspection(r.Name, a.operations.Inspector.Cached(r.Name))}, nil
}
