package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/query"
)

const paramAt = "at"

// lasting reports whether an operation can answer as of an instant.
func lasting(id string) bool {
	return slices.Contains([]string{
		"list-tasks", "get-task", "list-task-events", "export-tasks", "list-workers", "get-worker", "get-overview", "get-series",
		"list-alerts", "list-workflows", "get-workflow", "export-workflow", "list-failures", "get-failure", "list-queues", "get-queue",
		"list-duplicates", "get-duplicate", "list-schedules", "list-task-types", "get-task-type", "list-marks",
	}, id)
}

// onlyNow says, in a sentence, why an instant does not apply to the other operations that read.
func onlyNow(id string) string {
	for why, ids := range map[string][]string{
		"Workers are inspected as they are now.":                    {"inspect-worker", "get-topology", "audit-idempotency"},
		"Results are read from the result backend as they are now.": {"get-result"},
		"Locks are read from Redis as they are now.":                {"list-locks", "get-lock"},
		"The tables of an application are read as they are now.": {
			"list-app-outboxes", "list-app-outbox-rows", "list-dead-letters", "get-task-outbox",
		},
		"A command is kept as it is now, with when it was created, sent and answered.": {"list-commands", "get-command", "get-outbox"},
		"Each record of the audit log has its time, and none changes.":                 {"list-audit", "export-audit"},
		"Views, rules and excluded fields are kept as they are now.": {
			"list-views", "get-view", "list-alert-rules", "list-alert-receivers", "list-duplicate-rules",
		},
		"Whether work flows is judged by what is polled now; get-overview and get-series answer as of an instant.": {"get-status"},
		"A retry is of the task as it is now.":                {"get-retry"},
		"Searches and suggestions are for what is there now.": {"search", "suggest"},
		"This describes Umbel as it runs.":                    {"list-peers", "list-methods", "get-openapi"},
	} {
		if slices.Contains(ids, id) {
			return why
		}
	}
	return ""
}

// atParam describes the parameter of operations that can answer as of an instant.
func atParam() *huma.Param {
	return &huma.Param{
		Name: paramAt, In: "query", Example: "2026-09-21T14:03:22.120000Z", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "Instant as of which to answer, by when Umbel received events: a time, or the seconds since 1970 UTC.",
	}
}

// asOf answers a request for an instant.
func (a *api) asOf(w http.ResponseWriter, r *http.Request, op *huma.Operation) {
	q := r.URL.Query()
	given := q[paramAt]
	switch {
	case !lasting(op.OperationID) || a.past == nil:
		problem(http.StatusBadRequest, strings.TrimSpace(onlyNow(op.OperationID)+" Leave out at.")).write(w)
		return
	case len(given) > 1:
		problem(http.StatusBadRequest, "at may be given only once.").write(w)
		return
	}
	at, err := query.ParseInstant(given[0], a.now())
	if err != nil {
		problem(http.StatusBadRequest, strings.ToUpper(err.Error()[:1])+err.Error()[1:]+".").write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	var then *view.Past
	backend, err := a.past(ctx, at, a.hides)
	if err == nil {
		then, err = a.pasts(ctx, at) // which is cached
	}
	switch {
	case errors.Is(err, view.ErrFuture):
		problem(http.StatusBadRequest, "At is in the future.").write(w)
		return
	case errors.Is(err, fair.ErrBusy):
		w.Header().Set("Retry-After", "5")
		problem(http.StatusServiceUnavailable, "Your earlier searches are still running.").write(w)
		return
	case err != nil:
		a.logger.ErrorContext(r.Context(), "read past", "error", err)
		problem(http.StatusServiceUnavailable, "The history is unavailable.").write(w)
		return
	}
	o := Options{
		Backend: backend, then: then, Alerts: a.alerts, at: at, ReadOnly: true, Prefix: a.prefix, Now: func() time.Time { return at }, Logger: a.logger, Challenge: a.challenge,
		AuditLog: a.auditLog, Redactor: a.redactor,
	}
	q.Del(paramAt)
	again := r.Clone(context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil)))
	again.URL = &url.URL{Path: strings.TrimPrefix(r.URL.Path, "/api/v1"), RawPath: strings.TrimPrefix(r.URL.RawPath, "/api/v1"), RawQuery: q.Encode()}
	o.serve(a.hides, nil).ServeHTTP(w, again)
}
