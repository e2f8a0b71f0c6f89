package web

import (
	"context"
	"net/http"
	"net/url"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/views"
)

// viewsPage lists all saved views.
type viewsPage struct{ *common }

func (p *viewsPage) load(ctx context.Context, _ address) (page, error) {
	return p.list(ctx, http.StatusOK, "")
}

// list says in a message what became of a form.
func (p *viewsPage) list(ctx context.Context, status int, message string) (page, error) {
	saved, err := p.backend.History().Views(ctx)
	if err != nil {
		return page{}, err
	}
	v := templates.Views{Message: message}
	for _, s := range saved {
		v.Views = append(v.Views, p.savedView(s))
	}
	return page{
		url: "/views", static: true, status: status, title: "Saved views", section: templates.SectionTasks, view: v,
	}, nil
}

// viewHref leads to the list of a view, which says what is wrong if its query cannot be read any more.
func (p *common) viewHref(v history.View) string {
	path := p.urls.Prefix + "/tasks"
	if t, err := views.Tasks(v); err == nil {
		return t.URL(path)
	}
	return path + "?" + url.Values{"q": {v.Query}, "sort": {v.Sort}, "cols": {v.Columns}}.Encode()
}

func (p *viewsPage) savedView(v history.View) templates.SavedView {
	return templates.SavedView{ID: v.ID, Name: v.Name, Query: v.Query, Href: p.viewHref(v)}
}
