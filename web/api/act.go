package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
)

const (
	maxWait    = 30 * time.Second // for replies
	maxReceipt = 500              // commands in a receipt
	actTimeout = time.Minute      // for checking a request
)

// Receipt confirms that a request is in the outbox.
type Receipt struct {
	RequestID Int       `json:"request_id" doc:"ID of the request, shared by all its commands."`
	URL       string    `json:"url" doc:"Page of the request in the dashboard." example:"/outbox/17"`
	Replayed  bool      `json:"replayed" doc:"Whether the idempotency key was used before; the response is the first request's."`
	Warnings  []string  `json:"warnings" nullable:"false" doc:"Consequences of the request."`
	Total     int       `json:"total" doc:"Number of commands in the request."`
	Commands  []Command `json:"commands" nullable:"false" doc:"The first 500 commands."`
}

// Preview says what a request would do.
type Preview struct {
	Summary  string    `json:"summary" doc:"What would be sent."`
	Targets  []string  `json:"targets" nullable:"false" doc:"Recipients."`
	Warnings []Warning `json:"warnings" nullable:"false" doc:"Consequences of the request."`
	Confirm  *string   `json:"confirm" doc:"Value that 'confirm' must have; null if no confirmation is needed."`
	Held     *Held     `json:"held" doc:"Tasks that the targets of a shutdown or drain hold; null for other requests."`
}

// Held is what the targets of a shutdown or drain hold.
type Held struct {
	Running []HeldTask `json:"running" nullable:"false" doc:"Tasks that end first; the 10 that have run longest."`
	Waiting []HeldTask `json:"waiting" nullable:"false" doc:"Tasks that have not begun, up to 10. They return to their queues on a shutdown."`
}

// HeldTask is a task that a worker holds.
type HeldTask struct {
	ID        string  `json:"id"`
	Name      *string `json:"name"`
	Worker    string  `json:"worker" doc:"Node name."`
	Queue     *string `json:"queue"`
	StartedAt Time    `json:"started_at" doc:"By the worker's clock."`
	Source    string  `json:"source" enum:"worker,events" doc:"Where this is known from: the worker's reply or events."`
}

func fromHeld(h *command.Held) *Held {
	if h == nil {
		return nil
	}
	convert := func(t command.HeldTask) HeldTask {
		v := HeldTask{ID: t.ID, Name: text(t.Name), Worker: t.Worker, Queue: text(t.Queue), StartedAt: timeOf(t.StartedAt), Source: "worker"}
		if t.ByEvents {
			v.Source = "events"
		}
		return v
	}
	return &Held{Running: mapSlice(h.Running, convert), Waiting: mapSlice(h.Waiting, convert)}
}

// Warning is a consequence of a request.
type Warning struct {
	Message string `json:"message" example:"This leaves queue mail with no consumer."`
	Severe  bool   `json:"severe"`
}

func fromPreview(p command.Preview) Preview {
	return Preview{
		Summary: p.Summary, Targets: append([]string{}, p.Targets...), Confirm: text(p.Confirm), Held: fromHeld(p.Held),
		Warnings: mapSlice(p.Warnings, func(w command.Warning) Warning { return Warning(w) }),
	}
}

// Origin gives an operation the HTTP request, to record who made it.
type Origin struct{ http *http.Request }

// Resolve keeps the request.
func (s *Origin) Resolve(ctx huma.Context) []error {
	s.http, _ = humachi.Unwrap(ctx)
	return nil
}

// caller identifies who made a request.
func (a *api) caller(ctx context.Context, s *Origin) command.Caller {
	g := auth.FromContext(ctx)
	return command.Caller{
		Actor: g.User, Method: g.Method, Role: string(g.Role), RemoteAddr: auth.RemoteAddr(s.http),
		Endpoint: "API " + s.http.Method + " " + shorten(s.http.URL.Path),
	}
}

// SendOptions are the parameters of operations that send commands.
type SendOptions struct {
	Origin
	DryRun bool   `query:"dry_run" doc:"Preview the request without sending anything."`
	Wait   Wait   `query:"wait" doc:"How long to wait for replies, such as 2s or 500ms; at most 30s." example:"2s"`
	Key    string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]*$" patternDescription:"printable ASCII" doc:"Makes the request safe to repeat: a second one with the same key within a day sends nothing and returns the first one's commands."`
}

func (s *SendOptions) sendOptions() *SendOptions { return s }

// Resolve refuses empty and repeated idempotency keys, which huma reads as none or as the first.
func (s *SendOptions) Resolve(ctx huma.Context) []error {
	_ = s.Origin.Resolve(ctx)
	if keys := s.http.Header["Idempotency-Key"]; len(keys) > 1 || len(keys) == 1 && keys[0] == "" {
		return []error{&huma.ErrorDetail{Location: "header.Idempotency-Key", Message: "must be given once and must not be empty"}}
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

// accepted is the response to a request for commands, or to its preview.
type accepted struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

// sendSteps are the steps of an operation that makes a request R of an input I, and then previews it as P or sends it.
type sendSteps[I, R, P any] struct {
	request func(ctx context.Context, in *I) (R, error)
	preview func(ctx context.Context, r R) (P, error)
	send    func(ctx context.Context, by command.Caller, r R) (command.Receipt, error)
}

// registerSend registers an operation that sends commands. Its input embeds SendOptions.
func registerSend[I, R, P any](a *api, h huma.API, op huma.Operation, steps sendSteps[I, R, P]) {
	content := func(t reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: h.OpenAPI().Components.Schemas.Schema(t, true, "")}}
	}
	op.DefaultStatus = http.StatusAccepted
	op.Responses["200"] = &huma.Response{Description: "Preview of the request.", Content: content(reflect.TypeFor[P]())}
	op.Responses["202"] = &huma.Response{
		Description: "The commands are in the outbox.", Content: content(reflect.TypeFor[Receipt]()),
	}
	huma.Register(h, op, func(ctx context.Context, in *I) (*accepted, error) {
		s := any(in).(interface{ sendOptions() *SendOptions }).sendOptions()
		ctx, cancel := context.WithTimeout(ctx, actTimeout)
		defer cancel()
		r, err := steps.request(ctx, in)
		if err != nil {
			return nil, a.failed(ctx, err)
		}
		if s.DryRun {
			p, err := steps.preview(ctx, r)
			if err != nil {
				return nil, a.failed(ctx, err)
			}
			return &accepted{Status: http.StatusOK, Body: p}, nil
		}
		by := a.caller(ctx, &s.Origin)
		by.IdempotencyKey = s.Key
		receipt, err := steps.send(ctx, by, r)
		if err != nil {
			return nil, a.failed(ctx, err)
		}
		return a.accepted(ctx, receipt, s.Wait.Duration), nil
	})
}

// postSend describes an operation that sends commands.
func postSend(h huma.API, action auth.Action, id, path, summary string, statuses ...int) huma.Operation {
	return postBody(h, action, id, path, summary, append(statuses, http.StatusUnprocessableEntity, unavailable)...)
}

// service returns the command service, nil if Umbel is read-only.
func (a *api) service() *command.Service {
	if a.commands == nil || a.readOnly || a.commands.Relay == nil {
		return nil
	}
	return a.commands
}

// accepted waits for replies for up to wait, and returns the receipt.
func (a *api) accepted(ctx context.Context, r command.Receipt, wait time.Duration) *accepted {
	commands := r.Commands
	if wait > 0 && a.commands.Relay != nil {
		commands = a.wait(ctx, commands, wait)
	}
	body := Receipt{Replayed: r.Replayed, Warnings: append([]string{}, r.Warnings...), Total: len(commands)}
	if len(commands) > 0 {
		body.RequestID = Int(commands[0].RequestID)
	}
	id := strconv.FormatInt(int64(body.RequestID), 10)
	body.URL = a.prefix + "/outbox/" + id
	body.Commands = mapSlice(commands[:min(len(commands), maxReceipt)], a.fromCommand)
	return &accepted{Status: http.StatusAccepted, Location: a.prefix + "/api/v1/commands?request=" + id, Body: body}
}

// wait returns the commands once all are final, or after d.
func (a *api) wait(ctx context.Context, commands []history.Command, d time.Duration) []history.Command {
	ids := mapSlice(commands, func(c history.Command) int64 { return c.ID })
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	now, err := a.commands.Relay.Wait(ctx, ids)
	if len(now) != len(commands) { // they are in the outbox nevertheless
		a.logger.WarnContext(ctx, "wait for replies", "error", err)
		return commands
	}
	return now
}
