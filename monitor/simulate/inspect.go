package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// inspections are the commands that only look, by name.
func inspections() map[string]func(w *worker, a arguments) any {
	return map[string]func(w *worker, a arguments) any{
		"ping":          func(*worker, arguments) any { return done("pong") },
		"stats":         func(w *worker, _ arguments) any { return w.stats() },
		"active":        func(w *worker, _ arguments) any { return w.infos((*execution).running) },
		"reserved":      func(w *worker, _ arguments) any { return w.infos((*execution).reserved) },
		"scheduled":     func(w *worker, _ arguments) any { return w.schedule() },
		"revoked":       func(w *worker, _ arguments) any { return slices.AppendSeq([]string{}, maps.Keys(w.revokes)) },
		"registered":    func(w *worker, a arguments) any { return w.registered(a.texts("taskinfoitems")) },
		"active_queues": func(w *worker, _ arguments) any { return w.activeQueues() },
		"conf":          func(w *worker, a arguments) any { return w.conf(a["with_defaults"] == true) },
		"clock":         func(w *worker, _ arguments) any { return map[string]any{"clock": w.main.clock} },
		"memsample":     func(w *worker, _ arguments) any { return w.memory() },
		"report":        func(w *worker, _ arguments) any { return done(w.software()) },
		"hello": func(w *worker, a arguments) any { // by workers that join
			if a.text("from_node") == w.name {
				return nil
			}
			return map[string]any{"revoked": map[string]any{}, "clock": w.main.clock}
		},
		"query_task": func(w *worker, a arguments) any { return w.query(a.texts("ids")) },
	}
}

func (x *execution) running() bool { return x.began && !x.ended }

// scheduled reports whether x waits for its time.
func (x *execution) scheduled() bool {
	return !x.began && x.announced && x.m.eta > x.w.c.wall(x.w.host)
}

func (x *execution) reserved() bool { return !x.began && x.announced && !x.scheduled() }

// info describes x as workers reply to active, reserved and scheduled.
func (x *execution) info() map[string]any {
	t := x.m.task
	info := map[string]any{
		"id": t.id, "name": t.kind.name, "type": t.kind.name, "args": t.args, "kwargs": t.kwargs, "hostname": x.w.name,
		"time_start": nil, "worker_pid": nil, "acknowledged": x.acked,
		"delivery_info": map[string]any{
			"exchange": "", "routing_key": t.kind.queue, "priority": 0, "redelivered": x.m.not != nil,
		},
	}
	if limit := x.w.limits[t.kind.name]; limit != nil {
		info["timelimit"] = []any{limit.hard, limit.soft}
	}
	if x.running() {
		info["time_start"] = float64(x.startedAt+x.w.host.skew) / 1e9
		info["worker_pid"] = x.child.pid
	}
	return info
}

func (w *worker) infos(ok func(x *execution) bool) []any {
	list := []any{}
	for _, x := range w.executions {
		if ok(x) {
			list = append(list, x.info())
		}
	}
	return list
}

func (w *worker) schedule() []any {
	list := []any{}
	for _, x := range w.executions {
		if x.scheduled() {
			eta := time.Unix(0, x.m.eta).UTC().Format("2006-01-02T15:04:05.000000+00:00")
			list = append(list, map[string]any{"eta": eta, "priority": 6, "request": x.info()})
		}
	}
	return list
}

// query replies where tasks are.
func (w *worker) query(ids []string) any {
	found := map[string]any{}
	for _, x := range w.executions {
		if !slices.Contains(ids, x.m.task.id) {
			continue
		}
		if x.running() {
			found[x.m.task.id] = []any{"active", x.info()}
		} else if x.reserved() {
			found[x.m.task.id] = []any{"reserved", x.info()}
		}
	}
	return found
}

// registered lists the tasks with those of their attributes that are asked for.
func (w *worker) registered(attributes []string) []string {
	var list []string
	for name, k := range w.c.kinds {
		if k.unknown {
			continue
		}
		has := w.attributes(k)
		var described []string
		for _, a := range attributes {
			if v, ok := has[a]; ok {
				described = append(described, a+"="+v)
			}
		}
		if limit := w.limits[name]; limit != nil && limit.rate != "" && !slices.Contains(attributes, "rate_limit") {
			described = append(described, "rate_limit="+limit.rate)
		}
		if len(described) > 0 {
			name += " [" + strings.Join(described, " ") + "]"
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// attributes of the class of a task, as Python prints them. Those that are None are missing.
func (w *worker) attributes(k *kind) map[string]string {
	has := map[string]string{
		"acks_late": "False", "acks_on_failure_or_timeout": "True", "ignore_result": "False", "serializer": "json",
		"max_retries": strconv.FormatInt(max(k.retries, 3), 10),
	}
	if k.late {
		has["acks_late"] = "True"
	}
	if limit := w.limits[k.name]; limit != nil && limit.rate != "" {
		has["rate_limit"] = limit.rate
	}
	if w.host.legacy {
		has["time_limit"] = strconv.Itoa(legacyTimeLimit)
	} else {
		has["acks_on_failure"], has["acks_on_timeout"], has["retry_on_worker_lost"] = "True", "True", "False"
	}
	return has
}

func (w *worker) activeQueues() []any {
	list := []any{}
	for _, q := range w.queues {
		list = append(list, map[string]any{
			"name": q.name, "routing_key": q.name, "durable": true, "exclusive": false, "auto_delete": false,
			"exchange":        map[string]any{"name": q.name, "type": "direct", "durable": true},
			"queue_arguments": nil, "max_priority": nil, "alias": nil, "bindings": []any{},
		})
	}
	return list
}

// implementation is the class of the worker's pool.
func (w *worker) implementation() string {
	return map[pool]string{
		prefork: "celery.concurrency.prefork:TaskPool", gevent: "celery.concurrency.gevent:TaskPool",
		solo: "celery.concurrency.solo:TaskPool",
	}[w.pool]
}

func (w *worker) stats() any {
	p := map[string]any{"implementation": w.implementation(), "max-concurrency": w.slots}
	switch w.pool {
	case prefork:
		pids := []int64{}
		for _, child := range w.idle {
			pids = append(pids, child.pid)
		}
		for _, x := range w.executions {
			if x.child != nil {
				pids = append(pids, x.child.pid)
			}
		}
		slices.Sort(pids)
		p["processes"], p["max-tasks-per-child"], p["timeouts"] = pids, "N/A", []float64{0, 0}
		p["put-guarded-by-semaphore"] = false
	case solo:
		p["processes"], p["max-tasks-per-child"], p["timeouts"] = []int64{w.main.pid}, nil, []float64{}
	case gevent: // reports no more
	}
	return map[string]any{
		"total": w.totals, "pid": w.main.pid, "clock": strconv.FormatInt(w.main.clock, 10),
		"uptime": (w.c.now - w.bootedAt) / int64(time.Second), "pool": p, "prefetch_count": prefetch * w.slots,
		"broker": map[string]any{
			"hostname": "broker.internal", "userid": "shop", "virtual_host": "0", "port": 6379, "transport": "redis", "ssl": false,
			"connect_timeout": 4, "heartbeat": 120.0, "login_method": nil, "alternates": []any{}, "transport_options": w.transportOptions(),
		},
		"rusage": map[string]any{
			"utime": float64(w.processed) * 0.03, "stime": float64(w.processed) * 0.004, "maxrss": w.kilobytes(),
			"minflt": 31_000 + w.processed, "majflt": 22, "nvcsw": w.processed * 9, "nivcsw": w.processed,
		},
	}
}

// kilobytes is the memory of the main process, which leaks a little.
func (w *worker) kilobytes() int64 { return 61_000 + 300*int64(w.slots) + w.processed/4 }

func (w *worker) memory() string { return fmt.Sprintf("%.1fMB", float64(w.kilobytes())/1024) }

func (w *worker) software() string {
	return "\nsoftware -> celery:" + w.host.version + " (simulated) kombu:5.6.2 py:3.12.3\n" +
		"platform -> system:Linux arch:64bit, ELF\n            kernel version:6.8 imp:CPython\n" +
		"loader   -> celery.loaders.app.AppLoader\nsettings -> transport:redis results:disabled\n"
}

// legacyTimeLimit is the task_time_limit of older workers, seconds.
const legacyTimeLimit = 3600

// conf are the settings, with defaults those that tell how tasks are acknowledged too.
func (w *worker) conf(defaults bool) any {
	conf := map[string]any{}
	if defaults {
		conf = map[string]any{
			"result_expires": "1 day, 0:00:00", "task_acks_on_failure_or_timeout": true, "task_ignore_result": false, "task_time_limit": nil,
			"task_reject_on_worker_lost": nil, "worker_deduplicate_successful_tasks": false,
			"worker_cancel_long_running_tasks_on_connection_loss": false, "broker_transport_options": map[string]any{},
		}
		if !w.host.legacy {
			conf["task_acks_on_failure"], conf["task_acks_on_timeout"], conf["task_retry_on_worker_lost"] = nil, nil, false
		}
	}
	maps.Copy(conf, map[string]any{ //nolint:gosec // masked, as workers do it
		"broker_url": "redis://shop:********@broker.internal:6379/0", "result_backend": nil,
		"task_default_queue": w.c.opts.DefaultQueue, "task_acks_late": false, "worker_prefetch_multiplier": prefetch,
		"worker_send_task_events": true, "task_send_sent_event": true, "timezone": "Europe/Berlin", "enable_utc": true,
		"task_serializer": "json", "accept_content": []string{"json"}, "include": []string{"shop.tasks", "billing.tasks", "mail.tasks"},
		"task_routes": map[string]any{"mail.*": map[string]any{"queue": "mail"}, "images.*": map[string]any{"queue": "images"}},
	})
	if options := w.transportOptions(); len(options) > 0 {
		conf["broker_transport_options"] = options
	}
	if w.cancels {
		conf["worker_cancel_long_running_tasks_on_connection_loss"] = true
	}
	if w.host.legacy {
		delete(conf, "enable_utc")
		conf["task_time_limit"] = legacyTimeLimit
	}
	return conf
}

// transportOptions are those of the connection to Redis. The shop wants lost tasks back soon, and forgets its reminders.
func (w *worker) transportOptions() map[string]any {
	if w.host.legacy {
		return map[string]any{}
	}
	return map[string]any{"visibility_timeout": 60}
}
