package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
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
	_ struct{} `additionalProperties:"false"`

	IDs []int64 `json:"ids" minItems:"1" maxItems:"10000"`
}

type commandsInput struct {
	Sender
	Body CommandsBody
}

type listCommands struct {
	Query
	State  []string `query:"state,explode" nullable:"false" doc:"Any of these states; may also be separated by commas." example:"pending"`
	Kind   string   `query:"kind" enum:"control,task,purge" doc:"Only this kind."`
	Task   string   `query:"task" doc:"Only about the task of this id."`
	Worker string   `query:"worker" doc:"Only those for this worker, or answered by it."`
	Actor  string   `query:"actor" doc:"Only what this person has asked for."`
	Order  int64    `query:"order" minimum:"1" doc:"Only the commands of this order."`
	Limit  int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most commands to return."`
	Cursor string   `query:"cursor" doc:"Where to continue: next of an earlier answer."`
}

type listAudit struct {
	Query
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Most records to return."`
	Cursor string `query:"cursor" doc:"Where to continue: next of an earlier answer."`
}

// Changed says how many commands or workers were changed.
type Changed struct {
	Changed int `json:"changed" doc:"Commands or workers that it made a difference to; the others were passed over."`
}

// commandInput names a command.
type commandInput struct {
	ID int64 `path:"id" doc:"Id of a command." example:"17"`
}

// registerOutbox adds the operations on commands, the outbox and the audit log.
func (a *api) registerOutbox(h huma.API) {
	if a.operations == nil {
		return
	}
	huma.Register(h, operation(h, "list-commands", "/commands", "Commands, newest first", unavailable), a.commands)
	huma.Register(h, operation(h, "get-command", "/commands/{id}", "One command", notFound, unavailable), a.command)
	huma.Register(h, operation(h, "get-outbox", "/outbox", "How sending goes", unavailable), a.outbox)
	huma.Register(h, operation(h, "list-audit", "/audit", "What was asked for, newest first", unavailable), a.audit)
	service := a.service()
	if service == nil {
		return
	}
	change := func(id, path, summary string, change func(context.Context, command.Caller, []int64) (int, error)) {
		huma.Register(h, postBody(h, id, path, summary, unavailable), func(ctx context.Context, in *commandsInput) (*answer[Changed], error) {
			n, err := change(ctx, a.by(&in.Sender), in.Body.IDs)
			if err != nil {
				return nil, a.failed(ctx, err)
			}
			return &answer[Changed]{Changed{n}}, nil
		})
	}
	change("requeue-commands", "/commands/requeue", "Send dead letters after all", service.Requeue)
	change("discard-commands", "/commands/discard", "Remove dead letters, and cancel commands that were not sent yet", service.Discard)
}

// commands answers with a page of commands.
func (a *api) commands(ctx context.Context, r *listCommands) (*answer[List[Command]], error) {
	q, err := query.ParseCommands(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	found, next, err := a.backend.History().Commands(ctx, q.Filter())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &answer[List[Command]]{List[Command]{Items: each(found, FromCommand), Next: cursorOf(next)}}, nil
}

// command answers with one command.
func (a *api) command(ctx context.Context, r *commandInput) (*answer[Command], error) {
	c, err := a.backend.History().Command(ctx, r.ID)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, problem(http.StatusNotFound, fmt.Sprintf("There is no command %d.", r.ID))
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	return &answer[Command]{FromCommand(c)}, nil
}

// outbox answers with how sending goes.
func (a *api) outbox(ctx context.Context, _ *struct{}) (*answer[Outbox], error) {
	s, err := a.backend.History().OutboxStats(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
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
func (a *api) audit(ctx context.Context, r *listAudit) (*answer[List[Audit]], error) {
	before, limit, err := query.ParseAudit(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	found, next, err := a.backend.History().AuditLog(ctx, before, limit)
	if err != nil {
		return nil, a.failed(ctx, err)
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

// cursorOf returns the cursor of the page that begins before an id, nil if there is none.
func cursorOf(before int64) *string {
	if before == 0 {
		return nil
	}
	return new(strconv.FormatInt(before, 10))
}
