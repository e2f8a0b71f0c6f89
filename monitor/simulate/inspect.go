package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
		"registered":    func(w *worker, _ arguments) any { return w.registered() },
		"active_queues": func(w *worker, _ arguments) any { return w.activeQueues() },
		"conf":          func(w *worker, _ arguments) any { return w.conf() },
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

func (w *worker) registered() []string {
	var list []string
	for name, k := range w.c.kinds {
		switch limit := w.limits[name]; {
		case k.unknown:
			continue
		case limit != nil && limit.rate != "":
			name += " [rate_limit=" + limit.rate + "]"
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return list
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
			"hostname": "broker.internal", "userid": "shop", "virtual_host": "/", "port": 5672, "transport": "amqp", "ssl": false,
			"connect_timeout": 4, "heartbeat": 120.0, "login_method": "PLAIN", "alternates": []any{}, "transport_options": map[string]any{},
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
		"loader   -> celery.loaders.app.AppLoader\nsettings -> transport:amqp results:disabled\n"
}

func (w *worker) conf() any {
	conf := map[string]any{ //nolint:gosec // masked, as workers do it
		"broker_url": "amqp://shop:********@broker.internal:5672//", "result_backend": nil,
		"task_default_queue": w.c.opts.DefaultQueue, "task_acks_late": false, "worker_prefetch_multiplier": prefetch,
		"worker_send_task_events": true, "task_send_sent_event": true, "timezone": "Europe/Berlin", "enable_utc": true,
		"task_serializer": "json", "accept_content": []string{"json"}, "include": []string{"shop.tasks", "billing.tasks", "mail.tasks"},
		"task_routes": map[string]any{"mail.*": map[string]any{"queue": "mail"}, "images.*": map[string]any{"queue": "images"}},
	}
	if w.cancels {
		conf["worker_cancel_long_running_tasks_on_connection_loss"] = true
	}
	if w.host.legacy {
		delete(conf, "enable_utc")
		conf["task_time_limit"] = 3600
	}
	return conf
}
