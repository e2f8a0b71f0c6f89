package flower

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
)

const (
	// sendTimeout is how long a command may wait to be sent. It expires then, so that nothing is sent of which a client was
	// told that it was not.
	sendTimeout = 5 * time.Second
	// expiryGrace is how much longer a client waits for a command that may be in flight when it expires.
	expiryGrace = 500 * time.Millisecond
)

// Texts of Flower.
const (
	readOnlyText    = "Read only mode is enabled"
	unavailableText = "Broker or result backend unavailable"
	noReasonText    = "Unknown reason"
)

func errUnavailable() error { return &failure{http.StatusServiceUnavailable, unavailableText} }

// errNoPath is the failure of a path with nothing for its *.
func errNoPath() error { return &failure{http.StatusNotFound, ""} }

// post adds a route that changes something. It is refused if nothing may change.
func (a *API) post(pattern string, action auth.Action, h handler) {
	a.add(http.MethodPost, pattern, action, func(r *request) (any, error) {
		switch {
		case r.name == "":
			return nil, errNoPath()
		case a.ReadOnly:
			return nil, &failure{http.StatusForbidden, readOnlyText}
		}
		return h(r)
	})
}

// service returns the command service, or why nothing can be sent.
func (a *API) service() (*command.Service, error) {
	if a.Commands == nil || a.Commands.Relay == nil || !a.Commands.Client.Connected() {
		return nil, errUnavailable()
	}
	return a.Commands, nil
}

// caller identifies who makes a request.
func (a *API) caller(r *request) command.Caller {
	grant := auth.FromContext(r.Context())
	by := command.Caller{
		Actor: grant.User, Method: grant.Method, Role: string(grant.Role),
		Endpoint: "Flower API " + r.Method + " " + shorten(r.URL.Path), RemoteAddr: auth.RemoteAddr(r.Request),
	}
	return by
}

// shorten keeps an audit record small.
func shorten(path string) string {
	const most = 300
	if len(path) > most {
		return path[:most] + "…"
	}
	return path
}

// checkWorker returns the failure of a worker that is not known.
func (a *API) checkWorker(name string) error {
	var known bool
	a.Backend.View(func(c state.View) { _, known = c.Worker(name) })
	if !known {
		return unknownWorker(name)
	}
	return nil
}

// checkTask returns the failure of a task that no worker has registered.
func (a *API) checkTask(ctx context.Context, name string) error {
	if a.Commands != nil {
		inspector := a.Commands.Inspector
		if len(inspector.PeekTopology().Tasks[name]) > 0 || len(inspector.Topology(ctx).Tasks[name]) > 0 {
			return nil
		}
	}
	if _, err := a.service(); err != nil {
		return err
	}
	return &failure{http.StatusNotFound, "Unknown task '" + name + "'"}
}

// control is a remote control command for one worker.
type control struct {
	worker    string
	method    string
	arguments map[string]any
	done      string // text of success; empty, it is what the worker says
	// failed and end are the text before and behind the reason of a refusal.
	failed, end string
}

// control sends a command and answers with what the worker says of it.
func (a *API) control(r *request, c control) (any, error) {
	service, err := a.service()
	if err != nil {
		return nil, err
	}
	receipt, err := service.Control(r.Context(), a.caller(r), command.ControlRequest{
		Method: c.method, Arguments: c.arguments, Workers: []string{c.worker}, Expires: sendTimeout, NoWarnings: true,
	})
	if wrong, ok := errors.AsType[*command.Error](err); ok { // what a worker would refuse, or should
		return nil, c.refused(wrong.Message)
	}
	if err != nil {
		return nil, err
	}
	sent, err := a.follow(r.Context(), receipt.Commands[0].ID, a.InspectTimeout)
	if err != nil {
		return nil, err
	}
	if len(sent.Replies) == 0 {
		return nil, c.refused(noReasonText)
	}
	if reply := sent.Replies[0]; !reply.OK {
		return nil, c.refused(reply.Text)
	}
	return message(cmp.Or(c.done, sent.Replies[0].Text)), nil
}

func (c control) refused(reason string) error {
	return &refusal{failure{http.StatusForbidden, c.failed + reason + c.end}}
}

// broadcast sends a command and waits for no reply. It goes to every worker if none is named.
func (a *API) broadcast(r *request, method string, arguments map[string]any, workers ...string) error {
	service, err := a.service()
	if err != nil {
		return err
	}
	receipt, err := service.Control(r.Context(), a.caller(r), command.ControlRequest{
		Method: method, Arguments: arguments, Workers: workers, Expires: sendTimeout, NoWarnings: true,
	})
	if wrong, ok := errors.AsType[*command.Error](err); ok {
		return &failure{http.StatusBadRequest, wrong.Message}
	}
	if err != nil {
		return err
	}
	_, err = a.follow(r.Context(), receipt.Commands[0].ID, 0)
	return err
}

// follow waits until a command is sent, and then for a reply for up to patience.
func (a *API) follow(ctx context.Context, id int64, patience time.Duration) (history.Command, error) {
	sending := time.NewTimer(sendTimeout + expiryGrace)
	defer sending.Stop()
	var replying <-chan time.Time
	for over := false; ; {
		changed := a.Commands.Relay.Changed()
		c, err := a.Commands.Command(ctx, id)
		if err != nil {
			return c, err
		}
		switch c.State {
		case history.CommandDead:
			return c, &failure{http.StatusBadRequest, "Not sent: " + c.LastError}
		case history.CommandExpired, history.CommandDiscarded:
			return c, errUnavailable()
		case history.CommandDone, history.CommandNoReply:
			return c, nil
		case history.CommandSent:
			if over || patience == 0 || len(c.Replies) > 0 {
				return c, nil
			}
			if replying == nil {
				replying = time.After(patience)
			}
		case history.CommandPending, history.CommandInFlight:
			if over {
				return c, errUnavailable()
			}
		}
		select {
		case <-changed:
		case <-sending.C:
			over = replying == nil
		case <-replying:
			over = true
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
}

// message is the answer to a command.
func message(text string) object { return object{{"message", text}} }
