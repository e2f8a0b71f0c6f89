package api

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/web/query"
)

// request is what operations need of a request beside its path. An operation's input embeds it.
type request struct{ rawQuery string }

// Resolve takes it from the request.
func (r *request) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	r.rawQuery = u.RawQuery
	return nil
}

// taskRequest names a task.
type taskRequest struct {
	request
	ID string `path:"id" doc:"Task id."`
}

// workerRequest names a worker.
type workerRequest struct {
	request
	Name string `path:"name" doc:"Node name." example:"celery@host"`
}

// tasks reads the query of a list of tasks.
func (r *request) tasks() (query.Tasks, error) {
	v, err := r.values()
	if err != nil {
		return query.Tasks{}, err
	}
	q, err := query.Parse(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return q, badParameter(wrong)
	}
	return q, err
}

// plain reports any parameter: the resource has none.
func (r *request) plain() error {
	v, err := r.values()
	if err != nil {
		return err
	}
	if names := slices.Sorted(maps.Keys(v)); len(names) > 0 {
		return badParameter(&query.Error{Param: names[0], Message: "is not a parameter of this resource"})
	}
	return nil
}

func (r *request) values() (url.Values, error) {
	v, err := url.ParseQuery(r.rawQuery)
	if err == nil {
		return v, nil
	}
	for pair := range strings.SplitSeq(r.rawQuery, "&") {
		if _, err := url.ParseQuery(pair); err != nil {
			name, _, _ := strings.Cut(pair, "=")
			return nil, badParameter(&query.Error{Param: name, Message: "is not URL-encoded"})
		}
	}
	return nil, problem(http.StatusBadRequest, "The query cannot be read: it has too many parameters.")
}
