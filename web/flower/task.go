package flower

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
)

// taskRoutes adds what is known of one task, and of all names.
func (a *API) taskRoutes() {
	a.add(http.MethodGet, "/api/task/info/*", auth.View, a.taskInfo)
	a.add(http.MethodGet, "/api/task/types", auth.View, a.taskTypes)
}

// taskInfo describes a task, from memory or the history. It has the key of old versions of Flower and of Flower's documents
// too.
func (a *API) taskInfo(r *request) (any, error) {
	unknown := &failure{http.StatusNotFound, "Unknown task '" + r.name + "'"}
	if r.name == "" {
		return nil, unknown
	}
	t, err := a.Backend.Task(r.Context(), r.name)
	if errors.Is(err, history.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	o := fields(&t, r.payload())
	return append(o, member{"task-id", t.ID}), nil
}

// taskTypes lists the names of tasks.
func (a *API) taskTypes(*request) (any, error) {
	var names []string
	a.Backend.View(func(c state.View) {
		for name := range c.Counts().ByName {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return object{{"task-types", append([]string{}, names...)}}, nil
}

// payload reports whether the client may see arguments and results.
func (r *request) payload() bool { return auth.FromContext(r.Context()).Payload }

// fields is a task in Flower's form. Times are seconds since 1970 by the clocks of workers.
func fields(t *state.Task, payload bool) object {
	shown := func(s *string) *string {
		if payload {
			return s
		}
		return nil
	}
	at := newTimes(t)
	return object{
		{"uuid", t.ID},
		{"name", t.Name},
		{"state", string(t.State)},
		{"received", seconds(at.ReceivedAt)},
		{"sent", seconds(t.SentAt)},
		{"started", seconds(at.StartedAt)},
		{"rejected", seconds(at.RejectedAt)},
		{"succeeded", seconds(at.SucceededAt)},
		{"failed", seconds(at.FailedAt)},
		{"retried", seconds(at.RetriedAt)},
		{"revoked", seconds(at.RevokedAt)},
		{"args", shown(t.Args)},
		{"kwargs", shown(t.Kwargs)},
		{"eta", t.ETA},
		{"expires", t.Expires},
		{"retries", t.Retries},
		{"worker", t.Worker},
		{"result", shown(lastText(t, result))},
		{"exception", shown(lastText(t, exception))},
		{"timestamp", seconds(cmp.Or(stateTime(t.State, at, t.SentAt), t.UpdatedAt))},
		{"runtime", t.RuntimeSeconds},
		{"traceback", shown(lastText(t, traceback))},
		{"exchange", t.Exchange},
		{"routing_key", t.RoutingKey},
		{"clock", t.Stamp.Clock},
		{"client", t.Client},
		{"root", t.RootID},
		{"root_id", t.RootID},
		{"parent", t.ParentID},
		{"parent_id", t.ParentID},
		{"children", append([]string{}, t.Children...)},
	}
}

// seconds returns µs since 1970 as seconds, nil if they are not known.
func seconds(micros int64) *float64 {
	if micros == 0 {
		return nil
	}
	return new(float64(micros) / 1e6)
}

// newTimes returns when a task last came to each of its states, in whichever of its executions.
func newTimes(t *state.Task) state.Times {
	at := t.Times
	for i := range t.Executions {
		e := &t.Executions[i].Times
		at.ReceivedAt, at.StartedAt = max(at.ReceivedAt, e.ReceivedAt), max(at.StartedAt, e.StartedAt)
		at.SucceededAt, at.FailedAt = max(at.SucceededAt, e.SucceededAt), max(at.FailedAt, e.FailedAt)
		at.RetriedAt, at.RevokedAt = max(at.RetriedAt, e.RetriedAt), max(at.RevokedAt, e.RevokedAt)
		at.RejectedAt = max(at.RejectedAt, e.RejectedAt)
	}
	return at
}

// stateTime is the time of the event that brought a task to its state, which is Flower's timestamp unless events arrive out of
// order; 0 for a custom state. Another event may have a later time by the clock of another host, or of a client that reports
// that it has sent a task which a worker already has.
func stateTime(st state.State, at state.Times, sent int64) int64 {
	switch st {
	case state.Pending:
		return sent
	case state.Received:
		return at.ReceivedAt
	case state.Started:
		return at.StartedAt
	case state.Success:
		return at.SucceededAt
	case state.Failure:
		return at.FailedAt
	case state.Retry:
		return at.RetriedAt
	case state.Revoked:
		return at.RevokedAt
	case state.Rejected:
		return at.RejectedAt
	}
	return 0
}

// result, exception and traceback pick a text of an execution.
func result(e *state.Execution) *string    { return e.Result }
func exception(e *state.Execution) *string { return e.Exception }
func traceback(e *state.Execution) *string { return e.Traceback }

// lastText returns a text of the last execution that has it: Flower keeps what an attempt reported when the next one begins.
func lastText(t *state.Task, pick func(*state.Execution) *string) *string {
	newest := state.Execution{Result: t.Result, Exception: t.Exception, Traceback: t.Traceback}
	if s := pick(&newest); s != nil {
		return s
	}
	for i := len(t.Executions) - 1; i >= 0; i-- {
		if s := pick(&t.Executions[i]); s != nil {
			return s
		}
	}
	return nil
}
