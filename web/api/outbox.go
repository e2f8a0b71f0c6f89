package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/query"
)

// Outbox says how sending goes. Null is unknown, or never.
type Outbox struct {
	States          map[string]int `json:"states" doc:"Commands by state; every state is present."`
	OldestPendingAt Time           `json:"oldest_pending_at" doc:"When the oldest command was created that waits to be sent."`
	DeadLetters     int            `json:"dead_letters"`
	Foreign         int            `json:"foreign" doc:"Commands that another version of Umbel wrote, which are left alone."`
	TopFailures     []FailureCount `json:"top_failures" nullable:"false" doc:"Of dead letters and of commands that have failed and wait, most frequent first."`
	Relay           *Relay         `json:"relay" doc:"Null if nothing is sent: Umbel is read-only."`
}

// TransformSchema lets what may be unknown be null.
func (Outbox) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return nullable[Outbox](s)
}

// FailureCount is how often an error occurred.
type FailureCount struct {
	Error string `json:"error"`
	Count int    `json:"count"`
}

// Relay is what sends the commands.
type Relay struct {
	Open      bool    `json:"open" doc:"The breaker: the broker is away and nothing is sent until open_until."`
	OpenUntil Time    `json:"open_until"`
	LastError *string `json:"last_error"`
	Sent      uint64  `json:"sent" doc:"Since the start, like the rest."`
	Retried   uint64  `json:"retried"`
	Deferred  uint64  `json:"deferred" doc:"Put off since the broker was away."`
	Died      uint64  `json:"died"`
	Reclaimed uint64  `json:"reclaimed" doc:"Left in flight by a crash, and taken up again."`
}

// Audit is a record of something that somebody has done.
type Audit struct {
	ID       Int             `json:"id"`
	At       Time            `json:"at"`
	Actor    *string         `json:"actor" doc:"Who, null if nobody knows."`
	Remote   *string         `json:"remote" doc:"Address that the request came from."`
	Action   string          `json:"action" example:"revoke"`
	Target   *string         `json:"target"`
	Detail   json.RawMessage `json:"detail" doc:"What exactly was asked for, null if nothing more is known."`
	Commands int             `json:"commands" doc:"How many commands it led to."`
	Order    *Int            `json:"order" doc:"The order that these are part of."`
	Hash     string          `json:"hash" doc:"SHA-256 over the record and the hash of the one before, in hexadecimal."`
}

// TransformSchema lets integers that may be unknown be null, and details be anything.
func (Audit) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["detail"] = &huma.Schema{Description: s.Properties["detail"].Description}
	return nullable[Audit](s)
}

// CommandsBody names commands.
type CommandsBody struct {
	IDs []int64 `json:"ids" minItems:"1" maxItems:"10000"`
}

// Changed says how many commands or workers were changed.
type Changed struct {
	Changed int `json:"changed" doc:"Commands or workers that it made a difference to; the others were passed over."`
}

// commandRequest names a command.
type commandRequest struct {
	request
	ID string `path:"id" doc:"Id of a command." example:"17"`
}

// maxIDs is how many commands one request may name.
const maxIDs = 10_000

// registerOutbox adds the operations on commands, the outbox and the audit log.
func (a *api) registerOutbox(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	if a.operations == nil {
		return
	}
	const bad, missing, away = http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable
	list := operation("list-commands", "/commands", "Commands, newest first", bad, away)
	list.Parameters = commandParams()
	huma.Register(h, list, a.commands)
	huma.Register(h, operation("get-command", "/commands/{id}", "One command", bad, missing, away), a.command)
	huma.Register(h, operation("get-outbox", "/outbox", "How sending goes", bad, away), a.outbox)
	audit := operation("list-audit", "/audit", "What was asked for, newest first", bad, away)
	audit.Parameters = pageParams("records")
	huma.Register(h, audit, a.audit)
	if a.service() == nil {
		return
	}
	post := func(id, path, summary string, act func(context.Context, *orderRequest) (*answer[Changed], error)) {
		op := operation(id, path, summary, bad, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, away)
		op.Method, op.DefaultStatus = http.MethodPost, http.StatusOK
		huma.Register(h, op, act)
		h.OpenAPI().Paths[path].Post.RequestBody = requestBody[CommandsBody](h)
	}
	post("requeue-commands", "/commands/requeue", "Send dead letters after all", a.requeue)
	post("discard-commands", "/commands/discard", "Remove dead letters, and call off commands that were not sent yet", a.discard)
}

// commands answers with a page of commands.
func (a *api) commands(ctx context.Context, r *request) (*answer[List[Command]], error) {
	v, err := r.values()
	if err != nil {
		return nil, err
	}
	q, err := query.ParseCommands(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return nil, badParameter(wrong)
	}
	found, next, err := a.backend.Store().Commands(ctx, q.Filter())
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	return &answer[List[Command]]{List[Command]{Items: each(found, FromCommand), Next: cursorOf(next)}}, nil
}

// command answers with one command.
func (a *api) command(ctx context.Context, r *commandRequest) (*answer[Command], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(r.ID, 10, 64)
	if err != nil {
		return nil, unknownCommand(r.ID)
	}
	c, err := a.backend.Store().Command(ctx, id)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, unknownCommand(r.ID)
	case err != nil:
		return nil, a.unreadable(ctx, err)
	}
	return &answer[Command]{FromCommand(c)}, nil
}

func unknownCommand(id string) *Problem {
	return problem(http.StatusNotFound, "There is no command "+shorten(id)+".")
}

// outbox answers with how sending goes.
func (a *api) outbox(ctx context.Context, r *request) (*answer[Outbox], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	s, err := a.backend.Store().OutboxStats(ctx)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	d := FromOutbox(s)
	if relay := a.operations.Relay; relay != nil {
		s := relay.Status()
		d.Relay = &Relay{
			Open: s.BreakerOpen, LastError: text(s.LastError),
			Sent: s.Sent, Retried: s.Retried, Deferred: s.Deferred, Died: s.DeadLettered, Reclaimed: s.Reclaimed,
		}
		if s.BreakerOpen {
			d.Relay.OpenUntil = timeOf(s.BreakerUntil)
		}
	}
	return &answer[Outbox]{d}, nil
}

// FromOutbox returns what an outbox says of itself, without a relay.
func FromOutbox(s history.OutboxStats) Outbox {
	d := Outbox{
		States: map[string]int{}, OldestPendingAt: timeOf(s.OldestPending), DeadLetters: s.DeadLetters, Foreign: s.OtherSchema,
		TopFailures: each(s.TopErrors, func(f history.ErrorCount) FailureCount { return FailureCount{f.Error, f.N} }),
	}
	for _, st := range query.CommandStates() {
		d.States[string(st)] = s.States[st]
	}
	return d
}

// audit answers with a page of the audit log.
func (a *api) audit(ctx context.Context, r *request) (*answer[List[Audit]], error) {
	v, err := r.values()
	if err != nil {
		return nil, err
	}
	before, limit, err := query.ParseAudit(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return nil, badParameter(wrong)
	}
	found, next, err := a.backend.Store().AuditLog(ctx, before, limit)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	return &answer[List[Audit]]{List[Audit]{Items: each(found, fromAudit), Next: cursorOf(next)}}, nil
}

func fromAudit(r history.AuditRecord) Audit {
	d := Audit{
		ID: Int(r.ID), At: timeOf(r.At), Actor: text(r.Actor), Remote: text(r.RemoteAddr), Action: r.Action, Target: text(r.Target),
		Commands: r.Commands, Order: positive(r.FirstCommand), Hash: r.Hash,
	}
	if json.Valid([]byte(r.Detail)) {
		d.Detail = json.RawMessage(r.Detail)
	}
	return d
}

// requeue has dead letters sent after all.
func (a *api) requeue(ctx context.Context, r *orderRequest) (*answer[Changed], error) {
	o, err := a.readIDs(r)
	if err != nil {
		return nil, err
	}
	n, err := a.service().Requeue(ctx, o.By, o.Body.IDs)
	if err != nil {
		return nil, a.actProblem(ctx, err)
	}
	return &answer[Changed]{Changed{n}}, nil
}

// discard removes dead letters, and calls off commands that were not sent yet.
func (a *api) discard(ctx context.Context, r *orderRequest) (*answer[Changed], error) {
	o, err := a.readIDs(r)
	if err != nil {
		return nil, err
	}
	n, err := a.service().Discard(ctx, o.By, o.Body.IDs)
	if err != nil {
		return nil, a.actProblem(ctx, err)
	}
	return &answer[Changed]{Changed{n}}, nil
}

func (a *api) readIDs(r *orderRequest) (order[CommandsBody], error) {
	if err := r.plain(); err != nil {
		return order[CommandsBody]{}, err
	}
	o, err := readOrder[CommandsBody](a, r)
	if err == nil && (len(o.Body.IDs) == 0 || len(o.Body.IDs) > maxIDs) {
		err = badField("ids", "must name 1 to 10,000 commands")
	}
	return o, err
}

// cursorOf returns the cursor of the page that begins before an id, nil if there is none.
func cursorOf(before int64) *string {
	if before == 0 {
		return nil
	}
	return new(strconv.FormatInt(before, 10))
}

// pageParams describes limit and cursor.
func pageParams(what string) []*huma.Param {
	return []*huma.Param{
		{Name: "limit", In: "query", Description: "Most " + what + " to return.", Schema: &huma.Schema{
			Type: huma.TypeInteger, Default: query.DefaultLimit, Minimum: new(1.0), Maximum: new(float64(query.MaxLimit)),
		}},
		{
			Name: "cursor", In: "query", Description: "Where to continue: next of an earlier answer.",
			Schema: &huma.Schema{Type: huma.TypeString},
		},
	}
}

// commandParams describes what query.ParseCommands reads.
func commandParams() []*huma.Param {
	param := func(name, doc string, s huma.Schema) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: &s}
	}
	var states, kinds []any
	for _, s := range query.CommandStates() {
		states = append(states, string(s))
	}
	for _, k := range query.CommandKinds() {
		kinds = append(kinds, k)
	}
	text := huma.Schema{Type: huma.TypeString}
	state := param("state", "Any of these states; may also be separated by commas.", huma.Schema{
		Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: states},
	})
	state.Explode = new(true)
	return append([]*huma.Param{
		state,
		param("kind", "Only this kind.", huma.Schema{Type: huma.TypeString, Enum: kinds}),
		param("task", "Only about the task of this id.", text),
		param("worker", "Only those for this worker, or answered by it.", text),
		param("actor", "Only what this person has asked for.", text),
		param("order", "Only the commands of this order.", huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0)}),
	}, pageParams("commands")...)
}
