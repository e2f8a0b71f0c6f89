package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Route is what is served at an address, and the action that it needs.
type Route struct {
	Method  string
	Pattern string // of chi, below the prefix
	Action  Action
	Handler http.Handler
	// Refuse responds to those who may not take the action. Nil leads to the page where people sign in, or shows a page with the
	// message.
	Refuse Refuse
}

// Refuse responds to a request that is refused, with the status and the message of the error: 401 if nobody is signed in, 403
// if the role does not suffice. Headers that go with them are set before.
type Refuse func(w http.ResponseWriter, r *http.Request, why *Error)

// Check returns an error if the route lacks a method, a pattern, a handler or a known action.
func (rt Route) Check() error {
	switch {
	case rt.Method == "" || rt.Pattern == "" || rt.Pattern[0] != '/' || rt.Handler == nil:
		return fmt.Errorf("the route %s %s is not complete", rt.Method, rt.Pattern)
	case !slices.Contains(Actions(), rt.Action):
		return fmt.Errorf("the route %s %s has no known action: %q", rt.Method, rt.Pattern, rt.Action)
	}
	return nil
}

// Actions returns all actions, those that fewer may take last.
func Actions() []Action {
	return slices.Concat(viewerActions, operatorActions, adminActions)
}

// Role returns the least role that allows an action, none for Open.
func (a Action) Role() Role {
	for _, r := range []Role{"", Viewer, Operator} {
		if r.Allows(a) {
			return r
		}
	}
	return Admin
}

// refusedKey is that of why credentials were refused.
type refusedKey struct{}

// Refused returns a context that carries nobody's grant, and why their credentials were refused.
func Refused(ctx context.Context, err error) context.Context {
	return context.WithValue(NewContext(ctx, Grant{Address: FromContext(ctx).Address}), refusedKey{}, err)
}

// Decide returns nil if the context of a request carries a grant that allows an action. Otherwise it returns what to respond:
// 401 if nobody is signed in, or what the Authenticator says of credentials that it refuses, and 403 if the role does not
// suffice.
func Decide(ctx context.Context, a Action) *Error {
	g := FromContext(ctx)
	switch {
	case g.Allows(a):
		return nil
	case g.Role.Allows(a):
		return Withheld()
	}
	if g.Role != "" {
		return &Error{Status: http.StatusForbidden, Message: fmt.Sprintf("This needs the role %s; yours is %s.", a.Role(), g.Role)}
	}
	err, _ := ctx.Value(refusedKey{}).(error)
	if why, ok := errors.AsType[*Error](err); ok {
		return why
	}
	if err != nil {
		return &Error{Status: http.StatusUnauthorized, Message: err.Error()}
	}
	return &Error{Status: http.StatusUnauthorized, Message: "Sign in first."}
}

// ControlAction is the action of a remote control command: stopping workers takes more than tuning them.
func ControlAction(method string) Action {
	if method == "shutdown" || method == "pool_restart" || method == "drain" {
		return ShutDownWorker
	}
	return ControlWorker
}
