package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
)

const (
	maxWait    = 30 * time.Second // for the answers to an order
	maxReceipt = 500              // commands of a receipt
	actTimeout = time.Minute      // for looking up what an order is about
)

// Receipt says that an order is in the outbox.
type Receipt struct {
	Order    Int       `json:"order" doc:"ID of the request, shared by all its commands."`
	URL      string    `json:"url" doc:"Page of the request in the dashboard." example:"/outbox/17"`
	Replayed bool      `json:"replayed" doc:"Whether the idempotency key was used before; the response is the first request's."`
	Warnings []string  `json:"warnings" nullable:"false" doc:"Consequences of the request."`
	Total    int       `json:"total" doc:"Number of commands in the request."`
	Commands []Command `json:"commands" nullable:"false" doc:"The first 500 commands."`
}

// Preview is what an order would do.
type Preview struct {
	Summary  string    `json:"summary" doc:"What would be sent."`
	Targets  []string  `json:"targets" nullable:"false" doc:"Recipients."`
	Warnings []Warning `json:"warnings" nullable:"false" doc:"Consequences of the request."`
	Confirm  *string   `json:"confirm" doc:"Value that 'confirm' must have; null if no confirmation is needed."`
}

// Warning is one consequence.
type Warning struct {
	Message string `json:"message" example:"This leaves queue mail with no consumer."`
	Severe  bool   `json:"grave"`
}

func fromPreview(p command.Preview) Preview {
	return Preview{
		Summary: p.Summary, Targets: append([]string{}, p.Targets...), Confirm: text(p.Confirm),
		Warnings: each(p.Warnings, func(w command.Warning) Warning { return Warning(w) }),
	}
}

// Sender is what operations that change something know of who asks.
type Sender struct{ http *http.Request }

// Resolve takes it from the request.
func (s *Sender) Resolve(ctx huma.Context) []error {
	s.http, _ = humachi.Unwrap(ctx)
	return nil
}

// by says who asks.
func (a *api) by(s *Sender) command.Caller {
	by := command.Caller{Endpoint: "API " + s.http.Method + " " + shorten(s.http.URL.Path), RemoteAddr: s.http.RemoteAddr}
	if host, _, err := net.SplitHostPort(by.RemoteAddr); err == nil {
		by.RemoteAddr = host
	}
	if a.identify != nil {
		by.Actor = a.identify(s.http)
	}
	return by
}

// Sending is how an order is to be taken.
type Sending struct {
	Sender
	DryRun bool   `query:"dry_run" doc:"Preview the request without sending anything."`
	Wait   Wait   `query:"wait" doc:"How long to wait for replies, such as 2s or 500ms; at most 30s." example:"2s"`
	Key    string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]*$" patternDescription:"printable ASCII" doc:"Makes the request safe to repeat: a second one with the same key within a day sends nothing and returns the first one's commands."`
}

func (s *Sending) sending() *Sending { return s }

// Resolve refuses keys that would silently count as none, or as one of several.
func (s *Sending) Resolve(ctx huma.Context) []error {
	_ = s.Sender.Resolve(ctx)
	if keys := s.http.Header["Idempotency-Key"]; len(keys) > 1 || len(keys) == 1 && keys[0] == "" {
		return []error{&huma.ErrorDetail{Location: "header.Idempotency-Key", Message: "must be given once, and not be empty"}}
	}
	return nil
}

// Wait is a duration of at most 30 s.
type Wait struct{ time.Duration }

// UnmarshalText reads a duration such as 500ms.
func (w *Wait) UnmarshalText(text []byte) (err error) {
	if w.Duration, err = time.ParseDuration(string(text)); err != nil || w.Duration <= 0 || w.Duration > maxWait {
		return errors.New("must be a duration of at most 30s, such as 2s or 500ms")
	}
	return nil
}

// Schema describes the text form.
func (Wait) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

// taken answers an order, or a question for what it would do.
type taken struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

// takes are the steps of an operation that takes orders O from inputs I, and previews them as P.
type takes[I, O, P any] struct {
	order   func(ctx context.Context, in *I) (O, error)
	preview func(ctx context.Context, o O) (P, error)
	send    func(ctx context.Context, by command.Caller, o O) (command.Receipt, error)
}

// registerOrder registers an operation that takes orders. The input embeds Sending.
func registerOrder[I, O, P any](a *api, h huma.API, op huma.Operation, t takes[I, O, P]) {
	content := func(t reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: h.OpenAPI().Components.Schemas.Schema(t, true, "")}}
	}
	op.DefaultStatus = http.StatusAccepted
	op.Responses["200"] = &huma.Response{Description: "What the order would do.", Content: content(reflect.TypeFor[P]())}
	op.Responses["202"] = &huma.Response{
		Description: "The order is in the outbox.", Content: content(reflect.TypeFor[Receipt]()),
	}
	huma.Register(h, op, func(ctx context.Context, in *I) (*taken, error) {
		s := any(in).(interface{ sending() *Sending }).sending()
		ctx, cancel := context.WithTimeout(ctx, actTimeout)
		defer cancel()
		o, err := t.order(ctx, in)
		if err != nil {
			return nil, a.failed(ctx, err)
		}
		if s.DryRun {
			p, err := t.preview(ctx, o)
			if err != nil {
				return nil, a.failed(ctx, err)
			}
			return &taken{Status: http.StatusOK, Body: p}, nil
		}
		by := a.by(&s.Sender)
		by.IdempotencyKey = s.Key
		receipt, err := t.send(ctx, by, o)
		if err != nil {
			return nil, a.failed(ctx, err)
		}
		return a.taken(ctx, receipt, s.Wait.Duration), nil
	})
}

// postOrder describes an operation that takes orders.
func postOrder(h huma.API, id, path, summary string, statuses ...int) huma.Operation {
	return postBody(h, id, path, summary, append(statuses, http.StatusUnprocessableEntity, unavailable)...)
}

// service takes requests for commands; nil if Umbel is read-only.
func (a *api) service() *command.Service {
	if a.operations == nil || a.readOnly || a.operations.Relay == nil {
		return nil
	}
	return a.operations
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
