package api

import (
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/remote"
)

// Inspection is the result of inspecting a worker. Null means unknown; Errors says why.
type Inspection struct {
	Name       string            `json:"name"`
	At         Time              `json:"at" doc:"Time of the last reply; null if there was none."`
	Refreshing bool              `json:"refreshing" doc:"Whether a new inspection is in progress."`
	Errors     map[string]string `json:"errors" doc:"Why a part is missing, by inspection method."`
	Stats      *Stats            `json:"stats"`
	Active     []TaskInfo        `json:"active"`
	Reserved   []TaskInfo        `json:"reserved"`
	Scheduled  []TaskInfo        `json:"scheduled"`
	Revoked    []string          `json:"revoked" doc:"Task IDs."`
	Registered []RegisteredTask  `json:"registered"`
	Queues     []ConsumedQueue   `json:"queues"`
	Conf       map[string]any    `json:"conf" nullable:"true" doc:"Settings that differ from the defaults, with secrets masked."`
	Clock      *Int              `json:"clock"`
	Report     *string           `json:"report" doc:"Output of 'celery report', with secrets masked."`
}

// Stats are the statistics of a worker.
type Stats struct {
	PID       *Int           `json:"pid"`
	Uptime    *float64       `json:"uptime_seconds"`
	Prefetch  *Int           `json:"prefetch_count"`
	PoolKind  *string        `json:"pool_kind" example:"prefork"`
	Slots     *Int           `json:"slots" doc:"Current concurrency."`
	Processes []Int          `json:"processes" doc:"PIDs of the pool processes."`
	Total     map[string]Int `json:"total" doc:"Tasks accepted since the worker started, by name."`
	Raw       any            `json:"raw" doc:"Complete reply of the worker, with secrets masked."`
}

// TaskInfo is a task that a worker runs, has reserved or has scheduled.
type TaskInfo struct {
	ID           string   `json:"id"`
	Name         *string  `json:"name"`
	Args         *string  `json:"args" doc:"Python repr."`
	Kwargs       *string  `json:"kwargs" doc:"Python repr."`
	StartedAt    Time     `json:"started_at"`
	ETA          Time     `json:"eta"`
	PID          *Int     `json:"pid" doc:"PID of the pool process running the task."`
	Queue        *string  `json:"queue"`
	Priority     *Int     `json:"priority"`
	Redelivered  *bool    `json:"redelivered"`
	Acknowledged bool     `json:"acknowledged"`
	Soft         *float64 `json:"soft_time_limit"`
	Hard         *float64 `json:"time_limit"`
}

// RegisteredTask is a task that a worker can run.
type RegisteredTask struct {
	Name string            `json:"name"`
	Info map[string]string `json:"info" doc:"Task options such as rate_limit, exchange and routing_key."`
}

// ConsumedQueue is a queue that a worker consumes from.
type ConsumedQueue struct {
	Name         string  `json:"name"`
	Exchange     string  `json:"exchange" doc:"Empty for the default exchange."`
	ExchangeType *string `json:"exchange_type"`
	RoutingKey   string  `json:"routing_key"`
	Durable      *bool   `json:"durable"`
	MaxPriority  *Int    `json:"max_priority"`
}

func fromInspection(name string, i remote.Inspection) Inspection {
	return Inspection{
		Name: name, At: timeOf(i.At), Refreshing: i.Refreshing, Errors: nonNil(i.Errors), Stats: fromStats(i.Stats), Revoked: i.Revoked,
		Conf: raws(i.Conf), Clock: integer(i.Clock), Report: text(i.Report),
		Active: mapKnown(i.Active, fromTaskInfo), Reserved: mapKnown(i.Reserved, fromTaskInfo),
		Scheduled: mapKnown(i.Scheduled, func(s remote.ScheduledTask) TaskInfo {
			t := fromTaskInfo(s.Task)
			t.ETA = timeOf(s.ETA)
			return t
		}),
		Registered: mapKnown(i.Registered, func(r remote.RegisteredTask) RegisteredTask {
			return RegisteredTask{Name: r.Name, Info: nonNil(r.Info)}
		}),
		Queues: mapKnown(i.Queues, func(q remote.ConsumedQueue) ConsumedQueue {
			return ConsumedQueue{
				Name: q.Name, Exchange: q.Exchange, ExchangeType: text(q.ExchangeType), RoutingKey: q.RoutingKey,
				Durable: q.Durable, MaxPriority: integer(q.MaxPriority),
			}
		}),
	}
}

// mapKnown converts items; nil, for unknown, stays nil.
func mapKnown[S, T any](items []S, convert func(S) T) []T {
	if items == nil {
		return nil
	}
	return mapSlice(items, convert)
}

// nonNil returns m, or an empty map if m is nil.
func nonNil[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

func fromStats(s *remote.Stats) *Stats {
	if s == nil {
		return nil
	}
	d := &Stats{
		PID: positive(s.PID), Prefetch: integer(s.PrefetchCount), PoolKind: text(s.Pool.Kind),
		Slots: integer(s.Pool.Slots), Processes: mapKnown(s.Pool.Processes, func(pid int64) Int { return Int(pid) }),
		Total: map[string]Int{}, Raw: value(s.Raw),
	}
	if s.Uptime > 0 {
		d.Uptime = new(s.Uptime.Seconds())
	}
	for name, n := range s.Total {
		d.Total[name] = Int(n)
	}
	return d
}

func fromTaskInfo(r remote.TaskInfo) TaskInfo {
	return TaskInfo{
		ID: r.ID, Name: text(r.Name), Args: text(r.Args), Kwargs: text(r.Kwargs), StartedAt: timeOf(r.StartedAt), PID: integer(r.PID),
		Queue: text(r.Queue), Priority: integer(r.Priority), Redelivered: r.Redelivered, Acknowledged: r.Acknowledged,
		Soft: number(r.SoftLimit), Hard: number(r.HardLimit),
	}
}

func raws(object map[string]json.RawMessage) map[string]any {
	if object == nil {
		return nil
	}
	d := make(map[string]any, len(object))
	for k, v := range object {
		d[k] = value(v)
	}
	return d
}

// value returns what a worker sent, nil if it is not JSON.
func value(raw json.RawMessage) any {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}
