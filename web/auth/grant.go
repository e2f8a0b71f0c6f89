// Package auth says who makes a request and what they may do: an Authenticator finds the Grant of a request, every route
// states the Action that it needs, and only a Grant that allows the action gets there.
package auth

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// Action is what a route does.
type Action string

// The actions. Routes that change something have one that no viewer may take.
const (
	Open Action = "open" // anybody, signed in or not: health, assets, signing in
	View Action = "view" // read everything but payloads, the audit log and tokens

	ReadPayload      Action = "payload.read"      // read payloads, and what tells of them: locks, groups of duplicates
	Export           Action = "export"            // take many tasks at once, as CSV or JSONL
	SaveView         Action = "view.save"         // save and delete views, which all users share
	SetMark          Action = "mark.set"          // add and delete marks of deploys
	ResolveFailure   Action = "failure.resolve"   // resolve, reopen, note and assign groups of failures
	DismissTask      Action = "task.dismiss"      // dismiss lost tasks
	RetryTask        Action = "task.retry"        // publish tasks again with the arguments they had
	RevokeTask       Action = "task.revoke"       // revoke and terminate tasks
	PublishTask      Action = "task.publish"      // publish tasks with arguments of one's own
	CallTask         Action = "task.call"         // publish tasks and get their results
	EditRule         Action = "rule.edit"         // change which arguments make two calls one
	ControlWorker    Action = "worker.control"    // pools, consumers, limits and times
	ForgetWorker     Action = "worker.forget"     // remove offline workers
	ChangeOutbox     Action = "outbox.change"     // requeue, cancel and discard commands and dead letters, Umbel's and applications'
	AcknowledgeAlert Action = "alert.acknowledge" // acknowledge alerts and mute their rules

	EditAlert      Action = "alert.edit"      // change rules of alerts, and test who is told
	ShutDownWorker Action = "worker.shutdown" // shut workers down and restart their pools
	PurgeQueue     Action = "queue.purge"     // delete messages
	ReleaseLock    Action = "lock.release"    // release locks of tasks that run once
	ReadAudit      Action = "audit.read"      // read and export the audit log
	ManageTokens   Action = "token.manage"    // make and revoke API tokens of others
)

// Role is a set of actions.
type Role string

// The roles, each with all actions of those before it.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

//nolint:gochecknoglobals // constants
var (
	viewerActions   = []Action{Open, View, ReadPayload, Export}
	operatorActions = []Action{
		SaveView, SetMark, ResolveFailure, DismissTask, RetryTask, RevokeTask, PublishTask, CallTask, EditRule, ControlWorker, ForgetWorker, ChangeOutbox,
		AcknowledgeAlert,
	}
	adminActions = []Action{EditAlert, ShutDownWorker, PurgeQueue, ReleaseLock, ReadAudit, ManageTokens}
)

// Allows reports whether a role contains an action. An unknown role contains none but Open.
func (r Role) Allows(a Action) bool {
	switch r {
	case NoRole:
	case Admin:
		return slices.Contains(Actions(), a)
	case Operator:
		return slices.Contains(viewerActions, a) || slices.Contains(operatorActions, a)
	case Viewer:
		return slices.Contains(viewerActions, a)
	}
	return a == Open
}

// Audience is what pages are drawn for: users of one audience see the same.
type Audience struct {
	Role Role // empty for those who are not signed in
	// Payload is whether arguments, results, exceptions and tracebacks of tasks, and messages of queues, may be seen.
	Payload bool
	// Clusters are those that the overview of several shows, separated by commas; empty on all other pages.
	Clusters string
}

// Allows reports whether an audience may take an action: its role must contain it, and some actions show payloads.
func (a Audience) Allows(action Action) bool {
	return a.Role.Allows(action) && (a.Payload || !action.showsPayload())
}

// showsPayload reports whether an action cannot be taken without seeing payloads.
func (a Action) showsPayload() bool {
	return a == ReadPayload || a == CallTask || a == ReleaseLock || a == EditRule
}

// Withheld returns the error for what those may not see who may not see payloads.
func Withheld() *Error {
	return &Error{Status: http.StatusForbidden, Message: "You may not see arguments, results and messages of tasks."}
}

// Everything is the audience that may see and do everything.
var Everything = Audience{Role: Admin, Payload: true} //nolint:gochecknoglobals // a constant

// Grant is who makes a request, and what they may see and do.
type Grant struct {
	User   string // name or e-mail address, at most 256 bytes; empty if nobody said
	Method string // how the user was identified: none, basic, oidc, github, proxy, token or host
	// Address is where the request was made, on the other side of trusted proxies; empty if the Authenticator does not say.
	Address string
	// Until is when the session or token ends by itself, zero if it does not.
	Until time.Time
	// Clusters are the names of those that the user may see, where there are several. Audience is that in one of them, or else what the
	// user may see and do in any.
	Clusters []string
	Audience
	everywhere Role // that the user has in all clusters
}

// Authenticator finds the grant of a request. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the grant of a request. One without a role means that nobody is signed in. The error says in one
	// sentence for the client why credentials were refused; it may be an *Error.
	Authenticate(r *http.Request) (Grant, error)
}

// Ender is an Authenticator that tells when credentials have ended, so that what is open with them can be closed.
type Ender interface {
	Authenticator
	// Ended returns a channel that is closed once sessions, tokens or passwords have ended. Whoever waits authenticates again.
	Ended() <-chan struct{}
}

// Error is why credentials are refused.
type Error struct {
	Status     int           // of the response: 400, 401, 403, 429 or 503
	Message    string        // a sentence for the client
	RetryAfter time.Duration // for the header Retry-After, 0 for none
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Challenger is an Authenticator that says how those who are not signed in may sign in.
type Challenger interface {
	Authenticator
	// SignInPath is the path below the prefix that browsers are led to, with ?next= and the path and query to come back to; empty
	// if there is none.
	SignInPath() string
	// Challenge is the value of WWW-Authenticate for other clients, empty if they have no way.
	Challenge() string
}

type contextKey struct{}

// NewContext returns a context that carries g.
func NewContext(ctx context.Context, g Grant) context.Context {
	return context.WithValue(ctx, contextKey{}, g)
}

// FromContext returns the grant that ctx carries, one without a role if there is none.
func FromContext(ctx context.Context) Grant {
	g, _ := ctx.Value(contextKey{}).(Grant)
	return g
}
