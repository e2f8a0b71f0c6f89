package flower

import (
	"errors"
	"net/http"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/web/auth"
)

// publishRoutes adds what publishes tasks.
func (a *API) publishRoutes() {
	a.post("/api/task/apply/*", auth.CallTask, a.apply)
	a.post("/api/task/async-apply/*", auth.PublishTask, a.applyAsync)
	a.post("/api/task/send-task/*", auth.PublishTask, a.sendTask)
}

// apply publishes a task that some worker has registered, and waits for its result.
func (a *API) apply(r *request) (any, error) {
	o, err := readTask(r, a.Now(), flowerTime)
	if err != nil {
		return nil, err
	}
	if err := a.checkTask(r.Context(), r.name); err != nil {
		return nil, err
	}
	patience, err := o.patience()
	if err != nil {
		return nil, err
	}
	leave, err := a.enterWait()
	if err != nil {
		return nil, err
	}
	defer leave()
	id, err := a.publish(r, o)
	if err != nil {
		return nil, err
	}
	found := a.await(r.Context(), id, patience)
	answer := object{{"task-id", id}}
	if found.ready() {
		answer = append(answer, found.result(r.payload())...)
	}
	return append(answer, member{"state", found.state}), nil
}

// applyAsync publishes a task that some worker has registered.
func (a *API) applyAsync(r *request) (any, error) {
	o, err := readTask(r, a.Now(), flowerTime)
	if err != nil {
		return nil, err
	}
	if err := a.checkTask(r.Context(), r.name); err != nil {
		return nil, err
	}
	return a.published(r, o)
}

// sendTask publishes any task.
func (a *API) sendTask(r *request) (any, error) {
	o, err := readTask(r, a.Now(), isoTime)
	if err != nil {
		return nil, err
	}
	return a.published(r, o)
}

// published publishes a task and answers with its state by the result backend, if there is one.
func (a *API) published(r *request, o taskOptions) (any, error) {
	id, err := a.publish(r, o)
	if err != nil {
		return nil, err
	}
	answer := object{{"task-id", id}}
	if a.Commands.Results == nil {
		return answer, nil
	}
	found, err := a.stored(r.Context(), id)
	if err != nil { // it is published nevertheless
		a.Logger.WarnContext(r.Context(), "state of a published task not read", "task", id, "error", err)
		return answer, nil
	}
	return append(answer, member{"state", found.state}), nil
}

// publish publishes a task and returns its id once the broker has it.
func (a *API) publish(r *request, o taskOptions) (string, error) {
	service, err := a.service()
	if err != nil {
		return "", err
	}
	o.Name, o.SendWithin, o.Force, o.NoWarnings = r.name, sendTimeout, true, true
	if o.Queue == "" {
		o.Queue = service.QueueOf(r.name)
	}
	receipt, err := service.Publish(r.Context(), a.caller(r), o.TaskRequest)
	if wrong, ok := errors.AsType[*command.Error](err); ok {
		return "", &failure{http.StatusBadRequest, wrong.Message}
	}
	if err != nil {
		return "", err
	}
	sent, err := a.follow(r.Context(), receipt.Commands[0].ID, 0)
	return sent.TaskID, err
}

// enterWait takes a place among those who wait for results, until leave is called.
func (a *API) enterWait() (leave func(), err error) {
	select {
	case a.waiting <- struct{}{}:
		return func() { <-a.waiting }, nil
	default:
		return nil, &failure{http.StatusServiceUnavailable, "Too many requests wait for results. Try again later."}
	}
}

// patience is how long to wait for the result.
func (o *taskOptions) patience() (time.Duration, error) {
	if o.timeout == nil {
		return maxWait, nil
	}
	seconds, ok := readSeconds(o.timeout)
	if !ok {
		return 0, &failure{http.StatusBadRequest, "Invalid timeout"}
	}
	return bounded(seconds), nil
}

// bounded is a wait of some seconds, at most maxWait.
func bounded(seconds float64) time.Duration {
	if seconds >= maxWait.Seconds() {
		return maxWait
	}
	return max(0, time.Duration(seconds*float64(time.Second)))
}
