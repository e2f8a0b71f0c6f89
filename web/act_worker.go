package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
)

// workerAct is a remote control command for workers, as a form has it.
type workerAct struct {
	method  remote.Method
	workers []string // none means all
	form    url.Values
}

// workerAct reads a form. If there is no such method or no worker is selected, it writes the response.
func (p *forms) workerAct(w http.ResponseWriter, r *http.Request) (workerAct, bool) {
	if !p.readForm(w, r) {
		return workerAct{}, false
	}
	a := workerAct{form: r.Form}
	back := templates.Problem{Title: "Nothing was sent", Back: p.urls.Prefix + "/workers", BackText: "All workers"}
	var known bool
	if a.method, known = remote.Lookup(r.Form.Get("method")); !known || !slices.Contains(workerMethods(), a.method.Name) {
		back.Message = "Unknown remote control command."
		p.problem(w, r, http.StatusBadRequest, back)
		return a, false
	}
	if why := auth.Decide(r.Context(), auth.ControlAction(a.method.Name)); why != nil {
		back.Title, back.Message = http.StatusText(why.Status), why.Message
		p.problem(w, r, why.Status, back)
		return a, false
	}
	if r.Form.Get("all") == "" {
		a.workers = slices.DeleteFunc(r.Form["worker"], func(name string) bool { return name == "" })
		slices.Sort(a.workers)
		a.workers = slices.Compact(a.workers)
		if len(a.workers) == 0 {
			back.Message = "No worker selected. Select some in the list, or “all workers”."
			p.problem(w, r, http.StatusBadRequest, back)
			return a, false
		}
	}
	return a, true
}

// request is the request for the command service. Invalid arguments are passed on, so that it refuses them by name.
func (a workerAct) request() command.ControlRequest {
	o := command.ControlRequest{Method: a.method.Name, Workers: a.workers}
	for _, param := range a.method.Params {
		if v := argument(param, a.form[templates.ArgumentPrefix+param.Name]); v != nil {
			if o.Arguments == nil {
				o.Arguments = map[string]any{}
			}
			o.Arguments[param.Name] = v
		}
	}
	return o
}

// argument reads the fields of a form as the type of a parameter, nil if nothing was filled in.
func argument(p remote.Param, fields []string) any {
	var values []string
	for _, f := range fields {
		if f = strings.TrimSpace(f); f != "" {
			values = append(values, f)
		}
	}
	if len(values) == 0 {
		return nil
	}
	first := values[0]
	switch p.Type {
	case remote.TextList:
		var list []any
		for _, v := range values {
			for item := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
				if item = strings.TrimSpace(item); item != "" {
					list = append(list, item)
				}
			}
		}
		return list
	case remote.Integer, remote.Seconds, remote.Rate, remote.Flag, remote.AnyJSON:
		var v any
		if json.Unmarshal([]byte(first), &v) == nil {
			return v
		}
	case remote.Text, remote.Signal:
	}
	return first
}

// workerForm is the form for the request.
func (p *forms) workerForm(a workerAct) templates.Form {
	v := templates.Form{
		Section: templates.SectionWorkers, Title: a.method.Title, Description: a.method.Doc, Path: "/act/worker",
		Crumbs: []templates.Link{{Text: "Workers", Href: p.urls.Prefix + "/workers"}},
		Hidden: []templates.Param{{Name: "method", Value: a.method.Name}},
		Danger: a.method.Dangerous,
	}
	if a.workers == nil {
		v.Hidden = append(v.Hidden, templates.Param{Name: "all", Value: "1"})
	}
	for _, name := range a.workers {
		v.Hidden = append(v.Hidden, templates.Param{Name: "worker", Value: name})
	}
	if v.Targets = a.workers; len(a.workers) == 0 {
		v.Targets = []string{"all workers"}
	}
	if len(a.workers) == 1 {
		v.Crumbs = append(v.Crumbs, templates.Link{Text: a.workers[0], Href: p.urls.Prefix + templates.WorkerPath(a.workers[0])})
	}
	for _, param := range a.method.Params {
		v.Fields = append(v.Fields, p.workerField(param, a))
	}
	if len(v.Fields) > 0 {
		q := url.Values{}
		for _, h := range v.Hidden {
			q.Add(h.Name, h.Value)
		}
		for _, f := range v.Fields {
			q.Add(f.Name, f.Value)
		}
		v.Change = p.urls.Prefix + v.Path + "?" + q.Encode()
	}
	return v
}

// workerField is the field for an argument, with what may be meant.
func (p *forms) workerField(param remote.Param, a workerAct) templates.Input {
	f := templates.Input{
		Name: templates.ArgumentPrefix + param.Name, Field: "arguments." + param.Name,
		Label: label(param.Name), Hint: param.Doc, Required: param.Required,
	}
	f.Value = strings.Join(a.form[f.Name], "\n")
	switch param.Type {
	case remote.Flag:
		f.Kind = templates.InputCheck
	case remote.Integer, remote.Seconds:
		f.Kind = templates.InputNumber
	case remote.TextList:
		f.Kind = templates.InputArea
	case remote.Text, remote.Rate, remote.Signal, remote.AnyJSON:
	}
	if len(param.Choices) > 0 {
		f.Kind, f.Options = templates.InputChoice, param.Choices
		if !param.Required {
			f.Options = append([]string{""}, param.Choices...)
		}
	}
	switch param.Name {
	case "queue":
		f.Options = p.knownOf(a, func(t remote.Topology) map[string][]string { return t.Queues })
	case "task_name":
		f.Options = p.knownOf(a, func(t remote.Topology) map[string][]string { return t.Tasks })
	}
	return f
}

// knownOf returns the queues or tasks that workers have reported.
func (p *forms) knownOf(a workerAct, of func(t remote.Topology) map[string][]string) []string {
	var names []string
	for name, workers := range of(p.commands.Inspector.CachedTopology()) {
		theirs := a.method.Name == "add_consumer" || len(a.workers) == 0 ||
			slices.ContainsFunc(workers, func(w string) bool { return slices.Contains(a.workers, w) })
		if theirs {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// askWorker shows the form or, once its fields are filled in, a preview.
func (p *forms) askWorker(w http.ResponseWriter, r *http.Request) {
	a, ok := p.workerAct(w, r)
	if !ok {
		return
	}
	v := p.workerForm(a)
	var err error
	if len(v.Fields) == 0 || checking(r) {
		var found command.Preview
		if found, err = p.service().PreviewControl(r.Context(), a.request()); err == nil {
			v.Preview = &templates.Preview{Preview: found}
		}
	}
	p.showAct(w, r, v, err)
}

// sendWorker takes the request.
func (p *forms) sendWorker(w http.ResponseWriter, r *http.Request) {
	a, ok := p.workerAct(w, r)
	if !ok {
		return
	}
	v := p.workerForm(a)
	found, err := p.service().PreviewControl(r.Context(), a.request())
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	if found.Confirm != "" && r.PostForm.Get(templates.ConfirmParam) != found.Confirm {
		v.Preview = &templates.Preview{Preview: found}
		p.showAct(w, r, v, &command.Error{Message: "not confirmed: type “" + found.Confirm + "”"})
		return
	}
	receipt, err := p.service().Control(r.Context(), p.by(r), a.request())
	if err != nil {
		v.Preview = &templates.Preview{Preview: found}
		p.showAct(w, r, v, err)
		return
	}
	p.taken(w, r, receipt)
}

// label makes words of the name of an argument.
func label(name string) string {
	return strings.TrimSuffix(sentence(strings.ReplaceAll(name, "_", " ")), ".")
}
