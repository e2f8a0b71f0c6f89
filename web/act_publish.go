package web

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/templates"
)

const (
	maxOptions   = 500  // names that a field proposes
	maxHint      = 300  // bytes of a text beside a field
	maxFlat      = 80   // bytes of JSON on one line
	maxCountdown = 3650 // days
)

// askPublish shows the form of a new task, filled in as another one was if the request names one.
func (p *forms) askPublish(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	id := r.Form.Get("retry_of")
	if id == "" {
		p.showAct(w, r, p.publishAct(p.publishFields(r.Form), id), nil)
		return
	}
	o, source, err := p.service().Retry(ctx, id)
	if err != nil {
		p.showAct(w, r, p.publishAct(p.publishFields(r.Form), id), err)
		return
	}
	long := len(o.Args)+len(o.Kwargs) > celery.MaxArguments
	v := p.publishAct(p.publishFields(requestForm(o, source != "" && !long && p.audience.Payload)), id)
	v.Description = "Original request, editable. Arguments from the " + source + "."
	switch {
	case !p.audience.Payload:
		v.Description = "Original request, editable. Its arguments are hidden: enter them."
	case long:
		v.Description = fmt.Sprintf("The arguments are too long to edit here: %d bytes.", len(o.Args)+len(o.Kwargs))
	case source == "":
		v.Description = "The arguments are not known in full: enter them."
		if t, err := p.backend.Task(ctx, id); err == nil {
			if words := filled(v.Fields, &t); words != "" {
				v.Description = words
			}
		}
	}
	p.showAct(w, r, v, nil)
}

// orderForm is what a form says that asks for o.
func requestForm(o command.TaskRequest, known bool) url.Values {
	v := url.Values{"name": {o.Name}, "queue": {o.Queue}, "args": {""}, "kwargs": {""}}
	if known {
		v.Set("args", pretty(o.Args, "[]"))
		v.Set("kwargs", pretty(o.Kwargs, "{}"))
	}
	if o.Serializer != "" {
		v.Set("serializer", string(o.Serializer))
	}
	if o.Priority != nil {
		v.Set("priority", strconv.Itoa(int(*o.Priority)))
	}
	for name, limit := range map[string]*float64{"hard": o.Hard, "soft": o.Soft} {
		if limit != nil {
			v.Set(name, strconv.FormatFloat(*limit, 'f', -1, 64))
		}
	}
	for name, at := range map[string]time.Time{"eta": o.ETA, "expires": o.Expires} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return v
}

// pretty is JSON for a form: on one line if it is short, and as it is if it would be too long to be sent.
func pretty(raw json.RawMessage, empty string) string {
	switch {
	case len(raw) == 0:
		return empty
	case len(raw) <= maxFlat:
		return string(raw)
	}
	if text, whole := indent(raw, celery.MaxArguments/2); whole {
		return text
	}
	return string(raw)
}

// publishFields are the fields of the form, filled in from v.
func (p *forms) publishFields(v url.Values) []templates.Input {
	known := p.commands.Inspector.CachedTopology()
	list := []templates.Input{
		{Name: "name", Label: "Task", Required: true, Options: names(known.Tasks), Hint: "Registered task name."},
		{Name: "args", Label: "Arguments", Kind: templates.InputArea, Required: true, Hint: "A JSON array."},
		{Name: "kwargs", Label: "Keyword arguments", Kind: templates.InputArea, Required: true, Hint: "A JSON object."},
		{Name: "queue", Label: "Queue", Options: names(known.Queues), Hint: "Defaults to celery."},
		{Name: "countdown", Label: "Countdown", Kind: templates.InputNumber, Hint: "Delay in seconds before the task may start."},
		{Name: "eta", Label: "ETA", Hint: "Earliest start: 2026-11-21 14:30 in UTC, or 2026-11-21T14:30:00+01:00."},
		{Name: "expires", Label: "Expires", Hint: "Latest start, in the same format."},
		{Name: "hard", Label: "Time limit", Kind: templates.InputNumber, Hint: "Seconds after which the process is killed."},
		{Name: "soft", Label: "Soft time limit", Kind: templates.InputNumber, Hint: "Seconds after which SoftTimeLimitExceeded is raised."},
		{Name: "priority", Label: "Priority", Kind: templates.InputNumber, Hint: "0 to 9. The highest priority is 9 on RabbitMQ and 0 on Redis."},
	}
	serializers := []string{""}
	for _, s := range celery.Serializers() {
		serializers = append(serializers, string(s))
	}
	list = append(list, templates.Input{
		Name: "serializer", Label: "Serializer", Kind: templates.InputChoice, Options: serializers, Hint: "Empty for the task_serializer that workers report, else json.",
	})
	usual := map[string]string{"args": "[]", "kwargs": "{}", "serializer": ""}
	for i, f := range list {
		list[i].Field, list[i].Value = f.Name, strings.TrimSpace(v.Get(f.Name))
		if !v.Has(f.Name) {
			list[i].Value = usual[f.Name]
		}
	}
	if v.Get("force") == "true" {
		list = append(list, forced(true))
	}
	return list
}

// forced is the field that publishes a task although no worker has registered it.
func forced(on bool) templates.Input {
	return templates.Input{
		Name: "force", Field: "force", Kind: templates.InputCheck, Value: strconv.FormatBool(on),
		Label: "Publish anyway",
		Hint:  "A worker that has not registered the task discards it; a queue without consumers keeps it.",
	}
}

func names(of map[string][]string) []string {
	list := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		own := func(name string) int { // Celery's own come last
			if strings.HasPrefix(name, "celery.") {
				return 1
			}
			return 0
		}
		if own(a) != own(b) {
			return own(a) - own(b)
		}
		return strings.Compare(a, b)
	})
	return list[:min(len(list), maxOptions)]
}

func (p *forms) publishAct(fields []templates.Input, retryOf string) templates.Form {
	v := templates.Form{
		Section: templates.SectionTasks, Title: "Publish a task", Button: "Publish", Path: "/act/publish", Long: true,
		Fields: fields, Crumbs: []templates.Link{{Text: "Tasks", Href: p.urls.Prefix + "/tasks"}},
	}
	if retryOf != "" {
		v.Title = "Retry with changes"
		v.Hidden = []templates.Param{{Name: "retry_of", Value: retryOf}}
		task := p.urls.Prefix + templates.TaskPath(retryOf)
		v.Crumbs = append(v.Crumbs, templates.Link{Text: shorten(retryOf), Href: task})
	}
	return v
}

// publish checks a new task, or sends it.
func (p *forms) publish(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), formTimeout)
	defer cancel()
	form := r.PostForm
	v := p.publishAct(p.publishFields(form), form.Get("retry_of"))
	if form.Has(templates.ChangeParam) {
		p.showAct(w, r, v, nil)
		return
	}
	o, err := publishRequest(form)
	var preview command.Preview
	var receipt command.Receipt
	switch {
	case err != nil:
	case checking(r):
		preview, err = p.service().PreviewTask(ctx, o)
	default:
		receipt, err = p.service().Publish(ctx, p.by(r), o)
	}
	switch {
	case err != nil:
		p.refusePublish(ctx, w, r, v, o, err)
	case checking(r):
		v.Preview = p.callPreview(preview, v.Fields)
		p.showAct(w, r, v, nil)
	default:
		p.taken(w, r, receipt)
	}
}

// refusePublish shows the form filled in as o has it, with why o is not taken.
func (p *forms) refusePublish(
	ctx context.Context, w http.ResponseWriter, r *http.Request, v templates.Form, o command.TaskRequest, err error,
) {
	if p.forcible(ctx, o) {
		v.Fields = append(v.Fields, forced(false))
	}
	p.showAct(w, r, v, err)
}

// callPreview is a preview with what the fields of the form say.
func (p *forms) callPreview(preview command.Preview, fields []templates.Input) *templates.Preview {
	shown := p.timely(&templates.Preview{Preview: preview})
	for _, f := range fields {
		if f.Value != "" && f.Name != "force" {
			shown.Details = append(shown.Details, templates.Param{Name: f.Label, Value: f.Value})
		}
	}
	return shown
}

// timely adds to a preview that nothing can be sent now, if that is so.
func (p *forms) timely(v *templates.Preview) *templates.Preview {
	if !p.commands.Client.Connected() {
		v.Warnings = append(v.Warnings, command.Warning{
			Message: "The broker is unavailable: the command waits in the outbox until it is back or the command expires.",
		})
	}
	return v
}

// forcible reports whether a refused task would be accepted with Force.
func (p *forms) forcible(ctx context.Context, o command.TaskRequest) bool {
	if o.Force {
		return false
	}
	o.Force = true
	_, err := p.service().PreviewTask(ctx, o)
	return err == nil
}

// publishOrder reads the form. Its error is an *command.Error.
func publishRequest(v url.Values) (command.TaskRequest, error) {
	f := formReader{values: v}
	o := command.TaskRequest{
		Name: f.text("name"), Queue: f.text("queue"),
		Args: json.RawMessage(f.text("args")), Kwargs: json.RawMessage(f.text("kwargs")),
		ETA: f.moment("eta"), Expires: f.moment("expires"), Hard: f.number("hard"), Soft: f.number("soft"),
		RetryOf: f.text("retry_of"), Force: f.text("force") == "true", Serializer: celery.Serializer(f.text("serializer")),
	}
	if n := f.number("countdown"); n != nil {
		if *n < 0 || *n > maxCountdown*24*3600 {
			f.fail("countdown", "the countdown must be from 0 seconds to ten years")
		}
		o.Countdown = time.Duration(math.Round(*n * float64(time.Second)))
	}
	if n := f.number("priority"); n != nil {
		if *n < 0 || *n > 9 || *n != math.Trunc(*n) {
			f.fail("priority", "the priority must be a whole number from 0 to 9")
		}
		o.Priority = new(uint8(*n))
	}
	for name, raw := range map[string]json.RawMessage{"args": o.Args, "kwargs": o.Kwargs} {
		if strings.Contains(string(raw), "‹") && !json.Valid(raw) {
			f.fail(name, markedHint)
		}
	}
	if f.err != nil {
		return o, f.err
	}
	return o, nil
}

// formReader reads fields of a form and keeps the first error.
type formReader struct {
	values url.Values
	err    *command.Error
}

func (f *formReader) fail(field, message string) {
	if f.err == nil {
		f.err = &command.Error{Field: field, Message: message}
	}
}

func (f *formReader) text(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// number returns nil for a field that is empty.
func (f *formReader) number(name string) *float64 {
	s := f.text(name)
	if s == "" {
		return nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		f.fail(name, "this must be a number")
		return nil
	}
	return &n
}

// moment returns the zero time for a field that is empty. Without an offset it is UTC.
func (f *formReader) moment(name string) time.Time {
	s := f.text(name)
	if s == "" {
		return time.Time{}
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	f.fail(name, "this must be a time, such as 2026-11-21 14:30 in UTC")
	return time.Time{}
}
