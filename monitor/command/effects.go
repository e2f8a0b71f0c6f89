package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// maxInspected is how many workers are inspected for one preview.
const maxInspected = 10

// effects collects the consequences of a ControlRequest.
type effects struct {
	warnings

	plan      controlPlan
	known     map[string]state.Worker
	alive     []string // names of the workers that should reply
	targets   []string // workers that the request reaches
	inspector *remote.Inspector
	tasks     Tasks
	topology  remote.Topology
	now       time.Time
}

// previewControl returns what a plan would do.
func (s *Service) previewControl(ctx context.Context, p controlPlan) Preview {
	e := &effects{plan: p, known: s.workers(), now: s.now(), inspector: s.Inspector, tasks: s.tasks}
	for _, name := range names(e.known) {
		if e.known[name].Status == state.Online {
			e.alive = append(e.alive, name)
		}
	}
	e.targets = p.workers
	if len(e.targets) == 0 {
		e.targets = e.alive
	}
	e.warnUnreachable()
	if !p.method.Inspect {
		e.topology = s.Inspector.Topology(ctx)
		e.consequences(ctx)
	}
	v := Preview{Summary: summary(p.method, p.args), Targets: e.targets, Warnings: e.warnings}
	if len(p.workers) == 0 {
		v.Targets = []string{everyWorker}
	}
	if p.method.Name != "shutdown" && p.method.Name != "drain" {
		return v
	}
	v.Held = e.held(ctx)
	if len(e.targets) != 1 || len(e.others(e.alive)) == 0 {
		v.Confirm = p.method.Name
	}
	return v
}

// warnUnreachable warns of workers that will not get the command.
func (e *effects) warnUnreachable() {
	if len(e.targets) == 0 {
		e.warn(true, "No worker is online to receive this.")
	}
	for _, name := range e.targets {
		w := e.known[name]
		switch {
		case w.Status == state.Online:
		case w.Status == state.Stopping:
			e.warn(false, "%s is shutting down: it may not receive this.", name)
		case w.LastHeartbeatAt == 0:
			e.warn(true, "%s has sent no heartbeat: it will not receive this.", name)
		default:
			since := formatDuration(e.now.Sub(time.UnixMicro(w.LastHeartbeatAt)))
			likely := "will"
			if w.Status == state.Late {
				likely = "may"
			}
			e.warn(true, "%s has sent no heartbeat for %s: it %s not receive this.", name, since, likely)
		}
	}
}

// consequences adds the warnings of the method.
func (e *effects) consequences(ctx context.Context) {
	args := e.plan.args
	switch e.plan.method.Name {
	case "shutdown":
		e.warnShutdown(ctx)
		e.warnMissing()
	case "drain":
		e.warnDrain(ctx)
		e.warnMissing()
	case "cancel_consumer":
		e.warnCancelConsumer(fmt.Sprint(args["queue"]))
		e.warnMissing()
	case "add_consumer":
		if queue := fmt.Sprint(args["queue"]); len(e.topology.Queues[queue]) == 0 {
			e.warn(false, "No worker consumes from queue %s so far: it is created if there is none.", queue)
		}
	case "rate_limit", "time_limit":
		e.warnUnregistered(fmt.Sprint(args["task_name"]))
	case "pool_grow", "pool_shrink", "pool_restart", "autoscale":
		for i, inspection := range e.inspections(ctx) {
			e.warnPool(e.targets[i], inspection.Stats)
		}
	case "disable_events":
		e.warn(true, "Tasks on these workers are not visible until events are enabled again.")
	case "revoke", "terminate":
		if len(e.plan.workers) > 0 {
			e.warn(false, "Only %s will revoke it: a task that another worker receives runs.", joinNames(e.plan.workers))
		}
	}
}

// warnMissing warns if workers have not reported their queues and tasks.
func (e *effects) warnMissing() {
	if len(e.topology.Missing) > 0 {
		e.warn(false, "%s: more may depend on this than is shown here.",
			plural(e.topology.Missing, "did not report its queues and tasks", "did not report their queues and tasks"))
	}
}

// others returns the workers that are not targets.
func (e *effects) others(workers []string) []string {
	return slices.DeleteFunc(slices.Clone(workers), func(name string) bool { return slices.Contains(e.targets, name) })
}

// leftWithout returns the names, of queues or tasks, whose workers are all targets.
func (e *effects) leftWithout(workersByName map[string][]string) []string {
	var list []string
	for name, workers := range workersByName {
		if len(workers) > 0 && len(e.others(workers)) == 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// warnShutdown warns of what has no worker once the targets are gone.
func (e *effects) warnShutdown(ctx context.Context) {
	e.warnHeldTasks(ctx)
	e.warnLeftWithout()
}

// warnLeftWithout warns of the queues and tasks that only the targets serve.
func (e *effects) warnLeftWithout() {
	if len(e.others(e.alive)) == 0 {
		e.warn(true, "No worker is left after this.")
		return
	}
	for _, queue := range e.leftWithout(e.topology.Queues) {
		e.warn(true, "This leaves queue %s with no consumer.", queue)
	}
	tasks := e.leftWithout(e.topology.Tasks)
	tasks = slices.DeleteFunc(tasks, func(name string) bool { return strings.HasPrefix(name, "celery.") }) // Celery's own
	if len(tasks) > 0 {
		who := e.targets[0] + " is the only worker that runs"
		if len(e.targets) > 1 {
			who = fmt.Sprintf("These %d workers are all that run", len(e.targets))
		}
		e.warn(true, "%s %s.", who, joinNames(tasks))
	}
}

// warnCancelConsumer warns of the consequences if the targets no longer consume from a queue.
func (e *effects) warnCancelConsumer(queue string) {
	consumers := e.topology.Queues[queue]
	var idle []string
	for _, name := range e.targets {
		if !slices.Contains(consumers, name) && !slices.Contains(e.topology.Missing, name) {
			idle = append(idle, name)
		}
	}
	switch {
	case len(consumers) > 0 && len(e.others(consumers)) == 0:
		e.warn(true, "This leaves queue %s with no consumer.", queue)
	case len(idle) == len(e.targets) && len(idle) > 0:
		message := fmt.Sprintf("%s does not consume from queue %s.", joinNames(idle), queue)
		if near := query.Nearest(queue, keys(e.topology.Queues)); near != "" && near != queue {
			message += " Perhaps " + near + " was meant."
		}
		e.warn(true, "%s", message)
	case len(idle) > 0:
		e.warn(false, "%s does not consume from queue %s.", joinNames(idle), queue)
	}
}

// warnUnregistered warns of workers that have not registered a task.
func (e *effects) warnUnregistered(name string) {
	var lack []string
	for _, worker := range e.targets {
		if !slices.Contains(e.topology.Tasks[name], worker) && !slices.Contains(e.topology.Missing, worker) {
			lack = append(lack, worker)
		}
	}
	if len(lack) == 0 {
		return
	}
	message := fmt.Sprintf("%s has not registered task %s: it will reply that the task is unknown.", joinNames(lack), name)
	if near := query.Nearest(name, keys(e.topology.Tasks)); near != "" && near != name {
		message += " Perhaps " + near + " was meant."
	}
	e.warn(true, "%s", message)
}

// inspections returns what the targets report, inspecting them now if they are few.
func (e *effects) inspections(ctx context.Context) []remote.Inspection {
	list := make([]remote.Inspection, len(e.targets))
	var all sync.WaitGroup
	for i, name := range e.targets {
		if len(e.targets) > maxInspected {
			list[i] = e.inspector.Cached(name)
			continue
		}
		all.Go(func() { list[i] = e.inspector.Inspect(ctx, name) })
	}
	all.Wait()
	return list
}

// warnPool warns of what the pool of a worker cannot do.
func (e *effects) warnPool(name string, stats *remote.Stats) {
	if stats == nil {
		return
	}
	method := e.plan.method.Name
	kind := strings.ToLower(stats.Pool.Kind)
	switch {
	case method == "autoscale" && stats.Autoscaler == nil:
		e.warn(true, "%s was not started with --autoscale: it will refuse.", name)
	case method == "autoscale":
	case kind == "solo" || kind == "threads" || kind == "gevent" && method == "pool_restart":
		e.warn(true, "%s has a %s pool, which cannot do this: it will refuse.", name, kind)
	case method != "pool_restart" && stats.Autoscaler != nil:
		e.warn(true, "%s is autoscaled: it will refuse. Change the range of its autoscaler instead.", name)
	case method == "pool_shrink":
		e.warnShrink(name, stats)
	}
}

// warnShrink warns if a pool has too few processes, or too few idle ones.
func (e *effects) warnShrink(name string, stats *remote.Stats) {
	n, given := e.plan.args["n"].(int64)
	if !given {
		n = 1
	}
	size := int64(len(stats.Pool.Processes))
	if size == 0 {
		return
	}
	busy := int64(0)
	if active := e.known[name].Active; active != nil {
		busy = *active
	}
	switch {
	case n >= size:
		e.warn(true, "%s has a pool of %d: this would leave it without any.", name, size)
	case n > size-busy:
		e.warn(true, "%s runs %d tasks in a pool of %d: it shrinks by no more than %d now.", name, busy, size, max(size-busy, 0))
	}
}
