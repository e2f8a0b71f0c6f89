package simulate

import (
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/idempotency"
)

// Locks is where workers keep the locks of idempotent tasks, by the clock of the simulation.
type Locks interface {
	// Set stores a lock and reports whether it did: if absent is true, only where there is none.
	Set(key, value string, expiresAt time.Time, absent bool) bool
	Delete(key string)
}

const (
	captures      = "billing.capture"
	settles       = "billing.settle"
	completionTTL = 24 * time.Hour
	skipTime      = time.Millisecond // of a run that is turned away
)

// idempotentKinds are tasks that take a lock: one whose lock names its task, and one whose lock expires too early.
func idempotentKinds() []kind {
	return []kind{
		{
			name: captures, queue: "billing", median: 1200 * time.Millisecond, sigma: 0.5, lockTTL: 10 * time.Minute, fenced: true,
			call: func(d rng) (string, string) {
				return "()", fmt.Sprintf("{'order': 'ORD-%d', 'cents': %d}", d.upTo(10_000, 99_999), d.upTo(400, 39_000))
			},
			result: func(d rng) string { return fmt.Sprintf("{'charge': 'ch_%x', 'captured': True}", d.Uint64()) },
		},
		{
			name: settles, queue: "billing", median: 40 * time.Second, sigma: 0.1, lockTTL: 15 * time.Second,
			call: func(d rng) (string, string) {
				return "()", fmt.Sprintf("{'merchant': %d, 'day': '2026-11-%02d'}", d.upTo(100, 999), d.upTo(1, 28))
			},
			result: func(d rng) string { return fmt.Sprintf("{'payouts': %d}", d.upTo(1, 40)) },
		},
	}
}

// scheduleLocks plans calls of idempotent tasks: most run once, some are sent twice, one dies and leaves its lock, and some
// outlive theirs, so that the same call runs twice.
func (c *Cluster) scheduleLocks() {
	s := time.Duration(max(1, 20/c.opts.Rate) * float64(time.Second)) // at low rates they would be too many
	from := client{process: c.spawn(c.hosts[0])}
	twice := func(cl call, after time.Duration) {
		cl.args, cl.kwargs = cl.kind.call(c.rng)
		c.send(from, cl)
		if after > 0 {
			cl.dies = false
			c.after(after, func() { c.send(from, cl) })
		}
	}
	c.scheduleIncident(s, 2*s, 3*s, 6*s, func() bool {
		after := time.Duration(0)
		if c.rng.chance(0.3) {
			after = c.rng.between(200*time.Millisecond, 4*time.Second)
		}
		twice(call{kind: c.kinds[captures]}, after)
		return true
	})
	c.scheduleIncident(40*s, 60*s, 240*s, 300*s, func() bool {
		twice(call{kind: c.kinds[captures], dies: true}, c.rng.between(8*time.Second, 12*time.Second))
		return true
	})
	c.scheduleIncident(5*s, 10*s, 65*s, 75*s, func() bool {
		twice(call{kind: c.kinds[settles]}, c.rng.between(22*time.Second, 26*time.Second))
		return true
	})
}

// lockKey is the key of the lock of a task, empty if its call has none.
func (t *task) lockKey() string {
	text, ok := celery.ParseRepr(t.kwargs)
	if !ok {
		return ""
	}
	kwargs, err := idempotency.Parse(text)
	if err != nil {
		return ""
	}
	print, err := idempotency.Fingerprint(t.kind.name, kwargs)
	if err != nil {
		return ""
	}
	return idempotency.KeyPrefix + print
}

// acquire takes the lock of an idempotent task. It is false if the call has completed or runs elsewhere.
func (w *worker) acquire(x *execution) bool {
	t := x.m.task
	if t.kind.lockTTL == 0 {
		return true
	}
	key := t.lockKey()
	value := idempotency.LockValue{State: idempotency.Processing}
	if t.kind.fenced {
		value.Token, value.TaskID = fmt.Sprintf("%016x%016x", w.c.rng.Uint64(), w.c.rng.Uint64()), t.id
	}
	if !w.c.opts.Locks.Set(key, value.String(), w.c.expiry(t.kind.lockTTL), true) {
		x.result = "{'status': 'skipped', 'reason': 'concurrent_execution'}"
		if t.completed(key) {
			x.result = "{'status': 'skipped', 'reason': 'already_completed'}"
		}
		return false
	}
	x.lock, x.value = key, value
	return true
}

// completed reports whether a run with the same call has completed.
func (t *task) completed(key string) bool { return t.kind.done[key] }

// release completes the lock of x or, if it failed, deletes it. A child that is killed leaves it.
func (w *worker) release(x *execution, f *fault) {
	switch {
	case x.lock == "" || f != nil && f.how == dies:
	case f != nil:
		w.c.opts.Locks.Delete(x.lock)
	default:
		x.value.State = idempotency.Completed
		w.c.opts.Locks.Set(x.lock, x.value.String(), w.c.expiry(completionTTL), false)
		if len(x.m.task.kind.done) > maxDone {
			clear(x.m.task.kind.done)
		}
		x.m.task.kind.done[x.lock] = true
	}
}

// maxDone bounds the completed calls that a kind remembers.
const maxDone = 10_000

// expiry is the time at which a TTL that begins now ends.
func (c *Cluster) expiry(ttl time.Duration) time.Time { return time.Unix(0, c.now).Add(ttl) }
