package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/store"
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

// newView is a view to keep.
type newView struct {
	request
	RawBody []byte `contentType:"application/json"`
}

// changedView is a view to keep in place of another.
type changedView struct {
	request
	ID      string `path:"id" doc:"View id."`
	RawBody []byte `contentType:"application/json"`
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
	with := func(op huma.Operation, method string, status int) huma.Operation {
		op.Method, op.DefaultStatus, op.SkipValidateBody = method, status, true
		return op
	}
	huma.Register(h, operation("list-views", "/views", "Saved views by name", bad, away), a.views)
	if a.readOnly {
		return
	}
	huma.Register(h, with(operation("save-view", "/views", "Save a view, in place of one of the same name", bad, away),
		http.MethodPost, http.StatusOK), a.addView)
	huma.Register(h, with(operation("change-view", "/views/{id}", "Change a view", bad, missing, away),
		http.MethodPut, http.StatusOK), a.changeView)
	huma.Register(h, with(operation("delete-view", "/views/{id}", "Delete a view", bad, missing, away),
		http.MethodDelete, http.StatusNoContent), a.deleteView)
	// The body is decoded here, so that a wrong one is a problem like any other.
	body := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[ViewBody](), true, "")
	for _, op := range []*huma.Operation{h.OpenAPI().Paths["/views"].Post, h.OpenAPI().Paths["/views/{id}"].Put} {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: body}}}
	}
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

func (a *api) addView(ctx context.Context, r *newView) (*answer[View], error) {
	return a.saveView(ctx, "", r.RawBody)
}

func (a *api) changeView(ctx context.Context, r *changedView) (*answer[View], error) {
	if _, err := views.Find(ctx, a.backend.Store(), r.ID); err != nil {
		return nil, a.viewProblem(ctx, r.ID, err)
	}
	return a.saveView(ctx, r.ID, r.RawBody)
}

func (a *api) saveView(ctx context.Context, id string, body []byte) (*answer[View], error) {
	var b ViewBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, problem(http.StatusBadRequest, "The body is not a view as JSON.")
	}
	v, err := views.Save(ctx, a.backend.Store(), store.View{ID: id, Name: b.Name, Query: b.Query, Sort: b.Sort, Cols: b.Cols})
	if err != nil {
		return nil, a.viewProblem(ctx, id, err)
	}
	return &answer[View]{Body: fromView(v)}, nil
}

func (a *api) deleteView(ctx context.Context, r *viewRequest) (*struct{}, error) {
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
	case errors.Is(err, store.ErrMissing):
		return problem(http.StatusNotFound, "There is no view "+shorten(id)+".")
	}
	return a.unreadable(ctx, err)
}

func fromView(v store.View) View {
	return View{ID: v.ID, Name: v.Name, Query: v.Query, Sort: v.Sort, Cols: v.Cols}
}
