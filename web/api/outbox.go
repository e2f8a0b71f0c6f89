package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

// Outbox is the state of the outbox. Null means unknown or never.
type Outbox struct {
	States          map[string]int `json:"states" doc:"Number of commands by state, including states with none."`
	OldestPendingAt Time           `json:"oldest_pending_at" doc:"Creation time of the oldest pending command."`
	DeadLetters     int            `json:"dead_letters"`
	OtherSchema     int            `json:"other_schema" doc:"Commands written by another version of Umbel; they are not sent."`
	TopErrors       []ErrorCount   `json:"top_errors" nullable:"false" doc:"Most frequent errors of dead letters and of commands waiting for a retry."`
	Relay           *Relay         `json:"relay" doc:"Null if Umbel is read-only."`
}

// ErrorCount says how often an error occurred.
type ErrorCount struct {
	Error string `json:"error"`
	Count int    `json:"count"`
}

// Relay is the state of the relay, which sends the commands.
type Relay struct {
	BreakerOpen      bool    `json:"breaker_open" doc:"Whether the circuit breaker is open: the broker is unavailable, and nothing is sent until breaker_open_until."`
	BreakerOpenUntil Time    `json:"breaker_open_until"`
	LastError        *string `json:"last_error"`
	Sent             uint64  `json:"sent" doc:"Counters start at zero with the process."`
	Retried          uint64  `json:"retried"`
	Deferred         uint64  `json:"deferred" doc:"Commands postponed because the broker was unavailable."`
	DeadLettered     uint64  `json:"dead_lettered"`
	Reclaimed        uint64  `json:"reclaimed" doc:"Commands left in flight by a crash and claimed again."`
}

// Audit is a record of the audit log.
type Audit struct {
	ID         Int             `json:"id"`
	At         Time            `json:"at"`
	Kind       string          `json:"kind" example:"action" doc:"action, login, logout, token, access, export, rule or view."`
	Outcome    string          `json:"outcome" example:"accepted" doc:"accepted, refused or failed."`
	Actor      *string         `json:"actor" doc:"User who made the request; null if unknown."`
	Method     *string         `json:"method" example:"oidc" doc:"How the user was identified."`
	Role       *string         `json:"role" example:"operator" doc:"Role of the user."`
	Endpoint   *string         `json:"endpoint" example:"/act/task" doc:"Page or resource of the request."`
	RemoteAddr *string         `json:"remote_addr" doc:"Client address."`
	Action     string          `json:"action" example:"revoke"`
	Target     *string         `json:"target"`
	Detail     json.RawMessage `json:"detail" doc:"Full request; null if there is none."`
	Commands   int             `json:"commands" doc:"Number of commands in the request."`
	RequestID  *Int            `json:"request_id" doc:"ID of the request."`
	Hash       string          `json:"hash" doc:"Hexadecimal SHA-256 of the record and the previous record's hash."`
}

// CommandsBody lists commands.
type CommandsBody struct {
	_ struct{} `additionalProperties:"false"`

	IDs []int64 `json:"ids" nullable:"false" minItems:"1" maxItems:"10000"`
}

type commandsInput struct {
	Origin
	Body CommandsBody
}

type listCommands struct {
	Query
	State   []string `query:"state,explode" nullable:"false" doc:"States, repeated or comma-separated." example:"pending"`
	Kind    string   `query:"kind" enum:"control,task,purge,requeue_dead_letters,purge_dead_letters" doc:"Kind of command."`
	Task    string   `query:"task" doc:"ID of the task that the command publishes or acts on."`
	Worker  string   `query:"worker" doc:"Worker that the command is for or that replied to it."`
	Actor   string   `query:"actor" doc:"User who made the request."`
	Request int64    `query:"request" minimum:"1" doc:"ID of the request."`
	Limit   int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of commands to return."`
	Cursor  string   `query:"cursor" doc:"Cursor from next of an earlier response."`
}

type listAudit struct {
	AuditLogQuery
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of records to return."`
	Cursor string `query:"cursor" doc:"Cursor from next of an earlier response."`
}

// AuditLogQuery selects audit records.
type AuditLogQuery struct {
	Query
	Kind    string `query:"kind" enum:"action,login,logout,token,access,export,rule,view" doc:"Kind of record."`
	Outcome string `query:"outcome" enum:"accepted,refused,failed" doc:"What became of it."`
	Actor   string `query:"actor" doc:"User."`
	From    string `query:"from" doc:"Earliest time, such as 2026-11-21T10:00:00Z or -24h." example:"-24h"`
	To      string `query:"to" doc:"Time before which records are." example:"now"`
}

// Changed says how many commands or workers were changed.
type Changed struct {
	Changed int `json:"changed" doc:"Number of commands or workers changed; others were skipped."`
}

type commandInput struct {
	ID int64 `path:"id" doc:"Command ID." example:"17"`
}

// registerOutbox adds the operations on commands, the outbox and the audit log.
func (a *api) registerOutbox(h huma.API) {
	if a.commands == nil {
		return
	}
	huma.Register(h, operation(h, auth.View, "list-commands", "/commands", "List commands, newest first", unavailable), a.listCommands)
	huma.Register(h, operation(h, auth.View, "get-command", "/commands/{id}", "Get a command", notFound, unavailable), a.command)
	huma.Register(h, operation(h, auth.View, "get-outbox", "/outbox", "Get the state of the outbox", unavailable), a.outbox)
	huma.Register(h, operation(h, auth.ReadAudit, "list-audit", "/audit", "List audit records, newest first", unavailable), a.audit)
	a.registerAuditExport(h)
	service := a.service()
	if service == nil {
		return
	}
	change := func(id, path, summary string, change func(context.Context, command.Caller, []int64) (int, error)) {
		huma.Register(h, postBody(h, auth.ChangeOutbox, id, path, summary, unavailable), func(ctx context.Context, in *commandsInput) (*response[Changed], error) {
			n, err := change(ctx, a.caller(ctx, &in.Origin), in.Body.IDs)
			if err != nil {
				return nil, a.failed(ctx, err)
			}
			return &response[Changed]{Changed{n}}, nil
		})
	}
	change("requeue-commands", "/commands/requeue", "Send dead letters again", service.Requeue)
	change("discard-commands", "/commands/discard", "Discard dead letters and cancel pending commands", service.Discard)
}

// commands returns a page of commands.
func (a *api) listCommands(ctx context.Context, r *listCommands) (*response[List[Command]], error) {
	q, err := query.ParseCommands(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	found, next, err := a.commands.Commands(ctx, q.Filter())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[List[Command]]{List[Command]{Items: mapSlice(found, a.fromCommand), Next: cursorOf(next)}}, nil
}

func (a *api) command(ctx context.Context, r *commandInput) (*response[Command], error) {
	c, err := a.commands.Command(ctx, r.ID)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, problem(http.StatusNotFound, fmt.Sprintf("There is no command %d.", r.ID))
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	d := a.fromCommand(c)
	if c.TaskID != "" {
		if t, err := a.backend.Task(ctx, c.TaskID); err == nil {
			if e, ok := command.EffectOn(c, &t); ok {
				d.Effect = &Effect{e.Text, e.Grade.String()}
			}
		}
	}
	return &response[Command]{d}, nil
}

// outbox returns the state of the outbox and its relay.
func (a *api) outbox(ctx context.Context, _ *struct{}) (*response[Outbox], error) {
	s, err := a.commands.OutboxStats(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	if a.hides {
		s = payload.Outbox(s)
	}
	d := FromOutbox(s)
	if relay := a.commands.Relay; relay != nil {
		s := relay.Status()
		if a.hides {
			s = payload.Relay(s)
		}
		d.Relay = &Relay{
			BreakerOpen: s.BreakerOpen, LastError: text(s.LastError),
			Sent: s.Sent, Retried: s.Retried, Deferred: s.Deferred, DeadLettered: s.DeadLettered, Reclaimed: s.Reclaimed,
		}
		if s.BreakerOpen {
			d.Relay.BreakerOpenUntil = timeOf(s.BreakerUntil)
		}
	}
	return &response[Outbox]{d}, nil
}

// FromOutbox returns the outbox in the form of the API, without a relay.
func FromOutbox(s history.OutboxStats) Outbox {
	d := Outbox{
		States: map[string]int{}, OldestPendingAt: timeOf(s.OldestPending), DeadLetters: s.DeadLetters, OtherSchema: s.OtherSchema,
		TopErrors: mapSlice(s.TopErrors, func(e history.ErrorCount) ErrorCount { return ErrorCount{e.Error, e.N} }),
	}
	for _, st := range history.CommandStates() {
		d.States[string(st)] = s.States[st]
	}
	return d
}

// audit returns a page of the audit log.
func (a *api) audit(ctx context.Context, r *listAudit) (*response[List[Audit]], error) {
	q, err := query.ParseAudit(r.values, a.now())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	found, next, err := a.commands.AuditLog(ctx, q.Filter())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	if a.hides {
		found = payload.Records(found)
	}
	return &response[List[Audit]]{List[Audit]{Items: mapSlice(found, FromAudit), Next: cursorOf(next)}}, nil
}

// fromCommand returns a command as those may see it who ask.
func (a *api) fromCommand(c history.Command) Command {
	if a.hides {
		c = payload.Command(c)
	}
	return FromCommand(c)
}

// FromAudit returns a record in the form of the API.
func FromAudit(r history.AuditRecord) Audit {
	d := Audit{
		Kind: string(cmp.Or(r.Kind, history.AuditAction)), Outcome: string(cmp.Or(r.Outcome, history.AuditAccepted)),
		Method: text(r.Method), Role: text(r.Role), Endpoint: text(r.Endpoint),
		ID: Int(r.ID), At: timeOf(r.At), Actor: text(r.Actor), RemoteAddr: text(r.RemoteAddr), Action: r.Action, Target: text(r.Target),
		Commands: r.Commands, RequestID: positive(r.FirstCommand), Hash: r.Hash,
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
