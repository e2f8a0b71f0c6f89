// Package payload hides what tasks carry from those who may not see it: arguments, results, the messages of exceptions and
// tracebacks. What reads through Hide cannot show it, and no query tells it by what it matches.
package payload

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// Backend is what pages and APIs read.
type Backend interface {
	View(f func(c state.View))
	Changed() <-chan struct{}
	Health() view.Health
	Rates() view.Rates
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Task(ctx context.Context, id string) (state.Task, error)
	TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error)
	Count(ctx context.Context, q lang.Query) (history.Count, error)
	Duplicates(ctx context.Context, r history.DuplicateRequest) (view.DuplicatePage, error)
	DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (view.DuplicateGroup, error)
	Workflow(ctx context.Context, root string) (workflow.Workflow, error)
	Workflows(ctx context.Context, r history.WorkflowRequest) (history.WorkflowPage, error)
	History() view.History
}

// Hide returns b without payloads. A query that asks for them is refused with a *query.Error, and what groups tasks by them
// with an *auth.Error.
func Hide(b Backend) Backend { return hidden{b} }

type hidden struct{ Backend }

func (h hidden) View(f func(c state.View)) { h.Backend.View(func(c state.View) { f(cluster{c}) }) }

func (h hidden) Tasks(ctx context.Context, r history.TaskRequest) (page history.TaskPage, err error) {
	if r.Query, err = Query(r.Query); err != nil {
		return page, err
	}
	page, err = h.Backend.Tasks(ctx, r)
	page.Tasks = hideTasks(page.Tasks)
	return page, err
}

func (h hidden) Task(ctx context.Context, id string) (state.Task, error) {
	t, err := h.Backend.Task(ctx, id)
	hideTask(&t)
	return t, err
}

func (h hidden) Count(ctx context.Context, q lang.Query) (history.Count, error) {
	q, err := Query(q)
	if err != nil {
		return history.Count{}, err
	}
	return h.Backend.Count(ctx, q)
}

// Duplicates is refused: which tasks are in a group tells which arguments are equal, and its key is a digest of them.
func (h hidden) Duplicates(context.Context, history.DuplicateRequest) (view.DuplicatePage, error) {
	return view.DuplicatePage{}, auth.Withheld()
}

func (h hidden) DuplicateGroup(context.Context, history.DuplicateKey, int) (view.DuplicateGroup, error) {
	return view.DuplicateGroup{}, auth.Withheld()
}

func (h hidden) History() view.History { return stored{h.Backend.History()} }

// cluster is a cluster without payloads.
type cluster struct{ state.View }

func (c cluster) Tasks(q state.Query) state.Page {
	page := c.View.Tasks(q)
	page.Tasks = hideTasks(page.Tasks)
	return page
}

func (c cluster) Task(id string) (state.Task, bool) {
	t, ok := c.View.Task(id)
	hideTask(&t)
	return t, ok
}

func (c cluster) UnsavedTasks(from *state.Position, newer bool, n int) []state.Task {
	list := c.View.UnsavedTasks(from, newer, n)
	return hideTasks(list)
}

// stored is a history without payloads.
type stored struct{ view.History }

func (s stored) FailureGroups(ctx context.Context, r history.FailureRequest) (history.FailurePage, error) {
	page, err := s.History.FailureGroups(ctx, r)
	groups := make([]history.FailureGroup, len(page.Groups)) // the store may have the others in a cache
	for i := range page.Groups {
		groups[i] = hideGroup(page.Groups[i])
	}
	page.Groups = groups
	return page, err
}

func (s stored) FailureGroup(ctx context.Context, id fingerprint.ID, now time.Time) (history.FailureGroup, error) {
	g, err := s.History.FailureGroup(ctx, id, now)
	return hideGroup(g), err
}

func (s stored) DuplicateGroups(context.Context, history.DuplicateRequest) (history.DuplicatePage, error) {
	return history.DuplicatePage{}, auth.Withheld()
}

func (s stored) DuplicateGroup(context.Context, history.DuplicateKey, int) (history.DuplicateGroup, error) {
	return history.DuplicateGroup{}, auth.Withheld()
}

// MarkDuplicates marks nothing: calls are digests of arguments.
func (s stored) MarkDuplicates(context.Context, []state.Task) error { return nil }

// Values returns those of fields that are not payloads.
func (s stored) Values(ctx context.Context, f lang.Field, part string, limit int) ([]string, error) {
	if carries(f) {
		return nil, nil
	}
	return s.History.Values(ctx, f, part, limit)
}

func hideGroup(g history.FailureGroup) history.FailureGroup {
	g.Example, g.Fingerprint.Message = exceptionType(g.Example), ""
	return g
}

func hideTasks(list []state.Task) []state.Task {
	list = slices.Clone(list)
	for i := range list {
		hideTask(&list[i])
	}
	return list
}

// hideTask leaves the types of exceptions. Sends, revocations and the evidence of lost tasks hold nothing that a task carries. A
// task is a copy, but for what its slices hold.
func hideTask(t *state.Task) {
	t.Args, t.Kwargs, t.Result, t.Traceback = nil, nil, nil, nil
	t.Exception, t.CallID, t.Duplicates = hideException(t.Exception), state.CallID{}, t.Duplicates&^comparing
	t.Executions = slices.Clone(t.Executions)
	for i := range t.Executions {
		e := &t.Executions[i]
		e.Result, e.Traceback, e.Exception = nil, nil, hideException(e.Exception)
	}
}

// Event removes the payload of an event, as Hide does of tasks.
func Event(e *state.Event) {
	e.Args, e.Kwargs, e.Result, e.Traceback = "", "", "", ""
	e.Present &^= state.FieldArgs | state.FieldKwargs | state.FieldResult | state.FieldTraceback
	if e.Has(state.FieldException) {
		e.Exception = exceptionType(e.Exception)
	}
}

func hideException(s *string) *string {
	if s == nil {
		return nil
	}
	kind := exceptionType(*s)
	return &kind
}

// exceptionType returns the name of the class in the repr of an exception, ValueError of ValueError('x'), "exception" if there
// is none.
func exceptionType(repr string) string {
	name, _, call := strings.Cut(repr, "(")
	if !call || name == "" || len(name) > 100 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" {
		if repr == "" {
			return ""
		}
		return "exception"
	}
	return name
}

// carries reports whether values of a field are payloads.
func carries(f lang.Field) bool {
	switch f {
	case lang.Args, lang.Kwargs, lang.Result, lang.Exception, lang.Traceback:
		return true
	default:
		return false
	}
}

// Query returns a query that matches by nothing that payloads hold: words without a field match ids and names only. The error
// is a *query.Error for fields that do nothing else.
func Query(q lang.Query) (lang.Query, error) {
	e, field := restrict(q.Expr())
	if field != "" {
		return q, &query.Error{Param: "q", Message: "cannot search by " + field + ": you may not see arguments, results and exceptions"}
	}
	return lang.New(e), nil
}

// comparing are the ways to repeat work that tell which tasks have equal arguments: whoever may publish tasks could guess them.
const comparing = state.Overlapping | state.Rerun | state.Skipped

// restrict returns e without payloads, and the name of a field that it cannot do without.
func restrict(e lang.Expr) (lang.Expr, string) {
	list := func(all []lang.Expr) ([]lang.Expr, string) {
		restricted := make([]lang.Expr, len(all))
		for i := range all {
			var field string
			if restricted[i], field = restrict(all[i]); field != "" {
				return nil, field
			}
		}
		return restricted, ""
	}
	switch e := e.(type) {
	case lang.And:
		all, field := list(e)
		return lang.And(all), field
	case lang.Or:
		all, field := list(e)
		return lang.Or(all), field
	case lang.Not:
		x, field := restrict(e.X)
		return lang.Not{X: x}, field
	case lang.Term:
		return restrictTerm(e)
	}
	return e, ""
}

func restrictTerm(t lang.Term) (lang.Expr, string) {
	switch {
	case carries(t.Field):
		return t, t.Field.String()
	case t.Field == lang.Dup:
		for _, v := range t.Values {
			if _, call := state.ParseCallID(v.Text); call {
				return t, "the call of a task"
			}
			if lang.DupMarks(v.Text)&comparing != 0 {
				return t, "dup:" + v.Text
			}
		}
	case t.Field == lang.Any:
		var ids, names []lang.Value
		for _, v := range t.Values {
			text := strings.Trim(v.Text, "*")
			ids = append(ids, lang.Value{Match: lang.Pattern, Text: text + "*"})
			names = append(names, lang.Value{Match: lang.Pattern, Text: "*" + text + "*"})
		}
		return lang.Or{lang.Term{Field: lang.ID, Values: ids}, lang.Term{Field: lang.Name, Values: names}}, ""
	}
	return t, ""
}

// Inspection returns i without the arguments of tasks.
func Inspection(i remote.Inspection) remote.Inspection {
	hide := func(list []remote.TaskInfo) []remote.TaskInfo {
		list = slices.Clone(list)
		for k := range list {
			list[k].Args, list[k].Kwargs = "", ""
		}
		return list
	}
	i.Active, i.Reserved = hide(i.Active), hide(i.Reserved)
	i.Scheduled = slices.Clone(i.Scheduled)
	for k := range i.Scheduled {
		i.Scheduled[k].Task.Args, i.Scheduled[k].Task.Kwargs = "", ""
	}
	return i
}

// Command returns c without what it carries to workers and what they replied.
func Command(c history.Command) history.Command {
	c.Payload = []byte("{}")
	if c.Kind == command.KindRelease {
		c.Target = hiddenKey
	}
	replies := slices.Clone(c.Replies)
	for i := range replies {
		replies[i].Text = ""
	}
	c.Replies = replies
	if c.LastError != "" {
		c.LastError = "The error is hidden."
	}
	return c
}

// hiddenKey stands for the key of a lock, which may hold arguments.
const hiddenKey = "a lock"

// Outbox returns s without the errors of commands.
func Outbox(s history.OutboxStats) history.OutboxStats {
	s.TopErrors = nil
	return s
}

// Relay returns s without the error of the last command, unless it says why the broker is away.
func Relay(s relay.Status) relay.Status {
	if !s.BreakerOpen {
		s.LastError = ""
	}
	return s
}

// Records returns records of the audit log without the requests in them.
func Records(list []history.AuditRecord) []history.AuditRecord {
	list = slices.Clone(list)
	for i := range list {
		list[i].Detail = ""
		if list[i].Action == command.KindRelease {
			list[i].Target = hiddenKey
		}
	}
	return list
}
