package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/views"
)

// View is a saved query with the shape of its table.
type View struct {
	ID    string `json:"id" readOnly:"true"`
	Name  string `json:"name" example:"Late invoices"`
	Query string `json:"query" example:"name:billing.* run:>2s"`
	Sort  string `json:"sort" doc:"As in list-tasks."`
	Cols  string `json:"cols" doc:"As in list-tasks."`
}

// viewRequest names a view.
type viewRequest struct {
	request
	ID string `path:"id" doc:"View id."`
}

// savedView is a view that was kept.
type savedView struct {
	Status   int
	Location string `header:"Location"` // empty if it was there
	Body     View
}

// ViewBody is what clients say of a view.
type ViewBody struct {
	Name  string `json:"name" maxLength:"100" doc:"Unique without regard to case."`
	Query string `json:"query,omitempty"`
	Sort  string `json:"sort,omitempty" doc:"As in list-tasks."`
	Cols  string `json:"cols,omitempty" doc:"As in list-tasks."`
}

func (a *api) registerViews(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	const bad, missing, away = http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable
	huma.Register(h, operation("list-views", "/views", "Saved views by name", bad, away), a.views)
	huma.Register(h, operation("get-view", "/views/{id}", "One saved view", bad, missing, away), a.view)
	if a.readOnly {
		return
	}
	const large, kind = http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType
	save := operation("save-view", "/views", "Save a view, in place of one of the same name", bad, large, kind, away)
	save.Method, save.DefaultStatus = http.MethodPost, http.StatusCreated
	save.Responses["200"] = &huma.Response{
		Description: "It has replaced the view of that name.",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[View](), true, "")}},
	}
	huma.Register(h, save, a.addView)
	change := operation("change-view", "/views/{id}", "Change a view", bad, missing, large, kind, away)
	change.Method = http.MethodPut
	huma.Register(h, change, a.changeView)
	remove := operation("delete-view", "/views/{id}", "Delete a view", bad, missing, away)
	remove.Method, remove.DefaultStatus = http.MethodDelete, http.StatusNoContent
	huma.Register(h, remove, a.deleteView)
	h.OpenAPI().Paths["/views"].Post.RequestBody = requestBody[ViewBody](h)
	h.OpenAPI().Paths["/views/{id}"].Put.RequestBody = requestBody[ViewBody](h)
}

func (a *api) views(ctx context.Context, r *request) (*answer[List[View]], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	all, err := a.backend.Store().Views(ctx)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	return &answer[List[View]]{Body: whole(all, fromView)}, nil
}

func (a *api) view(ctx context.Context, r *viewRequest) (*answer[View], error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	v, err := views.Find(ctx, a.backend.Store(), r.ID)
	if err != nil {
		return nil, a.viewProblem(ctx, r.ID, err)
	}
	return &answer[View]{fromView(v)}, nil
}

func (a *api) addView(ctx context.Context, r *orderRequest) (*savedView, error) {
	v, created, err := a.saveView(ctx, r)
	if err != nil {
		return nil, err
	}
	saved := &savedView{Status: http.StatusOK, Body: v}
	if created {
		saved.Status, saved.Location = http.StatusCreated, a.prefix+"/api/v1/views/"+v.ID
	}
	return saved, nil
}

func (a *api) changeView(ctx context.Context, r *orderRequest) (*answer[View], error) {
	if _, err := views.Find(ctx, a.backend.Store(), r.rest); err != nil {
		return nil, a.viewProblem(ctx, r.rest, err)
	}
	v, _, err := a.saveView(ctx, r)
	if err != nil {
		return nil, err
	}
	return &answer[View]{v}, nil
}

// saveView keeps the view in the body of a request, with the id in its path if there is one.
func (a *api) saveView(ctx context.Context, r *orderRequest) (v View, created bool, err error) {
	if err := r.plain(); err != nil {
		return v, false, err
	}
	if r.err != nil {
		return v, false, r.err
	}
	var b ViewBody
	if err := decodeBody(r.body, &b); err != nil {
		return v, false, err
	}
	saved, created, err := views.Save(ctx, a.backend.Store(), history.View{ID: r.rest, Name: b.Name, Query: b.Query, Sort: b.Sort, Columns: b.Cols})
	if err != nil {
		return v, false, a.viewProblem(ctx, r.rest, err)
	}
	return fromView(saved), created, nil
}

func (a *api) deleteView(ctx context.Context, r *viewRequest) (*struct{}, error) {
	if err := r.plain(); err != nil {
		return nil, err
	}
	if err := a.backend.Store().DeleteView(ctx, r.ID); err != nil {
		return nil, a.viewProblem(ctx, r.ID, err)
	}
	return nil, nil
}

func (a *api) viewProblem(ctx context.Context, id string, err error) *Problem {
	wrong, ok := errors.AsType[*views.Error](err)
	switch {
	case ok:
		p := problem(http.StatusBadRequest, wrong.Message)
		if wrong.Field != "" {
			p.Errors = []Detail{{Location: "body." + wrong.Field, Message: wrong.Message}}
		}
		return p
	case errors.Is(err, history.ErrNotFound):
		return problem(http.StatusNotFound, "There is no view "+shorten(id)+".")
	}
	return a.unreadable(ctx, err)
}

func fromView(v history.View) View {
	return View{ID: v.ID, Name: v.Name, Query: v.Query, Sort: v.Sort, Cols: v.Columns}
}
