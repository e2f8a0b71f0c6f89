package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
	"github.com/umbelhq/umbel/web/views"
)

// maxTabs bounds how many saved views stand above a list; the page of views has all.
const maxTabs = 20

// tabs are the views above a list, with their numbers as far as these are known.
func (p *pages) tabs(ctx context.Context, q query.Tasks) ([]templates.ViewTab, error) {
	saved, err := p.cluster.History().Views(ctx)
	if err != nil {
		return nil, fmt.Errorf("read views: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	path := p.site.Prefix + "/tasks"
	here := q.First()
	here.Limit = 0
	list := []templates.ViewTab{{
		Name: "All", Href: path, Current: here.Canonical() == "", Count: templates.Total{Unknown: true},
	}}
	for _, v := range append(views.System(), saved[:min(len(saved), maxTabs)]...) {
		tab := templates.ViewTab{Name: v.Name, Href: p.viewHref(v), Count: templates.Total{Unknown: true}}
		if t, err := views.Tasks(v); err == nil {
			tab.Current = here.Canonical() == t.Canonical()
			if n, ok := p.counts.get(ctx, t.Query); ok {
				tab.Count = total(n)
			}
		}
		list = append(list, tab)
	}
	return list, nil
}

// viewHref leads to the list of a view, which says what is wrong if its query cannot be read any more.
func (p *pages) viewHref(v history.View) string {
	path := p.site.Prefix + "/tasks"
	if t, err := views.Tasks(v); err == nil {
		return t.URL(path)
	}
	return path + "?" + url.Values{"q": {v.Query}, "sort": {v.Sort}, "cols": {v.Columns}}.Encode()
}

func (p *pages) savedView(v history.View) templates.SavedView {
	return templates.SavedView{ID: v.ID, Name: v.Name, Query: v.Query, Href: p.viewHref(v)}
}

// views shows all saved views.
func (p *pages) views(w http.ResponseWriter, r *http.Request) { p.showViews(w, r, http.StatusOK, "") }

func (p *pages) showViews(w http.ResponseWriter, r *http.Request, status int, message string) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	saved, err := p.cluster.History().Views(ctx)
	v := templates.Views{Message: message}
	for _, s := range saved {
		v.Views = append(v.Views, p.savedView(s))
	}
	p.showRead(w, r, status, page{title: "Saved views", section: templates.SectionTasks, address: "/views", view: v}, err)
}

// saveView keeps what a form says, and shows the list that is now a view.
func (p *pages) saveView(w http.ResponseWriter, r *http.Request) {
	v, _, err := views.Save(r.Context(), p.cluster.History(), history.View{
		Name: r.PostFormValue("name"), Query: r.PostFormValue("q"), Sort: r.PostFormValue("sort"), Columns: r.PostFormValue("cols"),
	})
	if err != nil {
		p.refused(w, r, err)
		return
	}
	http.Redirect(w, r, p.viewHref(v), http.StatusSeeOther)
}

// changeView renames or deletes a view.
func (p *pages) changeView(w http.ResponseWriter, r *http.Request) {
	id, deleted := strings.CutSuffix(param(r, "id"), "/delete")
	var err error
	if deleted {
		err = p.cluster.History().DeleteView(r.Context(), id)
	} else {
		err = p.renameView(r.Context(), id, r.PostFormValue("name"))
	}
	if err != nil {
		p.refused(w, r, err)
		return
	}
	http.Redirect(w, r, p.site.Prefix+"/views", http.StatusSeeOther)
}

func (p *pages) renameView(ctx context.Context, id, name string) error {
	v, err := views.Find(ctx, p.cluster.History(), id)
	if err != nil {
		return err
	}
	v.Name = name
	_, _, err = views.Save(ctx, p.cluster.History(), v)
	return err
}

// refused says why a view is not changed.
func (p *pages) refused(w http.ResponseWriter, r *http.Request, err error) {
	wrong, ok := errors.AsType[*views.Error](err)
	switch {
	case ok:
		p.showViews(w, r, http.StatusBadRequest, wrong.Message)
	case errors.Is(err, history.ErrNotFound):
		p.showViews(w, r, http.StatusNotFound, "There is no such view any more.")
	default:
		p.showRead(w, r, http.StatusServiceUnavailable, page{}, err)
	}
}

// confirmDelete asks before a view goes.
func (p *pages) confirmDelete(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	v, err := views.Find(ctx, p.cluster.History(), param(r, "id"))
	if err != nil {
		p.refused(w, r, err)
		return
	}
	p.show(w, r, http.StatusOK, page{
		title: "Delete view", section: templates.SectionTasks, address: "/views", view: templates.DeleteView{View: p.savedView(v)},
	})
}
