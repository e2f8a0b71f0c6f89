package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// Failure is a group of failed tasks of one name with similar exceptions. Null means unknown.
type Failure struct {
	ID         string  `json:"id" doc:"Stable ID. The query failure:ID finds the tasks." example:"0dd7dc58725190cd"`
	Name       *string `json:"name" doc:"Task name."`
	Type       *string `json:"type" doc:"Exception type without its module." example:"ConnectionError"`
	Message    *string `json:"message" doc:"Common part of the exception messages." example:"cannot reach <address>"`
	Place      *string `json:"place" doc:"File and function that raised the exception." example:"gateway.py in post"`
	Example    *string `json:"example" doc:"Most recent exception."`
	TaskID     *string `json:"task_id" doc:"Most recent failed task."`
	Status     string  `json:"status" enum:"open,resolved,recurred" doc:"recurred: a task failed after the group was resolved."`
	Count      int     `json:"count" doc:"Number of failed tasks, up to 10,000."`
	Exact      bool    `json:"exact" doc:"Whether count is exact."`
	InSpan     *int    `json:"in_span" doc:"Number of tasks that failed between since and until, up to 10,000; null without them."`
	LastHour   int     `json:"last_hour" doc:"Number of tasks that failed in the last hour, up to 10,000."`
	FirstAt    Time    `json:"first_at" doc:"When the oldest retained task failed."`
	FirstAfter []Mark  `json:"first_after" nullable:"false" doc:"The newest deploy or restart in the day before first_at, and if that is a restart, the newest deploy in that day. It says what came first, not what caused it."`
	LastAt     Time    `json:"last_at"`
	ResolvedAt Time    `json:"resolved_at"`
	Note       *string `json:"note" doc:"What people noted about the group."`
	NotedBy    *string `json:"noted_by" doc:"User who wrote the note; null if unknown."`
	NotedAt    Time    `json:"noted_at"`
	Assignee   *string `json:"assignee" doc:"User to whom the group is assigned."`
	Trend      []int64 `json:"trend" nullable:"false" doc:"Failed tasks per clock hour for the last 24 hours, oldest first; the last hour is still in progress. With since and until, per twenty-fourth of that span."`
}

func fromFailure(f history.FailureGroup, before []deploys.Mark) Failure {
	d := Failure{
		FirstAfter: mapSlice(before, fromMark),

		ID: f.ID.String(), Name: text(f.Name), Type: text(f.Fingerprint.Type), Message: text(f.Fingerprint.Message),
		Place: text(f.Fingerprint.Place), Example: text(f.Example), TaskID: text(f.TaskID), Status: "open",
		Count: f.Count.N, Exact: f.Count.Exact, LastHour: f.LastHour,
		FirstAt: timeOf(f.FirstAt), LastAt: timeOf(f.LastAt), ResolvedAt: timeOf(f.ResolvedAt),
		Note: text(f.Note), NotedBy: text(f.NotedBy), NotedAt: timeOf(f.NotedAt), Assignee: text(f.Assignee),
		Trend: append([]int64{}, f.Trend...),
	}
	switch {
	case f.Recurred():
		d.Status = "recurred"
	case f.Resolved():
		d.Status = "resolved"
	}
	return d
}

// registerFailures adds the operations on failure groups.
func (a *api) registerFailures(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-failures", "/failures", "List failure groups, most recent failure first", unavailable), a.failures)
	huma.Register(h, operation(h, auth.View, "get-failure", "/failures/{id}", "Get a failure group", notFound, unavailable), a.failure)
	if a.readOnly {
		return
	}
	huma.Register(h, post(h, auth.ResolveFailure, "resolve-failure", "/failures/{id}/resolve",
		"Mark a failure group as resolved", notFound, unavailable), a.resolve)
	huma.Register(h, post(h, auth.ResolveFailure, "reopen-failure", "/failures/{id}/reopen",
		"Reopen a resolved failure group", notFound, unavailable), a.reopen)
	huma.Register(h, postBody(h, auth.ResolveFailure, "note-failure", "/failures/{id}/note",
		"Change the note or the assignee of a failure group", notFound, unavailable), a.note)
}

type listFailures struct {
	Query
	SpanInput
	Show     string `query:"show" enum:"open,resolved,all" default:"open" doc:"Which groups to list; open includes groups that recurred."`
	Assigned string `query:"assignee" maxLength:"256" doc:"Only groups assigned to this user."`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of groups to return."`
	Cursor   string `query:"cursor" doc:"Cursor from next of an earlier response."`
}

// FailurePath names a failure group.
type FailurePath struct {
	Origin
	ID string `path:"id" doc:"Group ID." example:"0dd7dc58725190cd"`
}

func (a *api) failures(ctx context.Context, r *listFailures) (*response[List[Failure]], error) {
	q, err := query.ParseFailures(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	page, err := a.backend.History().FailureGroups(ctx, q.Request(a.now(), 0))
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	before, err := a.precedents(ctx, page.Groups)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	l := List[Failure]{Items: make([]Failure, len(page.Groups))}
	for i, f := range page.Groups {
		l.Items[i] = fromFailure(f, before[f.ID])
		if q.Chosen() {
			l.Items[i].InSpan = &f.Within
		}
	}
	total := page.Open
	switch q.Show {
	case query.ShowResolved:
		total = page.Resolved
	case query.ShowAll:
		total += page.Resolved
	}
	l.Total = &total
	if page.Next != nil {
		l.Next = new(query.EncodeFailure(*page.Next))
	}
	return &response[List[Failure]]{l}, nil
}

type getFailure struct {
	Query
	SpanInput

	ID string `path:"id" doc:"Group ID." example:"0dd7dc58725190cd"`
}

func (a *api) failure(ctx context.Context, r *getFailure) (*response[Failure], error) {
	span, err := query.ParseSpan(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return a.failureIn(ctx, r.ID, span)
}

// failureIn returns a group, with what it counts in a span of time if there is one.
func (a *api) failureIn(ctx context.Context, name string, span query.Span) (*response[Failure], error) {
	id, ok := fingerprint.ParseID(name)
	if !ok {
		return nil, failureNotFound(name)
	}
	from, to := span.Times()
	f, err := history.FailureGroupWithin(ctx, a.backend.History(), id, from, to, a.now())
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, failureNotFound(name)
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	before, err := a.precedents(ctx, []history.FailureGroup{f})
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	d := fromFailure(f, before[f.ID])
	if span.Chosen() {
		d.InSpan = &f.Within
	}
	return &response[Failure]{d}, nil
}

// precedents returns what came before groups failed first.
func (a *api) precedents(ctx context.Context, groups []history.FailureGroup) (map[fingerprint.ID][]deploys.Mark, error) {
	return deploys.OfFailures(ctx, a.backend.History(), a.backend.View, groups, a.now()) //nolint:wrapcheck // it says what was read
}

// resolve marks a group as resolved and returns it.
func (a *api) resolve(ctx context.Context, r *FailurePath) (*response[Failure], error) {
	return a.setResolved(ctx, r, a.now())
}

// reopen marks a group as open and returns it.
func (a *api) reopen(ctx context.Context, r *FailurePath) (*response[Failure], error) {
	return a.setResolved(ctx, r, time.Time{})
}

// FailureNote is what people note about a failure group.
type FailureNote struct {
	_ struct{} `additionalProperties:"false"`

	Note     *string `json:"note,omitempty" maxLength:"2000" doc:"Note, at most 2,000 bytes. Empty removes it; left out, it stays."`
	Assignee *string `json:"assignee,omitempty" maxLength:"256" doc:"User to assign the group to, at most 256 bytes. Empty assigns it to nobody; left out, it stays."`
}

type noteFailure struct {
	FailurePath
	Body FailureNote
}

// CheckFailureNote reports in a sentence what is too long.
func CheckFailureNote(n history.FailureNote) error {
	switch {
	case n.Text == nil && n.Assignee == nil:
		return errors.New("Give a note or an assignee.") //nolint:staticcheck // a sentence that users see
	case n.Text != nil && (len(*n.Text) > history.MaxFailureNote || !utf8.ValidString(*n.Text)):
		return fmt.Errorf("The note must be text of at most %d bytes.", history.MaxFailureNote) //nolint:staticcheck // likewise
	case n.Assignee != nil && (len(*n.Assignee) > history.MaxAssignee || strings.ContainsFunc(*n.Assignee, unicode.IsControl)):
		return fmt.Errorf("The assignee must be one line of at most %d bytes.", history.MaxAssignee) //nolint:staticcheck // likewise
	}
	return nil
}

// FailureNoteActions are the actions that the audit log has for a change.
func FailureNoteActions(n history.FailureNote) (actions []string) {
	if n.Text != nil {
		actions = append(actions, "note failure")
	}
	if n.Assignee != nil {
		actions = append(actions, "assign failure")
	}
	return actions
}

// note changes what people note about a group and returns it.
func (a *api) note(ctx context.Context, r *noteFailure) (*response[Failure], error) {
	id, ok := fingerprint.ParseID(r.ID)
	if !ok {
		return nil, failureNotFound(r.ID)
	}
	n := history.FailureNote{Text: r.Body.Note, Assignee: r.Body.Assignee, By: auth.FromContext(ctx).User, At: a.now()}
	if err := CheckFailureNote(n); err != nil {
		return nil, problem(http.StatusBadRequest, err.Error())
	}
	err := a.backend.History().NoteFailureGroup(ctx, id, n)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, failureNotFound(r.ID)
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	for _, action := range FailureNoteActions(n) {
		a.recordChange(r.http, action, r.ID)
	}
	return a.failureIn(ctx, r.ID, query.Span{})
}

func (a *api) setResolved(ctx context.Context, r *FailurePath, at time.Time) (*response[Failure], error) {
	id, ok := fingerprint.ParseID(r.ID)
	if !ok {
		return nil, failureNotFound(r.ID)
	}
	err := a.backend.History().ResolveFailureGroup(ctx, id, at)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, failureNotFound(r.ID)
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	action := "resolve failure"
	if at.IsZero() {
		action = "reopen failure"
	}
	a.recordChange(r.http, action, r.ID)
	return a.failureIn(ctx, r.ID, query.Span{})
}

func failureNotFound(id string) *Problem {
	return problem(http.StatusNotFound, "No failure group has the ID "+shorten(id)+", or none of its tasks is retained.")
}
