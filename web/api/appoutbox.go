package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

// AppOutbox is the outbox of an application. Ages are by the clock of its database. Null means unknown or none.
type AppOutbox struct {
	Name   string           `json:"name" example:"shop"`
	URL    string           `json:"url" doc:"The database without its password."`
	Server *string          `json:"server" example:"PostgreSQL 16.3"`
	ReadAt Time             `json:"read_at" doc:"When it was last read, by Umbel's clock; what follows is as of then."`
	Error  *AppOutboxError  `json:"error" doc:"Why it cannot be read now; null if it can."`
	States map[string]Bound `json:"states" doc:"Rows by state: pending, in_flight, stale, deferred, due and other_schema."`
	Ready  Bound            `json:"ready" doc:"Rows that the relay may take now: pending, stale and due ones. The package calls this the queue's depth."`

	OldestReadySeconds *float64    `json:"oldest_ready_seconds" doc:"Age of the oldest row that the relay may take."`
	LastTakenAt        Time        `json:"last_taken_at" doc:"When the relay last took a row that is still there."`
	RelayStopped       *bool       `json:"relay_stopped" doc:"Whether a row has been ready for two minutes and none was taken."`
	IdleSince          Time        `json:"idle_since" doc:"Since when rows are ready and none was taken."`
	Retries            Bound       `json:"retries" doc:"Failed attempts of the rows that are left."`
	TopFailing         []NameCount `json:"top_failing" nullable:"false" doc:"Names of tasks with the most retries."`
	DeadLetters        Bound       `json:"dead_letters"`
	DeadReasons        []NameCount `json:"dead_reasons" nullable:"false" doc:"Most frequent reasons of the newest dead letters."`
	DeadNames          []NameCount `json:"dead_names" nullable:"false" doc:"Most frequent names of the newest dead letters."`
	MissingGrants      []string    `json:"missing_grants" nullable:"false" doc:"Statements that would let Umbel requeue and purge dead letters."`
	ReadOnly           *string     `json:"read_only" doc:"Why nothing can be changed, whatever is granted."`
}

// AppOutboxError says why an outbox cannot be read.
type AppOutboxError struct {
	Fault   string `json:"fault" doc:"away, slow, permission, no_table, columns, indexes, locked or other."`
	Message string `json:"message"`
	Since   Time   `json:"since"`
}

// Bound is a count that may be a lower bound.
type Bound struct {
	Count int  `json:"count"`
	Exact bool `json:"exact" doc:"Whether there are no more."`
}

// NameCount is a number by name.
type NameCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// AppOutboxRow is a row of an application's outbox.
type AppOutboxRow struct {
	ID            Int    `json:"id"`
	TaskID        string `json:"task_id"`
	Name          string `json:"name"`
	State         string `json:"state"`
	CreatedAt     Time   `json:"created_at"`
	UpdatedAt     Time   `json:"updated_at" doc:"When a relay last took it or recorded a failure."`
	RetryAfter    Time   `json:"retry_after"`
	Retries       int    `json:"retries"`
	SchemaVersion int    `json:"schema_version"`
	AppPayload
}

// AppDeadLetter is a dead letter of an application's outbox.
type AppDeadLetter struct {
	ID            Int     `json:"id"`
	TaskID        string  `json:"task_id"`
	Name          string  `json:"name"`
	CreatedAt     Time    `json:"created_at"`
	DeadAt        Time    `json:"dead_at"`
	Retries       int     `json:"retries"`
	Reason        *string `json:"reason"`
	SchemaVersion int     `json:"schema_version"`
	AppPayload
}

// AppPayload is the call of a row: redacted columns stand for the originals, and secrets are masked.
type AppPayload struct {
	Args     json.RawMessage `json:"args" doc:"Null if longer than 16 KiB."`
	Kwargs   json.RawMessage `json:"kwargs" doc:"Null if longer than 16 KiB."`
	Options  json.RawMessage `json:"options" doc:"Without the arguments of links and chains."`
	Redacted bool            `json:"redacted" doc:"Whether the application has redacted arguments."`
}

type appRowsInput struct {
	Query
	Outbox string `path:"outbox" doc:"Name of the outbox." example:"shop"`
	State  string `query:"state" enum:"pending,in_flight,stale,deferred,due,other_schema" doc:"State; all if empty."`
	Name   string `query:"name" doc:"Name of the task; a * at its end stands for any text." example:"shop.*"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of rows to return."`
	Cursor string `query:"cursor" doc:"Cursor from next of an earlier response."`
}

type appDeadInput struct {
	Query
	Outbox string `path:"outbox" doc:"Name of the outbox." example:"shop"`
	Name   string `query:"name" doc:"Name of the task; a * at its end stands for any text." example:"shop.*"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of dead letters to return."`
	Cursor string `query:"cursor" doc:"Cursor from next of an earlier response."`
}

// registerAppOutboxes adds the operations that read outboxes of applications.
func (a *api) registerAppOutboxes(h huma.API) {
	if a.appOutboxes == nil {
		return
	}
	huma.Register(h, operation(h, auth.View, "list-app-outboxes", "/app-outboxes", "List outboxes of applications"), a.listAppOutboxes)
	rows := operation(h, auth.View, "list-app-outbox-rows", "/app-outboxes/{outbox}/rows", "List rows of an application's outbox, oldest first", notFound, unavailable)
	rows.Description = "A page of a name may be short and still have a next one: it looks through 10,000 rows at most."
	huma.Register(h, rows, a.listAppRows)
	huma.Register(h, operation(h, auth.View, "get-task-outbox", "/tasks/{id}/outbox", "Get a task's way through an application's outbox", notFound), a.taskOutbox)
	huma.Register(h, operation(h, auth.View, "list-dead-letters", "/app-outboxes/{outbox}/dead-letters", "List dead letters of an application, newest first",
		notFound, unavailable), a.listAppDead)
}

func (a *api) listAppOutboxes(context.Context, *struct{}) (*response[List[AppOutbox]], error) {
	return &response[List[AppOutbox]]{onePage(a.appOutboxes.Snapshot(), func(o outboxwatch.Outbox) AppOutbox {
		if a.hides {
			o = payload.AppOutbox(o)
		}
		return fromAppOutbox(o)
	})}, nil
}

func (a *api) listAppRows(ctx context.Context, in *appRowsInput) (*response[List[AppOutboxRow]], error) {
	q, err := query.ParseAppOutbox(in.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	page, err := a.appOutboxes.Rows(ctx, in.Outbox, outboxwatch.RowRequest{
		State: q.State, Name: q.Name, After: q.Cursor, Limit: cmp.Or(q.Limit, query.DefaultLimit), Payload: !a.hides,
	})
	if err != nil {
		return nil, a.outboxFailed(ctx, in.Outbox, err)
	}
	return &response[List[AppOutboxRow]]{List[AppOutboxRow]{Items: mapSlice(page.Rows, fromAppRow), Next: text(page.Next)}}, nil
}

func (a *api) listAppDead(ctx context.Context, in *appDeadInput) (*response[List[AppDeadLetter]], error) {
	q, err := query.ParseAppOutbox(in.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	page, err := a.appOutboxes.DeadLetters(ctx, in.Outbox, outboxwatch.DeadLetterRequest{
		Name: q.Name, After: q.Cursor, Limit: cmp.Or(q.Limit, query.DefaultLimit), Payload: !a.hides,
	})
	if err != nil {
		return nil, a.outboxFailed(ctx, in.Outbox, err)
	}
	if a.hides {
		page.DeadLetters = payload.DeadLetters(page.DeadLetters)
	}
	return &response[List[AppDeadLetter]]{List[AppDeadLetter]{Items: mapSlice(page.DeadLetters, fromAppDead), Next: text(page.Next)}}, nil
}

// outboxFailed says why an outbox cannot be read.
func (a *api) outboxFailed(ctx context.Context, name string, err error) error {
	if errors.Is(err, outboxwatch.ErrUnknownSource) {
		return problem(http.StatusNotFound, fmt.Sprintf("Umbel watches no outbox named %.100q.", name))
	}
	if errors.Is(err, outboxwatch.ErrCursor) {
		return problem(http.StatusBadRequest, "The parameter cursor is invalid: start from the first page.")
	}
	a.logger.WarnContext(ctx, "read outbox of an application", "outbox", name, "error", err)
	if e, ok := errors.AsType[*outboxwatch.Error](err); ok {
		return problem(http.StatusServiceUnavailable, e.Text)
	}
	return problem(http.StatusServiceUnavailable, "The outbox cannot be read; see Umbel's log.")
}

func fromAppOutbox(o outboxwatch.Outbox) AppOutbox {
	s := o.Stats
	d := AppOutbox{
		Name: o.Name, URL: o.URL, Server: text(s.Server), ReadAt: timeOf(o.ReadAt), States: map[string]Bound{}, Ready: bound(s.Ready()),
		LastTakenAt: timeOf(s.LastTaken), IdleSince: timeOf(o.Relay.IdleSince), Retries: bound(s.Retries), DeadLetters: bound(s.DeadLetters),
		TopFailing: mapSlice(s.TopFailing, nameCount), DeadReasons: mapSlice(s.Reasons, nameCount), DeadNames: mapSlice(s.DeadNames, nameCount),
		MissingGrants: append([]string{}, s.MissingGrants...), ReadOnly: text(s.ReadOnly),
	}
	for _, state := range outboxwatch.States() {
		d.States[string(state)] = bound(s.States[state])
	}
	if !s.OldestReady.IsZero() {
		d.OldestReadySeconds = new(s.Now.Sub(s.OldestReady).Seconds())
	}
	if !o.ReadAt.IsZero() && o.Err == nil {
		d.RelayStopped = &o.Relay.Stopped
	}
	if o.Err != nil {
		d.Error = &AppOutboxError{Fault: string(o.Err.Fault), Message: o.Err.Text, Since: timeOf(o.FailedAt)}
	}
	return d
}

func bound(c history.Count) Bound { return Bound{c.N, c.Exact} }

func nameCount(n outboxwatch.NameCount) NameCount { return NameCount{n.Name, n.N} }

func fromAppRow(r outboxwatch.Row) AppOutboxRow {
	return AppOutboxRow{
		ID: Int(r.ID), TaskID: r.TaskID, Name: r.TaskName, State: string(r.State), CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt),
		RetryAfter: timeOf(r.RetryAfter), Retries: r.Retries, SchemaVersion: r.SchemaVersion, AppPayload: fromPayload(r.Payload),
	}
}

func fromAppDead(l outboxwatch.DeadLetter) AppDeadLetter {
	return AppDeadLetter{
		ID: Int(l.ID), TaskID: l.TaskID, Name: l.TaskName, CreatedAt: timeOf(l.CreatedAt), DeadAt: timeOf(l.DeadAt), Retries: l.Retries,
		Reason: text(l.Reason), SchemaVersion: l.SchemaVersion, AppPayload: fromPayload(l.Payload),
	}
}

func fromPayload(p outboxwatch.Payload) AppPayload {
	return AppPayload{Args: p.Args, Kwargs: p.Kwargs, Options: p.Options, Redacted: p.RedactedArgs || p.RedactedKwargs}
}

// TaskOutbox is the way of a task through an application's outbox. Times are by the clock of its database.
type TaskOutbox struct {
	Name        string  `json:"name" doc:"Name of the outbox." example:"shop"`
	Stage       string  `json:"stage" enum:"pending,in_flight,stale,deferred,due,other_schema,dead,sent"`
	CommittedAt Time    `json:"committed_at"`
	TakenAt     []Time  `json:"taken_at" nullable:"false" doc:"When a relay took it, oldest first, as far as that was seen; at most 8."`
	Retries     int     `json:"retries"`
	RetryAfter  Time    `json:"retry_after" doc:"When a relay may try again after a failure."`
	SentBy      Time    `json:"sent_by" doc:"When its row was first missed: it was sent before."`
	DeadAt      Time    `json:"dead_at"`
	Reason      *string `json:"reason" doc:"Why the relay gave it up."`
	Unsent      bool    `json:"unsent" doc:"Committed and ready for 2 minutes, and not taken."`
	Unreceived  bool    `json:"unreceived" doc:"Sent a minute ago or earlier. Executions tell whether a worker has it."`
	Resent      bool    `json:"resent" doc:"Taken again although an earlier attempt may have sent it."`
}

func (a *api) taskOutbox(ctx context.Context, r *TaskPath) (*response[TaskOutbox], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	t, ok := a.appOutboxes.Look(ctx, r.ID)
	if !ok {
		return nil, problem(http.StatusNotFound, "No watched outbox has had this task since Umbel started.")
	}
	if a.hides {
		t = payload.Trace(t)
	}
	why := a.appOutboxes.Attention(&t)
	o := TaskOutbox{
		Name: t.Outbox, Stage: string(t.Stage), CommittedAt: timeOf(t.CommittedAt), TakenAt: make([]Time, len(t.Claims)), Retries: t.Retries,
		RetryAfter: timeOf(t.RetryAfter), SentBy: timeOf(t.SentBy), DeadAt: timeOf(t.DeadAt), Reason: text(t.Reason),
		Unsent: why.Unsent, Unreceived: why.Unreceived, Resent: why.Resent,
	}
	for i, at := range t.Claims {
		o.TakenAt[i] = timeOf(at)
	}
	return &response[TaskOutbox]{o}, nil
}
