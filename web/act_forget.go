package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/umbelhq/umbel/templates"
)

// askForget says what it means to forget workers.
func (p *forms) askForget(w http.ResponseWriter, r *http.Request) {
	v, err := p.forgetForm(r.URL.Query())
	p.showAct(w, r, v, err)
}

// forget forgets workers.
func (p *forms) forget(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	v, err := p.forgetForm(r.PostForm)
	if err == nil {
		_, err = p.service().Forget(r.Context(), p.by(r), v.Targets)
	}
	if err != nil {
		p.showAct(w, r, v, err)
		return
	}
	http.Redirect(w, r, p.urls.Prefix+"/workers", http.StatusSeeOther)
}

// forgetForm is the form that forgets workers, and why they cannot be forgotten.
func (p *forms) forgetForm(form url.Values) (templates.Form, error) {
	names := slices.DeleteFunc(slices.Clone(form["worker"]), func(name string) bool { return name == "" })
	v := templates.Form{
		Section: templates.SectionWorkers, Title: "Forget", Path: "/act/forget", Targets: names, Danger: true,
		Description: "The worker is removed from the list and the history; its tasks stay. Nothing is sent. It reappears with its next " +
			"event.",
		Crumbs: []templates.Link{{Text: "Workers", Href: p.urls.Prefix + "/workers"}},
	}
	for _, name := range names {
		v.Hidden = append(v.Hidden, templates.Param{Name: "worker", Value: name})
	}
	if len(names) == 1 {
		v.Crumbs = append(v.Crumbs, templates.Link{Text: names[0], Href: p.urls.Prefix + templates.WorkerPath(names[0])})
	}
	found, err := p.service().PreviewForget(names)
	if err == nil {
		v.Preview = &templates.Preview{Preview: found}
	}
	return v, err
}
