package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/command"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/payload"
)

// The things that can be done to tasks.
const (
	revoke    = "revoke"
	terminate = "terminate"
	retry     = "retry"
)

// formTimeout bounds the preview of a request, which calls workers and the broker.
const formTimeout = 30 * time.Second

// signals that a form proposes; the first is the usual one.
func signals() []string {
	return []string{"SIGTERM", "SIGKILL", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"}
}

// tasksForm is what a request wants done, and to which tasks.
type tasksForm struct {
	request        command.BulkRequest
	text           string // of the query
	all            bool   // that match the query, in place of single ones
	capped, signal string // as they were typed
}

// readTasksForm reads a request. The form is of use even if there is an error.
func (p *forms) readTasksForm(v url.Values) (tasksForm, error) {
	f := tasksForm{text: v.Get("q"), all: v.Has("q"), capped: strings.TrimSpace(v.Get("cap")), signal: v.Get("signal")}
	f.request = command.BulkRequest{Action: v.Get("action"), Signal: f.signal}
	if !f.all {
		f.request.IDs = slices.DeleteFunc(slices.Clone(v["id"]), func(id string) bool { return id == "" })
	}
	if f.request.Action != terminate {
		f.request.Signal = ""
	}
	if !slices.Contains([]string{revoke, terminate, retry}, f.request.Action) {
		return f, &command.Error{Field: "action", Message: "tasks can be revoked, terminated or retried"}
	}
	if !f.all && len(f.request.IDs) == 0 {
		return f, &command.Error{Field: "ids", Message: "no task is selected"}
	}
	q, err := lang.Parse(f.text)
	if err != nil {
		return f, &command.Error{Field: "q", Message: "invalid query: " + err.Error()}
	}
	if f.request.Query = q; !p.audience.Payload {
		if f.request.Query, err = payload.Query(q); err != nil {
			return f, &command.Error{Field: "q", Message: err.Error()}
		}
	}
	if f.request.Action == retry {
		f.request.Objects, f.request.Args, f.request.Kwargs = v.Get("objects") != "", typed(v, "args"), typed(v, "kwargs")
	}
	if f.capped == "" {
		return f, nil
	}
	n, err := strconv.Atoi(f.capped)
	if err != nil || n < 1 || n > command.MaxCap {
		message := fmt.Sprintf("must be a number from 1 to %d", command.MaxCap)
		return f, &command.Error{Field: "cap", Message: message}
	}
	f.request.Cap = n
	return f, nil
}

// typed returns the JSON in a field of a form, nil if it is empty.
func typed(v url.Values, name string) json.RawMessage {
	if text := strings.TrimSpace(v.Get(name)); text != "" {
		return json.RawMessage(text)
	}
	return nil
}

// verb is what is done, to begin a title with.
func (f tasksForm) verb() string {
	switch f.request.Action {
	case terminate:
		return "Terminate"
	case retry:
		return "Retry"
	}
	return "Revoke"
}

// hidden repeats which tasks are meant.
func (f tasksForm) hidden() []templates.Param {
	list := []templates.Param{{Name: "action", Value: f.request.Action}}
	if f.request.Objects {
		list = append(list, templates.Param{Name: "objects", Value: "1"})
	}
	if f.request.Args != nil {
		list = append(list, templates.Param{Name: "args", Value: string(f.request.Args)})
	}
	if f.request.Kwargs != nil {
		list = append(list, templates.Param{Name: "kwargs", Value: string(f.request.Kwargs)})
	}
	if f.all {
		return append(list, templates.Param{Name: "q", Value: f.text})
	}
	for _, id := range f.request.IDs {
		list = append(list, templates.Param{Name: "id", Value: id})
	}
	return list
}

// fields are what remains to be chosen: the signal, and how many tasks at most.
func (f tasksForm) fields() []templates.Input {
	var list []templates.Input
	if f.request.Action == terminate {
		list = append(list, templates.Input{
			Name: "signal", Field: "signal", Label: "Signal", Kind: templates.InputChoice, Options: signals(), Required: true,
			Value: cmp.Or(f.signal, signals()[0]),
			Hint:  "Sent to the process running the task. SIGTERM lets Python clean up, SIGKILL does not.",
		})
	}
	if f.all || len(f.request.IDs) > 1 {
		list = append(list, templates.Input{
			Name: "cap", Field: "cap", Label: "Limit", Kind: templates.InputNumber, Value: f.capped,
			Hint: fmt.Sprintf("Maximum number of tasks. Defaults to %d, at most %d", command.DefaultCap, command.MaxCap),
		})
	}
	return list
}

// act is the page that asks for what f wants, without a preview.
func (p *forms) tasksAct(ctx context.Context, f tasksForm) templates.Form {
	v := templates.Form{
		Section: templates.SectionTasks, Path: "/act/task", Hidden: f.hidden(), Fields: f.fields(),
		Danger: f.request.Action == terminate, Crumbs: []templates.Link{{Text: "Tasks", Href: p.urls.Prefix + "/tasks"}},
	}
	switch {
	case f.all && f.text == "":
		v.Title = f.verb() + " all tasks"
	case f.all:
		v.Title = f.verb() + " all matching tasks"
		list := p.urls.Prefix + "/tasks?" + url.Values{"q": {f.text}}.Encode()
		v.Crumbs[0] = templates.Link{Text: "Tasks matching " + truncate.Text(f.text, maxHint), Href: list}
	case len(f.request.IDs) == 1:
		v.Title = f.verb() + " this task"
		v.Description = p.callOf(ctx, f.request.IDs[0])
		v.Crumbs = append(v.Crumbs, templates.Link{
			Text: shorten(f.request.IDs[0]), Href: p.urls.Prefix + templates.TaskPath(f.request.IDs[0]),
		})
	default:
		v.Title = fmt.Sprintf("%s %d tasks", f.verb(), len(f.request.IDs))
	}
	return v
}

// callOf names a task with what it was called with, as far as that is known.
func (p *forms) callOf(ctx context.Context, id string) string {
	t, err := p.backend.Task(ctx, id)
	if err != nil || t.Name == nil {
		return ""
	}
	call := []string{*t.Name}
	for _, repr := range []*string{t.Args, t.Kwargs} {
		if repr != nil {
			call = append(call, *repr)
		}
	}
	return truncate.Text(strings.Join(call, " "), maxHint)
}

// shorten is the head of an id, as pages show it.
func shorten(id string) string { return id[:min(len(id), 8)] }

// askTasks shows what would be done to tasks.
func (p *forms) askTasks(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	f, err := p.readTasksForm(r.Form)
	v := p.tasksAct(r.Context(), f)
	if err != nil || f.request.Action == terminate && !checking(r) || r.Form.Has("change") {
		p.showAct(w, r, v, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), formTimeout)
	defer cancel()
	if !f.all && len(f.request.IDs) == 1 && f.request.Action == retry {
		p.askRetry(ctx, w, r, v, f.request.IDs[0])
		return
	}
	p.showTasks(ctx, w, r, f, v, "")
}

// showTasks shows the preflight of f, and why it was not taken before, if it was not.
func (p *forms) showTasks(
	ctx context.Context, w http.ResponseWriter, r *http.Request, f tasksForm, v templates.Form, why string,
) {
	found, err := p.service().PreviewBulk(ctx, f.request)
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	v.Preview = p.timely(&templates.Preview{Preview: found.Preview})
	v.Preview.Tasks = &templates.Preflight{BulkPreview: found, Many: f.all || len(f.request.IDs) > 1, Query: f.text, All: f.all}
	if f.request.Action == retry {
		v.Preview.Tasks.Remedies = &templates.Remedies{
			Path: v.Path, Hidden: f.hidden(), Cap: f.capped, Args: string(f.request.Args), Kwargs: string(f.request.Kwargs),
		}
	}
	if found.Capped {
		v.Preview.Tasks.Cap = cmp.Or(f.request.Cap, command.DefaultCap)
	}
	if v.NothingToDo = found.Selected == 0; v.NothingToDo {
		v.Preview.Summary, v.Preview.Targets, v.Preview.Warnings = "Nothing to "+f.request.Action, nil, nil
	}
	v.Button = f.verb() + " this task"
	if found.Selected > 1 {
		v.Button = fmt.Sprintf("%s %d tasks", f.verb(), found.Selected)
	}
	if len(v.Fields) > 0 && !v.NothingToDo {
		v.Change = p.urls.Prefix + "/act/task?" + p.change(f).Encode()
	}
	if why != "" {
		p.showAct(w, r, v, &command.Error{Message: why})
		return
	}
	p.showAct(w, r, v, nil)
}

// change are the parameters of the form on which the fields of f can be changed.
func (p *forms) change(f tasksForm) url.Values {
	v := url.Values{"change": {"1"}}
	fields := []templates.Param{{Name: "cap", Value: f.capped}, {Name: "signal", Value: f.signal}}
	for _, h := range append(f.hidden(), fields...) {
		if h.Value != "" || h.Name == "q" {
			v.Add(h.Name, h.Value)
		}
	}
	return v
}

// sendTasks does it.
func (p *forms) sendTasks(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	f, err := p.readTasksForm(r.PostForm)
	v := p.tasksAct(r.Context(), f)
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), formTimeout)
	defer cancel()
	if !f.all && len(f.request.IDs) == 1 && f.request.Action == retry {
		p.sendRetry(ctx, w, r, v, f.request.IDs[0])
		return
	}
	found, err := p.service().PreviewBulk(ctx, f.request)
	if err == nil && found.Confirm != "" && strings.TrimSpace(r.PostFormValue(templates.ConfirmParam)) != found.Confirm {
		p.showTasks(ctx, w, r, f, v, "not confirmed: type “"+found.Confirm+"”")
		return
	}
	receipt, err := p.service().Bulk(ctx, p.by(r), f.request)
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	p.taken(w, r, receipt)
}

// askRetry shows what running a task again would send. What is not known in full must be typed in.
func (p *forms) askRetry(ctx context.Context, w http.ResponseWriter, r *http.Request, v templates.Form, id string) {
	o, source, err := p.service().Retry(ctx, id)
	if err == nil && source == "" {
		http.Redirect(w, r, p.urls.Prefix+"/act/publish?"+url.Values{"retry_of": {id}}.Encode(), http.StatusSeeOther)
		return
	}
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	form := p.publishAct(p.publishFields(requestForm(o, p.audience.Payload)), id)
	preview, err := p.service().PreviewTask(ctx, o)
	if err != nil {
		p.refusePublish(ctx, w, r, form, o, err)
		return
	}
	v.Description = "Original request. Arguments from the " + source + "."
	if !p.audience.Payload {
		v.Description = "Original request. Its arguments are hidden."
	}
	v.Button = "Retry"
	v.Change = p.urls.Prefix + "/act/publish?" + url.Values{"retry_of": {id}}.Encode()
	v.Preview = p.callPreview(preview, form.Fields)
	p.showAct(w, r, v, nil)
}

// sendRetry runs a task again as it was.
func (p *forms) sendRetry(ctx context.Context, w http.ResponseWriter, r *http.Request, v templates.Form, id string) {
	o, source, err := p.service().Retry(ctx, id)
	if err == nil && source == "" {
		err = &command.Error{Kind: command.Conflict, Message: "the arguments are not known in full"}
	}
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	receipt, err := p.service().Publish(ctx, p.by(r), o)
	if err != nil {
		p.refusePublish(ctx, w, r, p.publishAct(p.publishFields(requestForm(o, p.audience.Payload)), id), o, err)
		return
	}
	p.taken(w, r, receipt)
}
