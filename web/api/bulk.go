package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
)

// Bulk revokes, terminates or retries many tasks.
type Bulk struct {
	_ struct{} `additionalProperties:"false"`

	Action string   `json:"action" enum:"revoke,terminate,retry"`
	IDs    []string `json:"ids,omitempty" nullable:"false" doc:"Task IDs. Give either ids or q."`
	Query  *string  `json:"q,omitempty" doc:"Query in the language of docs/query.md; an empty query matches all tasks. Give either ids or q." example:"state:failure name:billing.*"`
	Signal string   `json:"signal,omitempty" doc:"Signal for terminate. Defaults to SIGTERM." example:"SIGKILL"`
	Cap    int      `json:"cap,omitempty" minimum:"1" maximum:"10000" doc:"Maximum number of tasks to act on. Defaults to 1,000." example:"500"`

	Objects bool            `json:"objects,omitempty" doc:"With retry, send Decimal, UUID, date and datetime of arguments that only events show as Celery 5.3 and newer encode them."`
	Args    json.RawMessage `json:"args,omitempty" doc:"With retry, the arguments of all tasks whose own are not known in full: an array."`
	Kwargs  json.RawMessage `json:"kwargs,omitempty" doc:"With retry, the keyword arguments of all tasks whose own are not known in full: an object."`
}

type bulkInput struct {
	SendOptions
	Body Bulk
}

// BulkPreview says what a bulk request would do.
type BulkPreview struct {
	Preview

	Matched *int           `json:"matched" doc:"Number of matching tasks; null if there are too many to count."`
	Chosen  int            `json:"chosen" doc:"Number of tasks the request would act on."`
	States  map[string]int `json:"states" nullable:"false" doc:"The chosen tasks by state."`
	Blocked []Blocked      `json:"blocked" nullable:"false" doc:"Skipped tasks by reason."`
	Capped  bool           `json:"capped" doc:"Whether more tasks match than cap allows."`
}

// Blocked is a reason why tasks are skipped.
type Blocked struct {
	Reason string   `json:"reason" example:"already finished"`
	Count  int      `json:"count"`
	IDs    []string `json:"ids" nullable:"false" doc:"The first few task IDs."`
	Remedy *string  `json:"remedy" doc:"How a retry is possible; null if nothing is known to help."`
}

func (a *api) registerBulk(h huma.API) {
	service := a.service()
	if service == nil {
		return
	}
	op := postSend(h, auth.RevokeTask, "act-on-tasks", "/bulk", "Revoke, terminate or retry many tasks", conflict)
	op.Description = "With dry_run, reports which tasks it would act on, and which it would skip and why."
	registerSend(a, h, op, sendSteps[bulkInput, command.BulkRequest, BulkPreview]{
		request: func(_ context.Context, in *bulkInput) (command.BulkRequest, error) {
			o, err := in.Body.request()
			if err == nil && a.hides {
				o.Query, err = payload.Query(o.Query) // the service sees everything
			}
			return o, err
		},
		preview: func(ctx context.Context, o command.BulkRequest) (BulkPreview, error) {
			p, err := service.PreviewBulk(ctx, o)
			return fromBulkPreview(p), err
		},
		send: service.Bulk,
	})
}

// request returns the request for the command service.
func (b Bulk) request() (command.BulkRequest, error) {
	o := command.BulkRequest{Action: b.Action, IDs: b.IDs, Signal: b.Signal, Cap: b.Cap, Objects: b.Objects, Args: b.Args, Kwargs: b.Kwargs}
	if (b.Query == nil) == (len(b.IDs) == 0) {
		return o, badField("ids", "or q must be given, but not both")
	}
	if b.Query == nil {
		return o, nil
	}
	q, err := query.Parse(*b.Query)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		p := problem(http.StatusBadRequest, "Field q is invalid: "+wrong.Message+".")
		p.Offset, p.Length, p.Nearest = &wrong.Offset, &wrong.Length, wrong.Nearest
		p.Errors = []*huma.ErrorDetail{{Location: "body.q", Message: wrong.Message}}
		return o, p
	}
	o.Query = q
	return o, err
}

func fromBulkPreview(p command.BulkPreview) BulkPreview {
	f := BulkPreview{
		Preview: fromPreview(p.Preview), Chosen: p.Selected, States: map[string]int{}, Capped: p.Capped,
		Blocked: mapSlice(p.Blocked, func(b command.Blocked) Blocked {
			return Blocked{Reason: b.Reason, Count: b.N, IDs: append([]string{}, b.IDs...), Remedy: text(b.Remedy)}
		}),
	}
	f.Confirm = nil // the request is deliberate
	if p.Matched.Exact {
		f.Matched = &p.Matched.N
	}
	for s, n := range p.States {
		f.States[string(s)] = n
	}
	return f
}
