// Package flower serves the HTTP API of Flower 2.2 (https://flower.readthedocs.io), so that scripts written for Flower
// work with Umbel: the same paths, parameters, status codes and JSON, over the tasks, workers and commands of Umbel.
// What differs on purpose is in docs/flower.md.
//
// A request is answered so: New lists the routes with the action that each needs; serve parses the arguments and calls the
// handler of the route, in the file named after its resource; the handler returns a value, which serve writes as Python
// would, or a failure, which it writes as Flower would.
package flower

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
)

// Backend is what is read.
type Backend interface {
	// View calls f with the cluster under a read lock.
	View(f func(c state.View))
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
	Health() view.Health
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Task(ctx context.Context, id string) (state.Task, error)
	Count(ctx context.Context, q query.Query) (history.Count, error)
}

// Settings are the options of Flower that its API follows.
type Settings struct {
	// Unauthenticated opens the paths under /api/ where nothing authenticates requests: FLOWER_UNAUTHENTICATED_API.
	Unauthenticated bool
	// PurgeOffline leaves workers out of /workers?json=1 that are offline and were last heard of that long ago, nil none:
	// FLOWER_PURGE_OFFLINE_WORKERS.
	PurgeOffline *time.Duration
	// InspectTimeout is how long workers have to reply, 1 s if less, as in Celery: FLOWER_INSPECT_TIMEOUT.
	InspectTimeout time.Duration
	// Location is the time zone of received_start and the like; nil means time.Local.
	Location *time.Location
}

// Options of an API. Backend is required.
type Options struct {
	Backend Backend
	// Commands inspects workers and queues, and sends what changes them. Nil leaves that unknown; a read-only service only
	// inspects.
	Commands *command.Service
	ReadOnly bool
	Settings
	// Authenticated says that requests are authenticated before they get here. If they are not, every path under /api/
	// answers 401, as in Flower, unless Settings.Unauthenticated.
	Authenticated bool
	// Events returns how many events of each type, such as task-received, each worker has sent since Umbel started; nil if they
	// are not counted.
	Events func() map[string]map[string]uint64
	// Identify returns the user who makes a request, for the audit log; nil leaves it unknown.
	Identify func(r *http.Request) string
	Now      func() time.Time // nil means time.Now
	Logger   *slog.Logger     // nil discards
}

// API answers requests. It is safe for concurrent use.
type API struct {
	Options

	inspections *inspections
	routes      []auth.Route
	waiting     chan struct{} // holds a token for each request that waits for a result
}

// New validates o and starts nothing.
func New(o Options) (*API, error) {
	if o.Backend == nil {
		return nil, errors.New("flower needs a backend")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Location = cmp.Or(o.Location, time.Local) //nolint:gosmopolitan // as Flower reads them
	o.InspectTimeout = max(o.InspectTimeout, time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &API{Options: o, waiting: make(chan struct{}, maxWaiting)}
	a.inspections = newInspections(a)
	a.readRoutes()
	a.controlRoutes()
	a.publishRoutes()
	a.resultRoutes()
	a.optionsRoutes()
	return a, nil
}

// Routes returns the routes below the prefix, each with the action that it needs.
func (a *API) Routes() []auth.Route { return a.routes }

// readRoutes adds what reads.
func (a *API) readRoutes() {
	a.add(http.MethodGet, "/healthcheck", auth.Open, func(*request) (any, error) { return text("OK"), nil })
	a.workerRoutes()
	a.queueRoutes()
	a.listRoutes()
	a.taskRoutes()
}

// optionsRoutes adds OPTIONS to every path. As in Flower, credentials are not asked for. There are no headers for requests of
// other origins.
func (a *API) optionsRoutes() {
	done := make(map[string]bool)
	for _, rt := range a.routes {
		if !done[rt.Pattern] {
			done[rt.Pattern] = true
			a.add(http.MethodOptions, rt.Pattern, auth.Open, func(*request) (any, error) { return nothing{}, nil })
		}
	}
}

// handler answers a request with a value that body can write, or with an error: a *failure, or one that becomes 500.
type handler func(r *request) (any, error)

// add adds a route.
func (a *API) add(method, pattern string, action auth.Action, h handler) {
	a.routes = append(a.routes, auth.Route{Method: method, Pattern: pattern, Action: action, Handler: a.serve(pattern, h)})
}

// serve answers with what h returns.
func (a *API) serve(pattern string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, header: w.Header(), name: strings.TrimPrefix(hr.URL.Path, strings.TrimSuffix(pattern, "*"))}
		value, err := a.answer(r, h) //nolint:contextcheck // r carries it
		if err != nil {
			a.fail(w, hr, err)
			return
		}
		a.write(w, hr, value)
	})
}

// answer passes the gates and calls h.
func (a *API) answer(r *request, h handler) (any, error) {
	if !a.Unauthenticated && !a.authenticated(r.Context()) && strings.HasPrefix(r.URL.Path, "/api/") {
		return nil, &failure{http.StatusUnauthorized, lockedText}
	}
	var err error
	if r.arguments, err = parseArguments(r.Request); err != nil {
		return nil, err
	}
	return h(r)
}

// authenticated reports whether a request was authenticated: an Authenticator that lets anybody in says so.
func (a *API) authenticated(ctx context.Context) bool {
	return a.Authenticated && auth.FromContext(ctx).Method != "none"
}

// lockedText is what Flower says without authentication.
const lockedText = "FLOWER_UNAUTHENTICATED_API environment variable is required to enable API without authentication"

// request is a request with what handlers ask of it.
type request struct {
	*http.Request
	arguments

	name   string      // what the * of the pattern stands for, decoded
	header http.Header // of the response
}
