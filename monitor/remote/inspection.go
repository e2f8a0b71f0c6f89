package remote

import (
	"encoding/json"
	"time"
)

// Inspection is what one worker reported of itself. Secrets are masked.
type Inspection struct {
	Node       string
	At         time.Time // time of its last reply, zero if none
	Refreshing bool      // a round is in progress
	// RequestedAt is the start of the newest completed round, zero if there is none.
	RequestedAt time.Time
	// Errors say why a part is missing, or older than At, by method: no reply from celery@w2 in 2 s.
	Errors map[string]string
	Times  map[string]time.Time // when each part was replied, by method
	// Totals are how long the lists were, by method. Of active, reserved, scheduled and revoked the first 1,000 are
	// kept.
	Totals map[string]int

	Stats      *Stats
	Active     []TaskInfo
	Reserved   []TaskInfo
	Scheduled  []ScheduledTask
	Revoked    []string
	Registered []RegisteredTask
	Queues     []ConsumedQueue
	Conf       map[string]json.RawMessage
	Clock      *int64
	Report     string // of celery report; set by Inspector.Report only
}

// Stats of a worker. Nil and empty are unknown.
type Stats struct {
	PID           int64
	Clock         int64
	Uptime        time.Duration
	Total         map[string]int64 // tasks accepted since it started, by name
	PrefetchCount *int64
	Pool          Pool
	Autoscaler    *Autoscaler
	Broker        map[string]json.RawMessage // masked
	RUsage        map[string]json.RawMessage
	Raw           json.RawMessage // everything, masked
}

// Pool of a worker.
type Pool struct {
	Implementation       string // as stats has it: celery.concurrency.prefork:TaskPool
	Kind                 string // prefork, threads, solo, gevent, eventlet
	MaxConcurrency       *int64
	Processes            []int64 // pids
	Slots                *int64  // tasks that can run at once now
	MaxTasksPerChild     string
	SoftLimit, HardLimit *float64 // default time limits, seconds
	Writes               map[string]json.RawMessage
}

// Autoscaler of a worker that has one.
type Autoscaler struct{ Min, Max, Current, Quantity int64 }

// TaskInfo describes a task that a worker holds.
type TaskInfo struct {
	ID                   string
	Name                 string
	Type                 string
	Args, Kwargs         string    // Python's repr, the first 4 kB
	StartedAt            time.Time // zero if it has not
	PID                  *int64    // of the pool process
	Acknowledged         bool
	Queue                string // routing key of its delivery
	Priority             *int64
	Redelivered          *bool
	SoftLimit, HardLimit *float64 // time limits of this task, seconds
}

// ScheduledTask is a task that waits in a worker for its ETA.
type ScheduledTask struct {
	ETA  time.Time
	Task TaskInfo
}

// RegisteredTask is a task that a worker can run.
type RegisteredTask struct {
	Name string
	Info map[string]string // rate_limit, exchange, routing_key, …
}

// ConsumedQueue is a queue that a worker consumes from.
type ConsumedQueue struct {
	Name         string
	Exchange     string
	ExchangeType string
	RoutingKey   string
	Durable      *bool
	Arguments    map[string]json.RawMessage
	MaxPriority  *int64
}
