package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/web/query"
)

const (
	maxWait     = 30 * time.Second // for the answers to an order
	maxKey      = 255              // bytes of an idempotency key
	maxReceipt  = 500              // commands of a receipt
	actPatience = time.Minute      // for looking up what an order is about
)

// Receipt says that an order is in the outbox.
type Receipt struct {
	Order    Int       `json:"order" doc:"Names the order."`
	URL      string    `json:"url" doc:"Its page, for people." example:"/outbox/17"`
	Replayed bool      `json:"replayed" doc:"The idempotency key was used before: this is the order of then."`
	Warnings []string  `json:"warnings" nullable:"false" doc:"What the order leads to."`
	Total    int       `json:"total" doc:"How many commands it consists of."`
	Commands []Command `json:"commands" nullable:"false" doc:"The first 500 of them."`
}

// Preview is what an order would do.
type Preview struct {
	Summary  string    `json:"summary" doc:"What would be sent."`
	Targets  []string  `json:"targets" nullable:"false" doc:"To whom."`
	Warnings []Warning `json:"warnings" nullable:"false" doc:"What it would lead to."`
	Confirm  *string   `json:"confirm" doc:"What must be sent as confirm, null if nothing."`
}

// Warning is one consequence.
type Warning struct {
	Message string `json:"message" example:"This leaves queue mail with no consumer."`
	Grave   bool   `json:"grave"`
}

func fromPreview(p command.Preview) Preview {
	return Preview{
		Summary: p.Summary, Targets: append([]string{}, p.Targets...), Confirm: text(p.Confirm),
		Warnings: each(p.Warnings, func(w command.Warning) Warning { return Warning{Message: w.Message, Grave: w.Severe} }),
	}
}

// orderRequest is a request with a body, by somebody.
type orderRequest struct {
	request
	http *http.Request
	rest string // parameter at the end of the path
	body []byte
	err  error // why there is no body
}

// Resolve takes it from the request.
func (r *orderRequest) Resolve(ctx huma.Context) []error {
	_ = r.request.Resolve(ctx)
	var w http.ResponseWriter
	r.http, w = humachi.Unwrap(ctx)
	if path := ctx.Operation().Path; strings.HasSuffix(path, "}") {
		r.rest = ctx.Param(path[strings.LastIndex(path, "{")+1 : len(path)-1])
	}
	r.body, r.err = readBody(w, r.http)
	return nil
}

// order is an order of the form B, and how it is to be answered.
type order[B any] struct {
	Body B
	Rest string // the parameter at the end of the path, empty if there is none
	By   command.Caller

	dry  bool
	wait time.Duration
}

// taken answers an order, or a question for what it would do.
type taken struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

// registerOrder registers an operation that takes orders of the form B, where people may act at all. preview says
// what one would do, and take takes it.
func registerOrder[B, P any](
	a *api, h huma.API, op huma.Operation,
	preview func(ctx context.Context, o order[B]) (P, error),
	take func(ctx context.Context, o order[B]) (command.Receipt, error),
) {
	if a.service() == nil {
		return
	}
	schemas := h.OpenAPI().Components.Schemas
	content := func(t reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(t, true, "")}}
	}
	op.Method, op.DefaultStatus = http.MethodPost, http.StatusAccepted
	op.Parameters = append(op.Parameters, orderParams(op.Path)...)
	op.Responses["200"] = &huma.Response{Description: "What the order would do.", Content: content(reflect.TypeFor[P]())}
	op.Responses["202"] = &huma.Response{
		Description: "The order is in the outbox.", Content: content(reflect.TypeFor[Receipt]()),
	}
	huma.Register(h, op, func(ctx context.Context, r *orderRequest) (*taken, error) {
		o, err := readOrder[B](a, r)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, actPatience)
		defer cancel()
		if o.dry {
			p, err := preview(ctx, o)
			if err != nil {
				return nil, a.actProblem(ctx, err)
			}
			return &taken{Status: http.StatusOK, Body: p}, nil
		}
		receipt, err := take(ctx, o)
		if err != nil {
			return nil, a.actProblem(ctx, err)
		}
		return a.taken(ctx, receipt, o.wait), nil
	})
	// It is set now, so that huma does not read the body itself: a wrong one is a problem like any other.
	h.OpenAPI().Paths[op.Path].Post.RequestBody = requestBody[B](h)
}

// orderProblems are the statuses of problems that every order may have, and others.
func orderProblems(others ...int) []int {
	return append(others, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusServiceUnavailable)
}

// orderParams describes what readOrder reads beside the body.
func orderParams(path string) []*huma.Param {
	list := []*huma.Param{
		{
			Name: "dry_run", In: "query", Description: "Only say what the order would do.",
			Schema: &huma.Schema{Type: huma.TypeBoolean},
		},
		{
			Name: "wait", In: "query", Description: "How long to wait for the answers, such as 2s or 500ms, at most 30s.",
			Schema: &huma.Schema{Type: huma.TypeString, Examples: []any{"2s"}},
		},
		{
			Name: "Idempotency-Key", In: "header",
			Description: "Names this order: a second request with the same key is answered with the first one's order.",
			Schema:      &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(maxKey)},
		},
	}
	if i := strings.LastIndex(path, "{"); strings.HasSuffix(path, "}") {
		list = append(list, &huma.Param{
			Name: path[i+1 : len(path)-1], In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		})
	}
	return list
}

// readOrder reads an order, strictly.
func readOrder[B any](a *api, r *orderRequest) (o order[B], err error) {
	if r.err != nil {
		return o, r.err
	}
	v, err := r.values()
	if err != nil {
		return o, err
	}
	for name, values := range v {
		switch {
		case len(values) > 1:
			return o, badParameter(&query.Error{Param: name, Message: "may be given only once"})
		case name == "dry_run":
			if o.dry, err = strconv.ParseBool(values[0]); err != nil {
				return o, badParameter(&query.Error{Param: name, Message: "must be true or false"})
			}
		case name == "wait":
			if o.wait, err = time.ParseDuration(values[0]); err != nil || o.wait <= 0 || o.wait > maxWait {
				return o, badParameter(&query.Error{Param: name, Message: "must be a duration of at most 30s, such as 2s or 500ms"})
			}
		default:
			return o, badParameter(&query.Error{Param: name, Message: "is not a parameter of orders; these are: dry_run, wait"})
		}
	}
	if o.By, err = a.by(r.http); err != nil {
		return o, err
	}
	o.Rest = r.rest
	return o, decodeBody(r.body, &o.Body)
}

// by says who asks.
func (a *api) by(r *http.Request) (command.Caller, error) {
	by := command.Caller{Endpoint: "API " + r.Method + " " + shorten(r.URL.Path), RemoteAddr: r.RemoteAddr}
	if host, _, err := net.SplitHostPort(by.RemoteAddr); err == nil {
		by.RemoteAddr = host
	}
	if a.identify != nil {
		by.Actor = a.identify(r)
	}
	keys, given := r.Header["Idempotency-Key"]
	if !given {
		return by, nil
	}
	by.IdempotencyKey = keys[0]
	printable := !strings.ContainsFunc(by.IdempotencyKey, func(c rune) bool { return c < ' ' || c > '~' })
	if len(keys) > 1 || by.IdempotencyKey == "" || len(by.IdempotencyKey) > maxKey || !printable {
		message := fmt.Sprintf("must be given once, with 1 to %d printable ASCII characters", maxKey)
		p := problem(http.StatusBadRequest, "Header Idempotency-Key "+message+".")
		p.Errors = []Detail{{Location: "header.Idempotency-Key", Message: message}}
		return by, p
	}
	return by, nil
}

// service is where commands are requested, nil if nobody may act.
func (a *api) service() *command.Service {
	if a.operations == nil || a.readOnly {
		return nil
	}
	return a.operations.Commands
}

// taken waits for the answers to an order if that is asked for, and says where it can be followed.
func (a *api) taken(ctx context.Context, r command.Receipt, wait time.Duration) *taken {
	commands := r.Commands
	if wait > 0 && a.operations.Relay != nil {
		commands = a.wait(ctx, commands, wait)
	}
	body := Receipt{Replayed: r.Replayed, Warnings: append([]string{}, r.Warnings...), Total: len(commands)}
	if len(commands) > 0 {
		body.Order = Int(commands[0].RequestID)
	}
	id := strconv.FormatInt(int64(body.Order), 10)
	body.URL = a.prefix + "/outbox/" + id
	body.Commands = each(commands[:min(len(commands), maxReceipt)], FromCommand)
	return &taken{Status: http.StatusAccepted, Location: a.prefix + "/api/v1/commands?order=" + id, Body: body}
}

// wait returns commands as they are when all are final, or the time is up.
func (a *api) wait(ctx context.Context, commands []history.Command, d time.Duration) []history.Command {
	ids := each(commands, func(c history.Command) int64 { return c.ID })
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	now, err := a.operations.Relay.Wait(ctx, ids)
	if len(now) != len(commands) { // they are in the outbox all the same
		a.logger.WarnContext(ctx, "wait for answers", "error", err)
		return commands
	}
	return now
}

// actProblem says why an order is not taken.
func (a *api) actProblem(ctx context.Context, err error) error {
	if wrong, ok := errors.AsType[*command.Error](err); ok {
		return refused(wrong)
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	switch {
	case errors.Is(err, history.ErrKeyReused):
		return problem(http.StatusUnprocessableEntity, "This Idempotency-Key was used before for another request.")
	case errors.Is(err, remote.ErrUnavailable):
		return problem(http.StatusServiceUnavailable, "The broker cannot be reached now.")
	}
	return a.unreadable(ctx, err)
}

// refused is an error of action as a problem.
func refused(e *command.Error) *Problem {
	status := http.StatusBadRequest
	switch e.Kind {
	case command.Unknown:
		status = http.StatusNotFound
	case command.Conflict:
		status = http.StatusConflict
	case command.Invalid:
	}
	p := problem(status, sentence(e.Message))
	p.Nearest = e.Nearest
	if e.Field != "" {
		p.Errors = []Detail{{Location: "body." + e.Field, Message: e.Message}}
	}
	return p
}
