package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxRevokes is how many revoked ids a worker keeps.
const maxRevokes = 50_000

// limit is what people have set for a task on a worker.
type limit struct {
	rate       string // as it was given, empty for none
	interval   time.Duration
	next       int64    // when the next one may run, ns
	soft, hard *float64 // seconds
}

// controls are the commands that change something, by name.
func controls() map[string]func(w *worker, a arguments) any {
	return map[string]func(w *worker, a arguments) any{
		"revoke":                    func(w *worker, a arguments) any { return w.revoke(a, a["terminate"] == true) },
		"terminate":                 func(w *worker, a arguments) any { return w.revoke(a, true) },
		"revoke_by_stamped_headers": func(*worker, arguments) any { return done("headers were not terminated") },
		"rate_limit":                (*worker).limitRate,
		"time_limit":                (*worker).limitTime,
		"pool_grow":                 func(w *worker, a arguments) any { return w.grow(a.whole("n", 1)) },
		"pool_shrink":               func(w *worker, a arguments) any { return w.shrink(a.whole("n", 1)) },
		"pool_restart":              func(*worker, arguments) any { return failed("ValueError('Pool restarts not enabled')") },
		"autoscale":                 func(*worker, arguments) any { return failed("ValueError('Autoscale not enabled')") },
		"add_consumer":              (*worker).addConsumer,
		"cancel_consumer":           (*worker).cancelConsumer,
		"heartbeat":                 (*worker).forceHeartbeat,
		"enable_events": func(w *worker, _ arguments) any {
			if !w.eventsDisabled {
				return done("task events already enabled")
			}
			w.eventsDisabled = false
			return done("task events enabled")
		},
		"disable_events": func(w *worker, _ arguments) any {
			if w.eventsDisabled {
				return done("task events already disabled")
			}
			w.eventsDisabled = true
			return done("task events disabled")
		},
	}
}

// revoke marks tasks, those that the worker will receive too, and ends those that run, if they are to be terminated.
func (w *worker) revoke(a arguments, terminate bool) any {
	ids := a.texts("task_id")
	for _, id := range ids {
		if len(w.revokes) < maxRevokes {
			w.revokes[id] = struct{}{}
		}
	}
	if terminate && w.pool == solo {
		return failed("NotImplementedError(\"<class 'celery.concurrency.solo.TaskPool'> does not implement kill_job\")")
	}
	var killed []string
	for _, x := range slices.Clone(w.executions) {
		switch id := x.m.task.id; {
		case !slices.Contains(ids, id):
		case !x.running():
			x.revoke = true
		case terminate:
			w.terminate(x)
			killed = append(killed, id)
		}
	}
	switch {
	case !terminate:
		return done("tasks {'" + strings.Join(ids, "', '") + "'} flagged as revoked")
	case len(killed) == 0:
		return done("terminate: tasks unknown")
	default:
		return done("terminate: " + strings.Join(killed, ", "))
	}
}

// limited returns the limits of a task, which it makes if need be, nil if there is no such task.
func (w *worker) limited(name string) *limit {
	if k := w.c.kinds[name]; k == nil || k.unknown {
		return nil
	}
	if w.limits[name] == nil {
		w.limits[name] = &limit{}
	}
	return w.limits[name]
}

func (w *worker) limitRate(a arguments) any {
	l := w.limited(a.text("task_name"))
	if l == nil {
		return failed("unknown task")
	}
	rate := a.text("rate_limit")
	if n, ok := a["rate_limit"].(float64); ok && n != 0 {
		rate = strconv.FormatFloat(n, 'f', -1, 64)
	}
	if rate == "" {
		l.rate, l.interval = "", 0
		return done("rate limit disabled successfully")
	}
	count, unit, _ := strings.Cut(rate, "/")
	n, err := strconv.ParseFloat(count, 64)
	if err != nil {
		return failed(fmt.Sprintf("Invalid rate limit string: ValueError(\"could not convert string to float: '%s'\")", count))
	}
	l.rate, l.interval = rate, 0
	if n > 0 {
		per := map[string]time.Duration{"m": time.Minute, "h": time.Hour}[unit]
		l.interval = time.Duration(float64(cmp.Or(per, time.Second)) / n)
	}
	return done("new rate limit set successfully")
}

// delay is how long the rate limit holds a task back.
func (l *limit) delay(now int64) time.Duration {
	if l == nil || l.interval == 0 {
		return 0
	}
	at := max(now, l.next)
	l.next = at + int64(l.interval)
	return time.Duration(at - now)
}

func (w *worker) limitTime(a arguments) any {
	l := w.limited(a.text("task_name"))
	if l == nil {
		return failed("unknown task")
	}
	seconds := func(name string) *float64 {
		if f, ok := a[name].(float64); ok {
			return &f
		}
		return nil
	}
	l.soft, l.hard = seconds("soft"), seconds("hard")
	return done("time limits set successfully")
}

// grow adds children to the pool.
func (w *worker) grow(n int) any {
	if w.pool == solo {
		return failed("AttributeError(\"'TaskPool' object has no attribute 'grow'\")")
	}
	for range n {
		child := w.main
		if w.pool == prefork {
			child = w.c.spawn(w.host)
		}
		w.idle = append(w.idle, child)
	}
	w.slots += n
	w.credit += prefetch * n
	w.fill()
	w.route()
	return done("pool will grow")
}

// shrink removes idle children from the pool.
func (w *worker) shrink(n int) any {
	switch {
	case w.pool == solo:
		return failed("AttributeError(\"'TaskPool' object has no attribute 'shrink'\")")
	case len(w.idle) < n || w.slots <= n:
		return failed("ValueError(\"Can't shrink pool. All processes busy!\")")
	}
	w.idle = w.idle[:len(w.idle)-n]
	w.slots -= n
	w.credit -= prefetch * n
	return done("pool will shrink")
}

func (w *worker) addConsumer(a arguments) any {
	name := a.text("queue")
	q := w.c.declare(name)
	if slices.Contains(w.queues, q) {
		return done("already consuming from " + name)
	}
	w.queues = append(w.queues, q)
	q.consumers = append(q.consumers, w)
	q.route()
	return done("add consumer " + name)
}

func (w *worker) cancelConsumer(a arguments) any {
	name := a.text("queue")
	if q := w.c.queues[name]; q != nil {
		w.queues = slices.DeleteFunc(w.queues, func(o *queue) bool { return o == q })
		q.consumers = slices.DeleteFunc(q.consumers, func(o *worker) bool { return o == w })
	}
	return done("no longer consuming from " + name)
}
