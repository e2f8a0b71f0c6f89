package api

import (
	"cmp"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/web/query"
)

// adapter registers operations on a router.
type adapter struct{ *chi.Mux }

// own are the resources that Umbel names itself, by patterns of their ids.
func own() map[string]string {
	return map[string]string{"/commands/": "{id:[0-9]+}", "/failures/": "{id}", "/views/": "{id}"}
}

// Handle registers the operation, one for GET for HEAD too. A parameter at the end of its path takes the
// whole rest, since names that others gave may hold slashes that a proxy has unescaped.
func (a adapter) Handle(op *huma.Operation, h func(huma.Context)) {
	pattern, rest := op.Path, ""
	if i := strings.LastIndex(pattern, "{"); strings.HasSuffix(pattern, "}") {
		if id, ok := own()[pattern[:i]]; ok {
			pattern = pattern[:i] + id
		} else {
			pattern, rest = pattern[:i]+"*", pattern[i+1:len(pattern)-1]
		}
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		if rest != "" {
			r.SetPathValue(rest, chi.URLParam(r, "*"))
		}
		h(humachi.NewContext(op, r, w))
	}
	a.MethodFunc(op.Method, pattern, serve)
	if op.Method == http.MethodGet {
		a.Head(pattern, serve)
	}
}

// methods are those that the resource of a request has, as the header Allow lists them.
func (a adapter) methods(r *http.Request) string {
	path := cmp.Or(chi.RouteContext(r.Context()).RoutePath, r.URL.RawPath, r.URL.Path)
	var list []string
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if a.Match(chi.NewRouteContext(), m, path) {
			list = append(list, m)
		}
	}
	return strings.Join(list, ", ")
}

func (a *api) register(h huma.API) {
	problems := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	operation := func(id, path, summary string, statuses ...int) huma.Operation {
		op := huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
			SkipValidateParams: true, // query.Parse does it
			Responses:          map[string]*huma.Response{},
		}
		for _, s := range append(statuses, http.StatusNotAcceptable, http.StatusInternalServerError) {
			op.Responses[strconv.Itoa(s)] = &huma.Response{
				Description: http.StatusText(s),
				Content:     map[string]*huma.MediaType{problemType: {Schema: problems}},
			}
		}
		return op
	}
	const bad, missing, away = http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable
	list := operation("list-tasks", "/tasks", "Tasks, newest change first", bad, away)
	list.Parameters = taskParams()
	huma.Register(h, list, a.tasks)
	huma.Register(h, operation("get-task", "/tasks/{id}", "One task", bad, missing, away), a.task)
	huma.Register(h, operation("list-task-events", "/tasks/{id}/events",
		"Events of a task in causal order", bad, missing, away), a.taskEvents)
	a.registerExport(h, operation)
	a.registerSuggest(h, operation)
	a.registerViews(h, operation)
	a.registerFailures(h, operation)
	a.registerSeries(h, operation)
	a.registerPublish(h, operation)
	a.registerBulk(h, operation)
	a.registerDismiss(h, operation)
	a.registerResults(h, operation)
	huma.Register(h, operation("list-workers", "/workers", "Workers by name", bad), a.workers)
	huma.Register(h, operation("get-worker", "/workers/{name}", "One worker", bad, missing), a.worker)
	a.registerControl(h, operation)
	a.registerQueues(h, operation)
	a.registerOutbox(h, operation)
	huma.Register(h, operation("get-overview", "/overview", "Counts, rates and health", bad), a.overview)
	huma.Register(h, operation("get-openapi", "/openapi.json", "This description, as OpenAPI 3.1"), a.document)
}

// taskParams describes what query.Parse reads.
func taskParams() []*huma.Param {
	one := func(name, doc string, s huma.Schema) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: &s}
	}
	many := func(name, doc string, item huma.Schema) *huma.Param {
		return &huma.Param{
			Name: name, In: "query", Description: doc, Explode: new(true),
			Schema: &huma.Schema{Type: huma.TypeArray, Items: &item, MaxItems: new(query.MaxValues)},
		}
	}
	text := huma.Schema{Type: huma.TypeString}
	return []*huma.Param{
		one("q", "What to look for, in the query language of docs/query.md.", huma.Schema{
			Type: huma.TypeString, MaxLength: new(query.MaxText), Examples: []any{"state:failure name:billing.* run:>2s"},
		}),
		many("state", "Any of these states, in any case; may also be separated by commas.",
			huma.Schema{Type: huma.TypeString, Examples: []any{"FAILURE"}}),
		many("name", "Any of these task names, exactly.", text),
		many("worker", "Any of these worker node names, exactly.", text),
		one("root", "Id of the first task of a workflow.", text),
		one("sort", "Field to sort by, with - before it for the greatest first; the newest change first if absent. "+
			"Tasks without the field are left out.", huma.Schema{Type: huma.TypeString, Examples: []any{"-run"}}),
		one("cols", "Columns of tables, separated by commas; lists of tasks have all fields.",
			huma.Schema{Type: huma.TypeString, Examples: []any{"state,name,exc"}}),
		one("chart", "The chart above tables: what it shows, how far back, told apart by what; off if it is hidden.",
			huma.Schema{Type: huma.TypeString, Examples: []any{"7d,run,worker"}}),
		one("limit", "Most tasks to return.", huma.Schema{
			Type: huma.TypeInteger, Default: query.DefaultLimit,
			Minimum: new(1.0), Maximum: new(float64(query.MaxLimit)),
		}),
		one("cursor", "Where to continue: next or prev of an earlier answer.", text),
	}
}
