package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/views"
)

// save keeps what a form says, and shows the list that is now a view.
func (p *viewsPage) save(w http.ResponseWriter, r *http.Request) {
	v, _, err := views.Save(r.Context(), p.backend.History(), history.View{
		Name: r.PostFormValue("name"), Query: r.PostFormValue("q"), Sort: r.PostFormValue("sort"), Columns: r.PostFormValue("cols"),
	})
	if err != nil {
		p.refused(w, r, err)
		return
	}
	p.record(r, "save view", v.Name)
	http.Redirect(w, r, p.viewHref(v), http.StatusSeeOther)
}

// change renames or deletes a view.
func (p *viewsPage) change(w http.ResponseWriter, r *http.Request) {
	id, deleted := strings.CutSuffix(param(r, "id"), "/delete")
	var err error
	if deleted {
		err = p.backend.History().DeleteView(r.Context(), id)
	} else {
		err = p.renameView(r.Context(), id, r.PostFormValue("name"))
	}
	if err != nil {
		p.refused(w, r, err)
		return
	}
	if deleted {
		p.record(r, "delete view", id)
	} else {
		p.record(r, "rename view", r.PostFormValue("name"))
	}
	http.Redirect(w, r, p.urls.Prefix+"/views", http.StatusSeeOther)
}

func (p *viewsPage) renameView(ctx context.Context, id, name string) error {
	v, err := views.Find(ctx, p.backend.History(), id)
	if err != nil {
		return err
	}
	v.Name = name
	_, _, err = views.Save(ctx, p.backend.History(), v)
	return err
}

// refused says why a view is not changed.
func (p *viewsPage) refused(w http.ResponseWriter, r *http.Request, err error) {
	wrong, ok := errors.AsType[*views.Error](err)
	switch {
	case ok:
		p.showList(w, r, http.StatusBadRequest, wrong.Message)
	case errors.Is(err, history.ErrNotFound):
		p.showList(w, r, http.StatusNotFound, "This view no longer exists.")
	default:
		p.notLoaded(w, r, err)
	}
}

// showList shows the list with what became of a form.
func (p *viewsPage) showList(w http.ResponseWriter, r *http.Request, status int, message string) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	pg, err := p.list(ctx, status, message)
	if err != nil {
		p.notLoaded(w, r, err)
		return
	}
	p.show(w, r, pg)
}

// confirmDelete asks before a view goes.
func (p *viewsPage) confirmDelete(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	v, err := views.Find(ctx, p.backend.History(), param(r, "id"))
	if err != nil {
		p.refused(w, r, err)
		return
	}
	p.show(w, r, page{
		url: "/views", static: true, title: "Delete view", section: templates.SectionTasks,
		view: templates.DeleteView{View: p.savedView(v)},
	})
}
