package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/query"
)

// inspectPatience is how long a worker may take that is asked anew.
const inspectPatience = 3 * time.Second

// Method is a remote control command.
type Method struct {
	Name    string  `json:"name" example:"pool_grow"`
	Title   string  `json:"title"`
	Doc     string  `json:"doc"`
	Inspect bool    `json:"inspect" doc:"It only reads."`
	Silent  bool    `json:"silent" doc:"Workers do not answer it."`
	Danger  bool    `json:"danger" doc:"Pages want it confirmed."`
	Params  []Param `json:"params" nullable:"false"`
}

// Param is an argument of a Method.
type Param struct {
	Name     string   `json:"name"`
	Type     string   `json:"type" enum:"text,texts,whole,seconds,rate,signal,flag,anything"`
	Required bool     `json:"required"`
	Doc      string   `json:"doc"`
	Choices  []string `json:"choices" nullable:"false" doc:"The only values, none if there are others."`
}

// Topology is which workers have which tasks and queues, as they told.
type Topology struct {
	At      Time                `json:"at" doc:"When they were asked, null if they were not yet."`
	Tasks   map[string][]string `json:"tasks" doc:"Workers by the names of the tasks that they have registered."`
	Queues  map[string][]string `json:"queues" doc:"Workers by the queues that they consume from."`
	Asked   []string            `json:"asked" nullable:"false" doc:"Workers that should have answered."`
	Missing []string            `json:"missing" nullable:"false" doc:"Those that did not."`
}

// ControlBody asks workers for something.
type ControlBody struct {
	Method    string         `json:"method" example:"pool_grow"`
	Arguments map[string]any `json:"arguments,omitempty" doc:"As list-methods has them."`
	Workers   []string       `json:"workers,omitempty" doc:"Node names; every worker if there are none."`
	Expires   *float64       `json:"expires_seconds,omitempty" doc:"It is not sent later than that; 60 if absent."`
}

// inspectRequest names a worker, and may want it asked anew.
type inspectRequest struct {
	request
	Name string `path:"name" doc:"Node name." example:"celery@host"`
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
func (a *api) registerControl(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	if a.operations == nil {
		return
	}
	const bad, missing = http.StatusBadRequest, http.StatusNotFound
	huma.Register(h, operation("list-methods", "/methods", "Remote control commands that Umbel offers", bad), a.methods)
	huma.Register(h, operation("get-topology", "/topology", "Which workers have which tasks and queues, asked now unless 5 s ago", bad), a.topology)
	inspect := operation("inspect-worker", "/inspect/{name}", "What a worker tells of itself", bad, missing)
	inspect.Description = "What was told lately is shared by all who ask: a worker is asked at most once in 5 s. Secrets are masked."
	inspect.Parameters = []*huma.Param{{
		Name: "refresh", In: "query", Description: "Wait for it, at most 3 s, unless it told within 5 s.",
		Schema: &huma.Schema{Type: huma.TypeBoolean},
	}}
	huma.Register(h, inspect, a.inspect)
	a.registerForget(h, operation)
	tell := operation("control-workers", "/control", "Tell workers something", orderProblems(missing)...)
	tell.Description = "One command for each worker that is named, or one for all. Workers answer into the commands of the order."
	registerOrder(a, h, tell, func(ctx context.Context, o order[ControlBody]) (Preview, error) {
		c, err := o.Body.order()
		if err != nil {
			return Preview{}, err
		}
		p, err := a.service().PreviewControl(ctx, c)
		return fromPreview(p), err
	}, func(ctx context.Context, o order[ControlBody]) (command.Receipt, error) {
		c, err := o.Body.order()
		if err != nil {
			return command.Receipt{}, err
		}
		return a.service().Control(ctx, o.By, c)
	})
}

// order returns the request for the command service.
func (b ControlBody) order() (command.ControlRequest, error) {
	o := command.ControlRequest{Method: b.Method, Arguments: b.Arguments, Workers: b.Workers}
	if b.Expires == nil {
		return o, nil
	}
	if *b.Expires <= 0 || *b.Expires > (24*time.Hour).Seconds() {
		return o, badField("expires_seconds", "must be a number of seconds up to a day")
	}
	o.Expires = time.Duration(*b.Expires * float64(time.Second))
	return o, nil
}

func (a *api) methods(_ context.Context, r *request) (*answer[List[Method]], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	return &answer[List[Method]]{Body: whole(remote.Methods(), fromMethod)}, nil
}

func (a *api) topology(ctx context.Context, r *request) (*answer[Topology], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, inspectPatience)
	defer cancel()
	t := a.operations.Inspector.Topology(ctx)
	return &answer[Topology]{Body: Topology{
		At: timeOf(t.At), Tasks: filled(t.Tasks), Queues: filled(t.Queues),
		Asked: append([]string{}, t.Expected...), Missing: append([]string{}, t.Missing...),
	}}, nil
}

func (a *api) inspect(ctx context.Context, r *inspectRequest) (*answer[Inspection], error) {
	refresh, err := r.refresh()
	if err != nil {
		return nil, err
	}
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
	if refresh && status == state.Online {
		ctx, cancel := context.WithTimeout(ctx, inspectPatience)
		defer cancel()
		return &answer[Inspection]{Body: fromInspection(r.Name, a.operations.Inspector.Inspect(ctx, r.Name))}, nil
	}
	return &answer[Inspection]{Body: fromInspection(r.Name, a.operations.Inspector.Cached(r.Name))}, nil
}

// refresh reads the only parameter that the resource has.
func (r *inspectRequest) refresh() (bool, error) {
	v, err := r.values()
	if err != nil {
		return false, err
	}
	refresh := v["refresh"]
	delete(v, "refresh")
	for name := range v {
		return false, badParameter(&query.Error{Param: name, Message: "is not a parameter of this resource; this is: refresh"})
	}
	if len(refresh) > 1 {
		return false, badParameter(&query.Error{Param: "refresh", Message: "may be given only once"})
	}
	switch {
	case len(refresh) == 0 || refresh[0] == "false":
		return false, nil
	case refresh[0] == "true":
		return true, nil
	}
	return false, badParameter(&query.Error{Param: "refresh", Message: "must be true or false"})
}
