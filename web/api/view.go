package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/views"
)

// View is a saved query with its sort order and columns.
type View struct {
	ID    string `json:"id" readOnly:"true"`
	Name  string `json:"name" example:"Late invoices"`
	Query string `json:"query" example:"name:billing.* run:>2s"`
	Sort  string `json:"sort" doc:"As in list-tasks."`
	Cols  string `json:"cols" doc:"As in list-tasks."`
}

// savedView is the response to saving a view.
type savedView struct {
	Status   int
	Location string `header:"Location"` // empty if a view was replaced
	Body     View
}

// ViewBody is a view to save.
type ViewBody struct {
	_ struct{} `additionalProperties:"false"`

	Name  string `json:"name" minLength:"1" maxLength:"100" doc:"Name, unique regardless of case."`
	Query string `json:"query,omitempty"`
	Sort  string `json:"sort,omitempty" doc:"As in list-tasks."`
	Cols  string `json:"cols,omitempty" doc:"As in list-tasks."`
}

// ViewPath names a view.
type ViewPath struct {
	Origin
	ID string `path:"id" doc:"View ID."`
}

type viewInput struct {
	Origin
	Body ViewBody
}

type changeView struct {
	ViewPath
	Body ViewBody
}

func (a *api) registerViews(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-views", "/views", "List saved views", unavailable), a.views)
	huma.Register(h, operation(h, auth.View, "get-view", "/views/{id}", "Get a saved view", notFound, unavailable), a.view)
	if a.readOnly {
		return
	}
	save := postBody(h, auth.SaveView, "save-view", "/views", "Save a view, replacing one of the same name", unavailable)
	save.DefaultStatus = http.StatusCreated
	schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[View](), true, "")
	save.Responses["200"] = &huma.Response{
		Description: "A view of that name was replaced.",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}
	huma.Register(h, save, a.addView)
	change := postBody(h, auth.SaveView, "change-view", "/views/{id}", "Update a view", notFound, unavailable)
	change.Method = http.MethodPut
	huma.Register(h, change, a.changeView)
	remove := operation(h, auth.SaveView, "delete-view", "/views/{id}", "Delete a view", notFound, unavailable)
	remove.Method, remove.DefaultStatus = http.MethodDelete, http.StatusNoContent
	huma.Register(h, remove, a.deleteView)
}

func (a *api) views(ctx context.Context, _ *struct{}) (*response[List[View]], error) {
	all, err := a.backend.History().Views(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[List[View]]{Body: onePage(all, fromView)}, nil
}

func (a *api) view(ctx context.Context, r *ViewPath) (*response[View], error) {
	v, err := views.Find(ctx, a.backend.History(), r.ID)
	if err != nil {
		return nil, a.viewProblem(ctx, r.ID, err)
	}
	return &response[View]{fromView(v)}, nil
}

func (a *api) addView(ctx context.Context, in *viewInput) (*savedView, error) {
	v, created, err := views.Save(ctx, a.backend.History(), in.Body.view(""))
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	a.recordChange(in.http, "save view", v.Name)
	saved := &savedView{Status: http.StatusOK, Body: fromView(v)}
	if created {
		saved.Status, saved.Location = http.StatusCreated, a.prefix+"/api/v1/views/"+v.ID
	}
	return saved, nil
}

func (a *api) changeView(ctx context.Context, in *changeView) (*response[View], error) {
	if _, err := views.Find(ctx, a.backend.History(), in.ID); err != nil {
		return nil, a.viewProblem(ctx, in.ID, err)
	}
	v, _, err := views.Save(ctx, a.backend.History(), in.Body.view(in.ID))
	if err != nil {
		return nil, a.viewProblem(ctx, in.ID, err)
	}
	a.recordChange(in.http, "change view", v.Name)
	return &response[View]{fromView(v)}, nil
}

func (a *api) deleteView(ctx context.Context, r *ViewPath) (*struct{}, error) {
	if err := a.backend.History().DeleteView(ctx, r.ID); err != nil {
		return nil, a.viewProblem(ctx, r.ID, err)
	}
	a.recordChange(r.http, "delete view", r.ID)
	return nil, nil
}

func (a *api) viewProblem(ctx context.Context, id string, err error) error {
	if errors.Is(err, history.ErrNotFound) {
		return problem(http.StatusNotFound, "There is no view "+shorten(id)+".")
	}
	return a.failed(ctx, err)
}

func (b ViewBody) view(id string) history.View {
	return history.View{ID: id, Name: b.Name, Query: b.Query, Sort: b.Sort, Columns: b.Cols}
}

func fromView(v history.View) View {
	return View{ID: v.ID, Name: v.Name, Query: v.Query, Sort: v.Sort, Cols: v.Columns}
}
