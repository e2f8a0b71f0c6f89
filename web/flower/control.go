package flower

import (
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/web/auth"
)

// controlRoutes adds what acts on workers.
func (a *API) controlRoutes() {
	a.postWorker("/api/worker/shutdown/*", auth.ShutDownWorker, a.shutdown)
	a.postWorker("/api/worker/pool/restart/*", auth.ShutDownWorker, a.restartPool)
	a.postWorker("/api/worker/pool/grow/*", auth.ControlWorker, a.resizePool("grow", "Growing"))
	a.postWorker("/api/worker/pool/shrink/*", auth.ControlWorker, a.resizePool("shrink", "Shrinking"))
	a.postWorker("/api/worker/pool/autoscale/*", auth.ControlWorker, a.autoscale)
	a.postWorker("/api/worker/queue/add-consumer/*", auth.ControlWorker, a.consumer("add", "to"))
	a.postWorker("/api/worker/queue/cancel-consumer/*", auth.ControlWorker, a.consumer("cancel", "from"))
	a.post("/api/task/timeout/*", auth.ControlWorker, a.limitTime)
	a.post("/api/task/rate-limit/*", auth.ControlWorker, a.limitRate)
	a.post("/api/task/revoke/*", auth.RevokeTask, a.revoke)
}

// postWorker adds a route that acts on a worker that must be known.
func (a *API) postWorker(pattern string, action auth.Action, h handler) {
	a.post(pattern, action, func(r *request) (any, error) {
		if err := a.checkWorker(r.name); err != nil {
			return nil, err
		}
		return h(r)
	})
}

func (a *API) shutdown(r *request) (any, error) {
	if err := a.broadcast(r, "shutdown", nil, r.name); err != nil {
		return nil, err
	}
	return message("Shutting down!"), nil
}

func (a *API) restartPool(r *request) (any, error) {
	return a.control(r, control{
		worker: r.name, method: "pool_restart", failed: fmt.Sprintf("Failed to restart the '%s' pool: ", r.name),
		done: fmt.Sprintf("Restarting '%s' worker's pool", r.name),
	})
}

// resizePool grows or shrinks a pool by n processes.
func (a *API) resizePool(verb, doing string) handler {
	return func(r *request) (any, error) {
		n, err := r.integer("n", 1)
		if err != nil {
			return nil, err
		}
		return a.control(r, control{
			worker: r.name, method: "pool_" + verb, arguments: map[string]any{"n": n},
			failed: fmt.Sprintf("Failed to %s '%s' worker's pool: ", verb, r.name),
			done:   fmt.Sprintf("%s '%s' worker's pool by %d", doing, r.name, n),
		})
	}
}

func (a *API) autoscale(r *request) (any, error) {
	least, err := r.requiredInteger("min")
	if err != nil {
		return nil, err
	}
	most, err := r.requiredInteger("max")
	if err != nil {
		return nil, err
	}
	return a.control(r, control{
		worker: r.name, method: "autoscale", arguments: map[string]any{"min": least, "max": most},
		failed: fmt.Sprintf("Failed to autoscale '%s' worker: ", r.name),
		done:   fmt.Sprintf("Autoscaling '%s' worker (min=%d, max=%d)", r.name, least, most),
	})
}

// consumer has a worker begin or stop to consume from a queue.
func (a *API) consumer(verb, preposition string) handler {
	return func(r *request) (any, error) {
		queue, err := r.required("queue")
		if err != nil {
			return nil, err
		}
		return a.control(r, control{
			worker: r.name, method: verb + "_consumer", arguments: map[string]any{"queue": queue},
			failed: fmt.Sprintf("Failed to %s '%s' consumer %s '%s' worker: ", verb, queue, preposition, r.name),
		})
	}
}

func (a *API) limitTime(r *request) (any, error) {
	worker, err := r.required("workername")
	if err != nil {
		return nil, err
	}
	hard, err := r.number("hard")
	if err != nil {
		return nil, err
	}
	soft, err := r.number("soft")
	if err != nil {
		return nil, err
	}
	limits := map[string]any{"task_name": r.name, "hard": nil, "soft": nil} // null removes a limit
	if hard != nil {
		limits["hard"] = *hard
	}
	if soft != nil {
		limits["soft"] = *soft
	}
	return a.limit(r, control{worker: worker, method: "time_limit", arguments: limits, failed: "Failed to set timeouts: '", end: "'"})
}

func (a *API) limitRate(r *request) (any, error) {
	worker, err := r.required("workername")
	if err != nil {
		return nil, err
	}
	rate, err := r.required("ratelimit")
	if err != nil {
		return nil, err
	}
	return a.limit(r, control{
		worker: worker, method: "rate_limit", arguments: map[string]any{"task_name": r.name, "rate_limit": rate},
		failed: "Failed to set rate limit: '", end: "'",
	})
}

// limit limits a task on a worker. It is one that some worker has registered.
func (a *API) limit(r *request, c control) (any, error) {
	if err := a.checkTask(r.Context(), r.name); err != nil {
		return nil, err
	}
	if err := a.checkWorker(c.worker); err != nil {
		return nil, err
	}
	return a.control(r, c)
}

// revoke revokes any task, known or not.
func (a *API) revoke(r *request) (any, error) {
	terminate, err := r.flag("terminate")
	if err != nil {
		return nil, err
	}
	arguments := map[string]any{"task_id": []any{r.name}}
	if terminate {
		signal := r.text("signal", "SIGTERM")
		if !strings.HasPrefix(signal, "SIG") { // as workers accept it
			signal = "SIG" + signal
		}
		arguments["terminate"], arguments["signal"] = true, signal
	}
	if err := a.broadcast(r, "revoke", arguments); err != nil {
		return nil, err
	}
	return message("Revoked '" + r.name + "'"), nil
}
