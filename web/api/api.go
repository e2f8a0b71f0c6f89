// Package api serves the JSON API under /api/v1 and its OpenAPI document. Requests that act on the cluster go to the
// command service. It authenticates nobody, takes the auth.Grant that the context of a
// request carries, and forbids caching.
package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency/audit"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/fair"
)

// Backend is what the API reads.
type Backend interface {
	// View calls f with the cluster under a read lock.
	View(f func(c state.View))
	Health() view.Health
	Rates() view.Rates
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Task(ctx context.Context, id string) (state.Task, error)
	TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error)
	Count(ctx context.Context, q query.Query) (history.Count, error)
	Duplicates(ctx context.Context, r history.DuplicateRequest) (view.DuplicatePage, error)
	DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (view.DuplicateGroup, error)
	Workflow(ctx context.Context, root string) (workflow.Workflow, error)
	Workflows(ctx context.Context, r history.WorkflowRequest) (history.WorkflowPage, error)
	History() view.History
}

// readTimeout bounds reads of the history.
const readTimeout = 5 * time.Second

// Options of the API. Backend is required.
type Options struct {
	Backend Backend
	// Commands, Alerts, AppOutboxes, BeatTables, Peers and ReadOnly are as in web.Options.
	Commands    *command.Service
	Alerts      *evaluate.Service
	AppOutboxes *outboxwatch.Watcher
	BeatTables  *beat.Watcher
	Peers       *peers.Peers
	ReadOnly    bool
	// Hidden is read in place of Backend for those who may not see payloads, and hides them. Nil lets all see them.
	Hidden Backend
	// Past reads an instant, without payloads if hides; nil leaves times past out.
	Past func(ctx context.Context, at time.Time, hides bool) (Backend, error)
	// Pasts reads an instant with all that is kept of it, for traces; nil leaves traces out.
	Pasts func(ctx context.Context, at time.Time) (*view.Past, error)
	// AuditLog and Redactor are as in web.Options.
	AuditLog history.AuditLog
	Redactor *redact.Redactor
	// Flow says whether work flows; nil makes a new reader of Backend.
	Flow *flow.Reader
	// Audit audits the settings of workers, which Commands inspects; nil reads a new audit for each request.
	Audit func(ctx context.Context) audit.Report

	Challenge func(w http.ResponseWriter) // adds how to sign in to a response with status 401; may be nil

	Prefix  string           // URL path under which the host serves Umbel, such as /ops/celery; may be empty
	Version string           // Umbel's version, for the OpenAPI document
	Now     func() time.Time // nil means time.Now
	Logger  *slog.Logger     // nil discards

	traces *fair.Slots // of New
	at     time.Time   // instant as of which to answer, zero is now
	then   *view.Past  // at that instant
}

// api handles requests. It is safe for concurrent use.
type api struct {
	backend  Backend
	commands *command.Service  // nil if there are none
	at       time.Time         // instant as of which to answer, zero is now
	then     *view.Past        // at that instant
	alerts   *evaluate.Service // nil if there are none
	// appOutboxes are the outboxes of applications, nil if none is watched.
	appOutboxes *outboxwatch.Watcher
	beatTables  *beat.Watcher // nil if no tables of django-celery-beat are read
	peers       *peers.Peers  // nil if read-only
	readOnly    bool
	hides       bool                                                                 // payloads
	past        func(ctx context.Context, at time.Time, hides bool) (Backend, error) // nil if it cannot be read
	pasts       func(ctx context.Context, at time.Time) (*view.Past, error)          // likewise
	traces      *fair.Slots
	auditLog    history.AuditLog // nil records nothing
	redactor    *redact.Redactor
	flow        *flow.Reader
	settings    func(ctx context.Context) audit.Report
	challenge   func(w http.ResponseWriter)
	prefix      string // without a slash at its end
	version     string
	now         func() time.Time
	logger      *slog.Logger
	openAPI     func() json.RawMessage
}

// New returns a handler of the resources by their paths below {prefix}/api/v1: mount it there or strip that prefix.
func New(o Options) http.Handler {
	o.traces = fair.New(1)
	if o.Hidden == nil {
		return o.serve(false, nil)
	}
	hidden := o
	hidden.Backend, hidden.Hidden = o.Hidden, nil
	return o.serve(false, hidden.serve(true, nil))
}

// serve returns the handler for those who may see payloads, and leaves others to hidden, or, with hides, that one.
func (o Options) serve(hides bool, hidden http.Handler) http.Handler {
	a := &api{
		backend: o.Backend, commands: o.Commands, alerts: o.Alerts, appOutboxes: o.AppOutboxes, beatTables: o.BeatTables, readOnly: o.ReadOnly, settings: o.Audit, peers: o.Peers,
		challenge: o.Challenge, prefix: strings.TrimRight(o.Prefix, "/"), now: o.Now, logger: o.Logger,
		hides: hides, past: o.Past, pasts: o.Pasts, traces: o.traces, at: o.at, then: o.then, version: o.Version, auditLog: o.AuditLog, redactor: o.Redactor, flow: o.Flow,
	}
	if a.redactor == nil {
		a.redactor = redact.Default()
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.flow == nil {
		a.flow = flow.NewReader(a.backend, a.queueWatcher(), a.appOutboxes, a.now)
	}
	if a.settings == nil && o.Commands != nil {
		a.settings = a.newAudit
	}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	mux := chi.NewMux()
	mux.Use(byPayload(hidden), a.recovered, negotiated)
	guarded := adapter{mux, a.refuse, a.asOf}
	mux.NotFound(a.signedIn(func(w http.ResponseWriter, _ *http.Request) {
		problem(http.StatusNotFound, "No such resource; openapi.json lists all resources.").write(w)
	}))
	mux.MethodNotAllowed(a.signedIn(func(w http.ResponseWriter, r *http.Request) {
		allowed := guarded.methods(r)
		w.Header().Set("Allow", allowed)
		problem(http.StatusMethodNotAllowed, "This resource supports only "+allowed+".").write(w)
	}))
	h := huma.NewAPI(config(o), guarded)
	h.UseMiddleware(strictQuery(h))
	a.register(h)
	completeSchemas(h.OpenAPI().Components.Schemas)
	a.openAPI = sync.OnceValue(func() json.RawMessage {
		document, err := json.Marshal(h.OpenAPI())
		if err != nil {
			panic(err) // made of our own types alone
		}
		return document
	})
	return mux
}

func config(o Options) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[Problem]())
	format := huma.Format{Marshal: marshal, Unmarshal: unmarshal}
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			Info: &huma.Info{
				Title:   "Umbel",
				Version: o.Version,
				Description: "Monitor and control a Celery cluster. Null means unknown. Times are RFC 3339 in UTC " +
					"with microseconds; integers beyond ±2^53 are strings.",
			},
			Servers: []*huma.Server{{URL: strings.TrimRight(o.Prefix, "/") + "/api/v1"}},
			Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token":   {Type: "http", Scheme: "bearer", Description: "An API token."},
				"session": {Type: "apiKey", In: "cookie", Name: "umbel_session", Description: "The session of a browser."},
				"basic":   {Type: "http", Scheme: "basic", Description: "A user and a password."},
			}},
			Security: []map[string][]string{{"token": {}}, {"session": {}}, {"basic": {}}, {}},
		},
		// "json" is for types that end in +json.
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",

		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{problems},
	}
	c.AllowAdditionalPropertiesByDefault = true // so that a new field breaks no strict client
	return c
}

// response has a body and no headers.
type response[T any] struct{ Body T }

func (a *api) document(context.Context, *struct{}) (*response[json.RawMessage], error) {
	return &response[json.RawMessage]{Body: a.openAPI()}, nil
}
