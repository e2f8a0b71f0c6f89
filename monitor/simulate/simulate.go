// Package simulate simulates a Celery cluster, the workers and clients of a small web shop, and generates the
// event messages that they publish, byte for byte as Celery would write them. It runs in virtual time from a seed,
// so a run can be repeated, unless it gets input: the workers respond to remote control and execute tasks from
// outside. It opens no connection, runs no task, folds no event, and reads the wall clock only to pace Run.
package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// MaxRate is the greatest Rate.
const MaxRate = 100_000

// defaultQueue is Celery's task_default_queue.
const defaultQueue = "celery"

// minWorkers is the number of workers with a role of their own.
const minWorkers = 6

// Options of a Cluster. Start is required.
type Options struct {
	Seed    uint64        // the same seed and options give the same messages, byte for byte
	Start   time.Time     // when the simulation begins; Run publishes what is past at once
	Rate    float64       // tasks per second on average, at most MaxRate; 0 means 20
	Workers int           // at least 6; 0 means 6
	Length  time.Duration // how long clients send tasks; 0 means forever
	// Duplicates makes a client send some charges twice, as tasks of their own.
	Duplicates bool
	Deploys    Deploys
	Hung       time.Duration // when a task begins that does not end, since the start; 0 for none
	Truth      bool          // remember every task for Truth, at about 1 kB each

	// DefaultQueue is the name of the queue for tasks that have no other, celery if empty.
	DefaultQueue string
	// Declared, if not nil, is called by New and Run with the name of every queue that workers consume from, once.
	Declared func(queue string)
	// Locks, if not nil, holds the locks of idempotent tasks. Without it there are no such tasks.
	Locks Locks
}

// Cluster is one simulation. It is not safe for concurrent use.
type Cluster struct {
	opts   Options
	rng    rng
	remote rng    // for remote control, so that it does not change the rest of the simulation
	salt   uint64 // of ids: another one for each Start
	now    int64  // virtual time, ns since 1970 UTC
	end    int64  // when clients stop, 0 if never
	seq    uint64
	open   int // task messages that are not finished
	events eventHeap
	kinds  map[string]*kind

	hosts     []*host
	queues    map[string]*queue
	workers   []*worker
	gossiping []*worker
	clients   []client
	periodic  float64 // tasks per second that beat sends
	requests  []request

	hung bool // the task that does not end has begun

	recent    [12]Delivery // the newest deliveries, a ring
	delivered int          // deliveries so far
	tasks     []*task      // if Options.Truth

	calls  chan func()   // from outside, executed by Run
	closed chan struct{} // closed when Run has returned
}

// Delivery is one message as it reaches a consumer of the event exchange.
type Delivery struct {
	At time.Time // virtual arrival time
	broker.Message
}

// New validates o and sets up the cluster. No event has happened yet.
func New(o Options) (*Cluster, error) {
	if o.Rate == 0 {
		o.Rate = 20
	}
	if o.Workers == 0 {
		o.Workers = minWorkers
	}
	o.DefaultQueue = cmp.Or(o.DefaultQueue, defaultQueue)
	switch {
	case o.Start.IsZero():
		return nil, errors.New("simulate: Start is required")
	case math.IsNaN(o.Rate) || o.Rate < 0 || o.Rate > MaxRate:
		return nil, fmt.Errorf("simulate: Rate is %v, must be 0 to %d", o.Rate, MaxRate)
	case o.Workers < minWorkers:
		return nil, fmt.Errorf("simulate: Workers is %d, must be 0 or at least %d", o.Workers, minWorkers)
	case o.Length < 0:
		return nil, fmt.Errorf("simulate: Length is %v, must not be negative", o.Length)
	}
	c := &Cluster{opts: o, rng: newRNG(o.Seed), remote: newRNG(^o.Seed), now: o.Start.UnixNano(), kinds: kinds(o.DefaultQueue, o.Locks != nil), calls: make(chan func(), maxCalls), closed: make(chan struct{})}
	if o.Length > 0 {
		c.end = c.now + int64(o.Length)
	}
	c.salt = uint64(o.Start.UnixNano()) * 0x9e3779b97f4a7c15 // an odd number without a pattern
	c.setUp()
	return c, nil
}

// Next returns the next message in order of arrival. It is false at the end: Length has passed, every task has
// ended and the workers have shut down.
func (c *Cluster) Next() (Delivery, bool) {
	for !c.events.empty() {
		e := c.events.pop()
		c.now = e.at
		if e.do != nil {
			e.do()
			continue
		}
		c.recent[c.delivered%len(c.recent)] = *e.out
		c.delivered++
		return *e.out, true
	}
	return Delivery{}, false
}

// over reports whether clients have stopped and no task is left.
func (c *Cluster) over() bool { return c.ended() && c.open == 0 }

func (c *Cluster) ended() bool { return c.end > 0 && c.now >= c.end }

// at plans do for the virtual time t, or for now if t is past.
func (c *Cluster) at(t int64, do func()) { c.push(entry{at: max(t, c.now), do: do}) }

func (c *Cluster) after(d time.Duration, do func()) { c.at(c.now+int64(d), do) }

func (c *Cluster) push(e entry) {
	c.seq++
	e.seq = c.seq
	c.events.push(e)
}
