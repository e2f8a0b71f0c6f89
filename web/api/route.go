package api

import (
	"cmp"
	"fmt"
	"math"
	"mime"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/web/auth"
)

// adapter registers operations on a router. It is the only way to an operation, so that none is without an action, and nobody
// gets to one who may not take it.
type adapter struct {
	*chi.Mux

	refuse func(w http.ResponseWriter, why *auth.Error)
	asOf   func(w http.ResponseWriter, r *http.Request, op *huma.Operation) // answers requests for an instant
}

// actionKey is that of an operation's metadata with its action.
const actionKey = "action"

// ownIDs are the patterns of IDs that Umbel assigns, by path.
func ownIDs() map[string]string {
	return map[string]string{"/commands/": "{id:[0-9]+}", "/failures/": "{id}", "/alerts/rules/": "{id}", "/views/": "{id}", "/marks/": "{id}"}
}

// Handle registers the operation, and HEAD with GET. A parameter at the end of a path matches the rest of it: task IDs and
// worker names may contain slashes that a proxy has unescaped.
func (a adapter) Handle(op *huma.Operation, h func(huma.Context)) {
	action, _ := op.Metadata[actionKey].(auth.Action)
	if !slices.Contains(auth.Actions(), action) {
		panic("operation " + op.OperationID + " has no known action") // before anything is served
	}
	pattern, rest := op.Path, ""
	if i := strings.LastIndex(pattern, "{"); strings.HasSuffix(pattern, "}") {
		if id, ok := ownIDs()[pattern[:i]]; ok {
			pattern = pattern[:i] + id
		} else {
			pattern, rest = pattern[:i]+"*", pattern[i+1:len(pattern)-1]
		}
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		if why := auth.Decide(r.Context(), action); why != nil {
			a.refuse(w, why)
			return
		}
		if rest != "" {
			r.SetPathValue(rest, chi.URLParam(r, "*"))
		}
		if op.Method == http.MethodGet && r.URL.Query().Has(paramAt) && op.OperationID != "suggest" && op.OperationID != exportTraceID { // at is a place in a text, or an end
			a.asOf(w, r, op)
			return
		}
		h(&statusContext{humaContext: humachi.NewContext(op, r, w)})
	}
	a.MethodFunc(op.Method, pattern, serve)
	if op.Method == http.MethodGet {
		a.Head(pattern, serve)
	}
}

// methods returns the methods of a resource for the Allow header.
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

// Statuses of problems.
const (
	notFound    = http.StatusNotFound
	conflict    = http.StatusConflict
	unavailable = http.StatusServiceUnavailable
)

// operation describes a GET that needs an action. Statuses are those of its problems, beside 400, 401, 406 and 500, which
// all operations have, and 403, which those have that not everybody may call.
func operation(h huma.API, action auth.Action, id, path, summary string, statuses ...int) huma.Operation {
	op := huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Responses: map[string]*huma.Response{},
		Metadata: map[string]any{actionKey: action}, Extensions: map[string]any{"x-role": string(action.Role()), "x-action": string(action)},
		MaxBodyBytes:    MaxBody + 1, // huma refuses a body of exactly this size
		BodyReadTimeout: -1,          // keep the server's: when huma's passes, net/http cancels a request that waits for replies
	}
	schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "")
	common := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotAcceptable, http.StatusInternalServerError}
	if !(auth.Audience{Role: auth.Viewer}).Allows(action) {
		common = append(common, http.StatusForbidden)
	}
	if lasting(id) {
		op.Parameters = append(op.Parameters, atParam())
	}
	for _, s := range append(statuses, common...) {
		op.Responses[strconv.Itoa(s)] = &huma.Response{
			Description: http.StatusText(s), Content: map[string]*huma.MediaType{problemType: {Schema: schema}},
		}
	}
	return op
}

// post describes a POST without a body.
func post(h huma.API, action auth.Action, id, path, summary string, statuses ...int) huma.Operation {
	op := operation(h, action, id, path, summary, statuses...)
	op.Method, op.DefaultStatus = http.MethodPost, http.StatusOK
	return op
}

// postBody describes a POST with a body.
func postBody(h huma.API, action auth.Action, id, path, summary string, statuses ...int) huma.Operation {
	return post(h, action, id, path, summary, append(statuses, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)...)
}

func (a *api) register(h huma.API) {
	a.registerTasks(h)
	a.registerExport(h)
	a.registerTrace(h)
	a.registerSuggest(h)
	a.registerSearch(h)
	a.registerViews(h)
	a.registerMarks(h)
	a.registerFailures(h)
	a.registerDuplicates(h)
	a.registerWorkflows(h)
	a.registerSchedules(h)
	a.registerExclude(h)
	a.registerSeries(h)
	a.registerTypes(h)
	a.registerPublish(h)
	a.registerBulk(h)
	a.registerDeadLetters(h)
	a.registerDismiss(h)
	a.registerResults(h)
	a.registerWorkers(h)
	a.registerControl(h)
	a.registerQueues(h)
	a.registerLocks(h)
	a.registerOutbox(h)
	a.registerAlerts(h)
	a.registerPeers(h)
	a.registerAppOutboxes(h)
	a.registerIdempotency(h)
	huma.Register(h, operation(h, auth.View, "get-overview", "/overview", "Get counts, rates and health"), a.overview)
	huma.Register(h, operation(h, auth.View, "get-status", "/status", "Say whether work is flowing, and why"), a.status)
	huma.Register(h, operation(h, auth.View, "get-openapi", "/openapi.json", "Get this OpenAPI document"), a.document)
}

// recovered responds with 500 if a handler panics, and forbids caching.
func (a *api) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.recover(w, r)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// recover must be deferred directly.
func (a *api) recover(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		panic(v)
	}
	a.logger.ErrorContext(r.Context(), "api handler panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	problem(http.StatusInternalServerError, "The request failed; see Umbel's log.").write(w)
}

// refuse responds to a request of one who may not take the action of an operation.
func (a *api) refuse(w http.ResponseWriter, why *auth.Error) {
	if a.challenge != nil && why.Status == http.StatusUnauthorized {
		a.challenge(w)
	}
	if why.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(why.RetryAfter.Seconds()))))
	}
	problem(why.Status, why.Message).write(w)
}

// byPayload leaves requests of those who may not see payloads to hidden, unless that is nil.
func byPayload(hidden http.Handler) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if g := auth.FromContext(r.Context()); hidden != nil && !g.Payload {
				hidden.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// signedIn keeps those out who are not signed in: they learn nothing of what exists.
func (a *api) signedIn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if why := auth.Decide(r.Context(), auth.View); why != nil {
			a.refuse(w, why)
			return
		}
		next(w, r)
	}
}

// negotiated responds with 406 to clients that do not accept JSON, except for exports, which have a format parameter. huma
// negotiates only after the operation has run, and does not support media ranges.
func negotiated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		export := strings.HasSuffix(r.URL.Path, "/tasks/export") || strings.HasSuffix(r.URL.Path, "/audit/export") || strings.HasSuffix(r.URL.Path, "/trace")
		if accept := strings.Join(r.Header.Values("Accept"), ","); !export && accept != "" && !takesJSON(accept) {
			problem(http.StatusNotAcceptable, "Only application/json is available.").write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func takesJSON(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || !slices.Contains([]string{"application/json", problemType, "application/*", "*/*"}, kind) {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
			return true
		}
	}
	return false
}
