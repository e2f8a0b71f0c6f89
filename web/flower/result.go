package flower

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
)

const (
	maxWait    = 10 * time.Minute // for the result of a task
	maxWaiting = 100              // requests that wait at once
	// Between reads of the result backend while a request waits.
	minPoll = 50 * time.Millisecond
	maxPoll = time.Second
	// storeTime is how long a worker may take to store a result after the event that the task has ended.
	storeTime = 2 * time.Second
)

// resultRoutes adds what reads and writes results.
func (a *API) resultRoutes() {
	a.add(http.MethodGet, "/api/task/result/*", auth.ReadPayload, a.result)
	a.post("/api/task/abort/*", auth.RevokeTask, a.abort)
}

// outcome is what is known of the end of a task.
type outcome struct {
	state     string
	value     any // as JSON has it, or text
	traceback *string
}

// pending is the outcome of a task of which nothing is stored.
const pending = "PENDING"

// ready reports whether the task has ended.
func (o outcome) ready() bool {
	return o.state == "SUCCESS" || o.state == "FAILURE" || o.state == "REVOKED"
}

// result returns the members of an answer. Those who may not see payloads get the state only.
func (o outcome) result(payload bool) object {
	if !payload {
		return nil
	}
	if o.state == "FAILURE" {
		return object{{"result", o.value}, {"traceback", o.traceback}}
	}
	return object{{"result", o.value}}
}

// result answers with the result of a task, for which it waits if asked to.
func (a *API) result(r *request) (any, error) {
	if r.name == "" {
		return nil, errNoPath()
	}
	timeout, err := r.number("timeout")
	if err != nil {
		return nil, err
	}
	if a.Commands == nil || a.Commands.Results == nil {
		return nil, &failure{http.StatusServiceUnavailable, ""}
	}
	found, err := a.stored(r.Context(), r.name)
	if err != nil {
		a.Logger.WarnContext(r.Context(), "result not read", "task", r.name, "error", err)
		return nil, errUnavailable()
	}
	if !found.ready() && timeout != nil && *timeout > 0 {
		leave, err := a.enterWait()
		if err != nil {
			return nil, err
		}
		defer leave()
		found = a.await(r.Context(), r.name, bounded(*timeout))
	}
	answer := object{{"task-id", r.name}, {"state", found.state}}
	if found.ready() {
		answer = append(answer, found.result(r.payload())...)
	}
	return answer, nil
}

// stored returns what the result backend has of a task.
func (a *API) stored(ctx context.Context, id string) (outcome, error) {
	found, err := a.Commands.Results.Result(ctx, id)
	switch {
	case errors.Is(err, results.ErrMissing):
		return outcome{state: pending}, nil
	case err != nil:
		return outcome{}, err
	}
	o := outcome{state: found.Status}
	switch {
	case found.Undecodable != "":
		o.value = "<" + found.Undecodable + ">"
	case found.Repr != "":
		o.value = found.Repr
	case found.Value != nil:
		o.value = found.Value
	}
	if found.Traceback != "" {
		o.traceback = &found.Traceback
	}
	if o.state == "" {
		o.state = pending
	}
	return o, nil
}

// told returns what events tell of a task.
func (a *API) told(ctx context.Context, id string) outcome {
	t, err := a.Backend.Task(ctx, id)
	if err != nil {
		return outcome{state: pending}
	}
	o := outcome{state: string(t.State), traceback: t.Traceback}
	if text := t.Result; text != nil && t.State == state.Success {
		o.value = *text
	} else if text := t.Exception; text != nil {
		o.value = *text
	}
	return o
}

// await waits for the end of a task, at most for patience. The result backend knows its result; if it has none, or none in
// time, events tell it as Python's repr.
func (a *API) await(ctx context.Context, id string, patience time.Duration) outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := outcome{state: pending}
	var ended time.Time // by events
	for poll := minPoll; ; poll = min(2*poll, maxPoll) {
		changed := a.Backend.Changed()
		byBackend := a.Commands.Results != nil
		if byBackend {
			if stored, err := a.stored(ctx, id); err == nil {
				found = stored
			}
		}
		if found.ready() {
			return found
		}
		if told := a.told(ctx, id); told.ready() {
			if !byBackend || !ended.IsZero() && time.Since(ended) > storeTime {
				return told
			}
			if ended.IsZero() {
				ended, poll = time.Now(), minPoll
			}
		} else if !byBackend {
			found.state = told.state
		}
		if byBackend {
			changed = nil // events do not tell what is stored
		}
		next := time.NewTimer(poll)
		select {
		case <-changed:
		case <-next.C:
		case <-ctx.Done():
		}
		next.Stop()
		if ctx.Err() != nil {
			return found
		}
	}
}

// abort marks any task as aborted, for its code to see.
func (a *API) abort(r *request) (any, error) {
	if a.Commands == nil || a.Commands.Results == nil {
		return nil, &failure{http.StatusServiceUnavailable, ""}
	}
	if err := a.Commands.Abort(r.Context(), a.caller(r), r.name); err != nil {
		a.Logger.WarnContext(r.Context(), "task not aborted", "task", r.name, "error", err)
		return nil, errUnavailable()
	}
	return message("Aborted '" + r.name + "'"), nil
}
