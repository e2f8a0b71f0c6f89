package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/calls"
)

// askExclude asks which fields of a task do not count when its calls are compared, and says what that would group.
func (p *forms) askExclude(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	v, err := p.excludeForm(ctx, r.URL.Query(), checking(r))
	p.showAct(w, r, v, err)
}

// exclude saves which fields do not count.
func (p *forms) exclude(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	if _, err := p.service().SaveDuplicateRule(ctx, p.by(r), excludeRequest(r.PostForm)); err != nil {
		v, _ := p.excludeForm(ctx, r.PostForm, false)
		p.showAct(w, r, v, err)
		return
	}
	target := p.urls.Prefix + "/duplicates/rules?" + url.Values{paramSaved: {strings.TrimSpace(r.PostForm.Get("name"))}}.Encode()
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// excludeRequest reads the form: one field per line.
func excludeRequest(v url.Values) command.DuplicateRuleRequest {
	r := command.DuplicateRuleRequest{Name: strings.TrimSpace(v.Get("name"))}
	for line := range strings.Lines(v.Get("fields")) {
		if line = strings.TrimSpace(line); line != "" {
			r.Exclude = append(r.Exclude, line)
		}
	}
	return r
}

// excludeForm is the form for a task, with what its fields would group if they are to be checked.
func (p *forms) excludeForm(ctx context.Context, v url.Values, check bool) (templates.Form, error) {
	req := excludeRequest(v)
	form := templates.Form{
		Section: templates.SectionDuplicates, Title: "Exclude fields", Path: "/act/exclude", Button: "Save",
		Description: "Tasks that differ in nothing but these arguments count as the same call.",
		Crumbs: []templates.Link{
			{Text: "Duplicates", Href: p.urls.Prefix + "/duplicates"},
			{Text: "Excluded fields", Href: p.urls.Prefix + "/duplicates/rules"},
		},
	}
	saved, known, err := p.duplicateRule(ctx, req.Name)
	if err != nil {
		return form, err
	}
	fields := v.Get("fields")
	if !v.Has("fields") && known {
		fields = strings.Join(saved.Exclude, "\n")
	}
	form.Fields = []templates.Input{
		{Name: "name", Field: "name", Label: "Task name", Value: req.Name, Required: true},
		{
			Name: "fields", Field: "exclude", Label: "Fields", Kind: templates.InputArea, Value: fields,
			Hint: p.fieldsHint(ctx, req.Name),
		},
	}
	if !check {
		return form, nil
	}
	preview, err := p.service().PreviewDuplicateRule(ctx, req)
	if err != nil {
		return form, err
	}
	return p.excludePreview(form, req, preview), nil
}

// excludePreview adds to a form what it would do.
func (p *forms) excludePreview(form templates.Form, req command.DuplicateRuleRequest, found command.DuplicateRulePreview) templates.Form {
	summary := "Compare " + req.Name + " without " + strings.Join(req.Exclude, ", ")
	if len(req.Exclude) == 0 {
		summary, form.Button = "Compare "+req.Name+" by all its arguments", "Delete rule"
	}
	found.Samples = calls.OfSamples(p.redactor, found.Samples)
	form.Preview = &templates.Preview{Preview: command.Preview{Summary: summary}, Groups: &found}
	form.Change = p.urls.Prefix + form.Path + "?" + url.Values{"name": {req.Name}, "fields": {strings.Join(req.Exclude, "\n")}}.Encode()
	if found.Same {
		form.NothingToDo = true
		form.Preview.Warnings = append(form.Preview.Warnings, command.Warning{Message: "This is saved already: nothing would change."})
	}
	return form
}

// duplicateRule returns the rule that a task has, false if it has none.
func (p *forms) duplicateRule(ctx context.Context, name string) (history.DuplicateRule, bool, error) {
	rules, err := p.backend.History().DuplicateRules(ctx)
	if err != nil {
		return history.DuplicateRule{}, false, err
	}
	for _, r := range rules {
		if r.Name == name {
			return r, true, nil
		}
	}
	return history.DuplicateRule{}, false, nil
}

// fieldsHint says how fields are written, and shows the newest call of the task.
func (p *forms) fieldsHint(ctx context.Context, name string) string {
	hint := "One per line: request_id, order.at, lines[*].at, or [0] for the first positional argument. Empty to compare all."
	if name == "" {
		return hint
	}
	found, err := p.backend.Tasks(ctx, history.TaskRequest{Query: lang.New(lang.Equal(lang.Name, name)), Limit: 1, Now: p.now()})
	if err != nil || len(found.Tasks) == 0 {
		return hint
	}
	if call := calls.Of(p.redactor, found.Tasks)[0]; call != "" {
		hint += " The newest call has " + truncate.Text(call, 200) + "."
	}
	return hint
}
