package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
)

// inspectTimeout bounds how long to wait for a reply to an inspection.
const inspectTimeout = 3 * time.Second

// Method is a remote control command.
type Method struct {
	Name      string  `json:"name" example:"pool_grow"`
	Title     string  `json:"title"`
	Doc       string  `json:"doc"`
	Inspect   bool    `json:"inspect" doc:"Whether the command only reads."`
	NoReply   bool    `json:"no_reply" doc:"Whether workers never reply to it."`
	Dangerous bool    `json:"dangerous" doc:"Whether the dashboard asks for confirmation."`
	Params    []Param `json:"params" nullable:"false"`
}

// Param is an argument of a Method.
type Param struct {
	Name     string   `json:"name"`
	Type     string   `json:"type" enum:"text,text_list,integer,seconds,rate,signal,boolean,any"`
	Required bool     `json:"required"`
	Doc      string   `json:"doc"`
	Choices  []string `json:"choices" nullable:"false" doc:"Allowed values; empty if any value is allowed."`
}

// Topology lists which workers have registered which tasks and consume from which queues.
type Topology struct {
	At       Time                `json:"at" doc:"When the workers were asked; null if not yet."`
	Tasks    map[string][]string `json:"tasks" doc:"Workers by registered task name."`
	Queues   map[string][]string `json:"queues" doc:"Workers by consumed queue."`
	Expected []string            `json:"expected" nullable:"false" doc:"Workers expected to reply."`
	Missing  []string            `json:"missing" nullable:"false" doc:"Workers that did not reply."`
}

// ControlBody is a remote control command for workers.
type ControlBody struct {
	_ struct{} `additionalProperties:"false"`

	Method    string         `json:"method" minLength:"1" example:"pool_grow"`
	Arguments map[string]any `json:"arguments,omitempty" doc:"Arguments as listed by list-methods."`
	Workers   []string       `json:"workers,omitempty" doc:"Node names. Defaults to all workers."`
	Expires   float64        `json:"expires_seconds,omitempty" minimum:"5" maximum:"3600" doc:"Discard the command if it cannot be sent within this time. Defaults to 60."`
}

type controlInput struct {
	SendOptions
	Body ControlBody
}

type inspectInput struct {
	WorkerPath
	Refresh bool `query:"refresh" doc:"Wait up to 3 s for a fresh reply, unless the last one is less than 5 s old."`
}

func paramType(t remote.ParamType) string {
	switch t {
	case remote.TextList:
		return "text_list"
	case remote.Integer:
		return "integer"
	case remote.Seconds:
		return "seconds"
	case remote.Rate:
		return "rate"
	case remote.Signal:
		return "signal"
	case remote.Flag:
		return "boolean"
	case remote.AnyJSON:
		return "any"
	case remote.Text:
	}
	return "text"
}

func fromMethod(m remote.Method) Method {
	return Method{
		Name: m.Name, Title: m.Title, Doc: m.Doc, Inspect: m.Inspect, NoReply: m.NoReply, Dangerous: m.Dangerous,
		Params: mapSlice(m.Params, func(p remote.Param) Param {
			return Param{
				Name: p.Name, Type: paramType(p.Type), Required: p.Required, Doc: p.Doc, Choices: append([]string{}, p.Choices...),
			}
		}),
	}
}

// registerControl adds the operations for inspection and remote control.
// shown returns an inspection as those may see it who ask.
func (a *api) shown(i remote.Inspection) remote.Inspection {
	if a.hides {
		return payload.Inspection(i)
	}
	return i
}

func (a *api) registerControl(h huma.API) {
	if a.commands == nil {
		return
	}
	huma.Register(h, operation(h, auth.View, "list-methods", "/methods", "List remote control commands"), a.methods)
	huma.Register(h, operation(h, auth.View, "get-topology", "/topology", "Get the tasks and queues of all workers"), a.topology)
	inspect := operation(h, auth.View, "inspect-worker", "/inspect/{name}", "Inspect a worker", notFound)
	inspect.Description = "Replies are cached: a worker is inspected at most once in 5 s, however many clients ask. Secrets are masked."
	huma.Register(h, inspect, a.inspect)
	service := a.service()
	if service == nil {
		return
	}
	a.registerForget(h)
	control := postSend(h, auth.ControlWorker, "control-workers", "/control", "Send a remote control command", notFound)
	control.Description = "Sends one command to each named worker, or one to all workers. Replies are added to the commands of the request."
	registerSend(a, h, control, sendSteps[controlInput, command.ControlRequest, Preview]{
		request: func(ctx context.Context, in *controlInput) (command.ControlRequest, error) {
			if why := auth.Decide(ctx, auth.ControlAction(in.Body.Method)); why != nil {
				return command.ControlRequest{}, problem(why.Status, why.Message)
			}
			return in.Body.request(), nil
		},
		preview: func(ctx context.Context, o command.ControlRequest) (Preview, error) {
			p, err := service.PreviewControl(ctx, o)
			return fromPreview(p), err
		},
		send: service.Control,
	})
}

// request returns the request for the command service.
func (b ControlBody) request() command.ControlRequest {
	return command.ControlRequest{
		Method: b.Method, Arguments: b.Arguments, Workers: b.Workers,
		Expires: time.Duration(b.Expires * float64(time.Second)),
	}
}

func (a *api) methods(context.Context, *struct{}) (*response[List[Method]], error) {
	return &response[List[Method]]{Body: onePage(remote.Methods(), fromMethod)}, nil
}

func (a *api) topology(ctx context.Context, _ *struct{}) (*response[Topology], error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	t := a.commands.Inspector.Topology(ctx)
	return &response[Topology]{Body: Topology{
		At: timeOf(t.At), Tasks: nonNil(t.Tasks), Queues: nonNil(t.Queues),
		Expected: append([]string{}, t.Expected...), Missing: append([]string{}, t.Missing...),
	}}, nil
}

func (a *api) inspect(ctx context.Context, r *inspectInput) (*response[Inspection], error) {
	var known bool
	var status state.Status
	var others []state.Worker
	a.backend.View(func(c state.View) {
		var w state.Worker
		if w, known = c.Worker(r.Name); !known {
			others = c.Workers()
		}
		status = w.Status
	})
	if !known {
		return nil, workerNotFound(r.Name, mapSlice(others, func(w state.Worker) string { return w.Name }))
	}
	if r.Refresh && status == state.Online {
		ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		return &response[Inspection]{Body: fromInspection(r.Name, a.shown(a.commands.Inspector.Inspect(ctx, r.Name)))}, nil
	}
	return &response[Inspection]{Body: fromInspection(r.Name, a.shown(a.commands.Inspector.Cached(r.Name)))}, nil
}
