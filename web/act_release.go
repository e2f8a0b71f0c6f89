package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/templates"
)

// askRelease says what releasing a lock would do, and asks for its name.
func (p *forms) askRelease(w http.ResponseWriter, r *http.Request) {
	v, err := p.releaseForm(r.Context(), r.URL.Query())
	p.showAct(w, r, v, err)
}

// releaseForm is the form that releases a lock. It repeats what was seen of the lock, so that another one is not released.
func (p *forms) releaseForm(ctx context.Context, form url.Values) (templates.Form, error) {
	key := form.Get("key")
	v := templates.Form{
		Section: templates.SectionDuplicates, Title: "Release lock", Path: "/act/release", Danger: true, Button: "Release",
		Description: "The key is deleted only if its value, its expiry and the task that holds it are still as shown here.",
		Crumbs:      []templates.Link{{Text: "Duplicates", Href: p.urls.Prefix + "/duplicates"}, {Text: "Locks", Href: p.urls.Prefix + "/locks"}},
		Hidden:      []templates.Param{{Name: "key", Value: key}},
		Preview:     &templates.Preview{Preview: command.Preview{Summary: "Release lock", Targets: []string{key}}},
		NothingToDo: true,
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	preview, l, err := p.service().PreviewRelease(ctx, key)
	if err != nil {
		return v, err
	}
	v.NothingToDo, v.Preview.Preview = false, preview
	v.Hidden = append(v.Hidden, templates.Param{Name: "version", Value: l.Version})
	v.Preview.Details = templates.LockDetails(l)
	if !l.Persistent {
		v.Preview.ExpiresAt = micros(l.ExpiresAt)
	}
	return v, nil
}

// release releases a lock.
func (p *forms) release(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	receipt, err := p.service().Release(r.Context(), p.by(r), command.ReleaseRequest{
		Key: r.PostFormValue("key"), Version: r.PostFormValue("version"), Confirm: r.PostFormValue(templates.ConfirmParam),
	})
	if err == nil {
		p.taken(w, r, receipt)
		return
	}
	v, unknown := p.releaseForm(r.Context(), r.PostForm)
	p.showAct(w, r, v, cmp.Or(unknown, err))
}
