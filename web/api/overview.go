package api

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/gossip"
)

// Overview summarizes the cluster.
type Overview struct {
	Counts Counts `json:"counts"`
	Rates  Rates  `json:"rates"`
	Health Health `json:"health"`
}

// Counts are totals over the tasks and workers held in memory.
type Counts struct {
	Tasks       int            `json:"tasks"`
	ByState     map[string]int `json:"by_state" doc:"Tasks by state, including built-in states with none."`
	ByName      map[string]int `json:"by_name" doc:"Tasks by name; the 100 most frequent names."`
	Workers     map[string]int `json:"workers" doc:"Workers by status, including statuses with none."`
	Running     int            `json:"running" doc:"Tasks running on online workers."`
	Unreachable int            `json:"unreachable" doc:"Tasks last seen running on workers that are now offline."`
	Lost        int            `json:"lost" doc:"Unfinished tasks that are not expected to finish, including orphaned ones."`
	Dismissed   int            `json:"dismissed" doc:"Unfinished tasks that a user dismissed."`
	Orphaned    int            `json:"orphaned" doc:"Tasks whose process exited without reporting a result."`
	Returned    int            `json:"returned" doc:"Tasks whose worker process exited before starting them; the broker redelivers them."`
	Evicted     uint64         `json:"evicted" doc:"Tasks evicted to bound memory."`
}

// Rates are per second, over the last ten full seconds.
type Rates struct {
	Events    float64 `json:"events"`
	Received  float64 `json:"received"`
	Succeeded float64 `json:"succeeded"`
	Failed    float64 `json:"failed"`
	Retried   float64 `json:"retried"`
}

// Health is the state of Umbel itself.
type Health struct {
	Ready          bool              `json:"ready"`
	Restoring      bool              `json:"restoring" doc:"Whether finished tasks of the history are still being loaded into memory. Lists are complete meanwhile; counts of tasks are too low."`
	Broker         Broker            `json:"broker"`
	Store          Store             `json:"store"`
	Rejected       map[string]uint64 `json:"rejected" doc:"Rejected events and messages by cause."`
	Messages       uint64            `json:"messages" doc:"Broker messages received."`
	Events         uint64            `json:"events" doc:"Events applied."`
	LatencySeconds float64           `json:"latency_seconds" doc:"Time from receiving the newest batch to applying it."`
	MissingStarted Int               `json:"missing_started" doc:"Number of task-started events that workers have provably sent and that have not been received so far; there may be more."`
	Gaps           []Gap             `json:"gaps" nullable:"false" doc:"Where they are missing, oldest first; the newest 200."`
	Gossip         Gossip            `json:"gossip" doc:"Which workers hear each other's events, as their clocks tell. It is consistent with them, not proved; empty without gossip, and as of an instant."`
	Watermark      Watermark         `json:"watermark"`
	LateEvents     uint64            `json:"late_events" doc:"Events of workers that came after the watermark had passed them, since Umbel started; 0 while connections keep their order."`
}

// Gossip says which workers hear each other.
type Gossip struct {
	Islands [][]string `json:"islands" nullable:"false" doc:"Workers whose clocks advance together, two or more in each."`
	Deaf    []Deaf     `json:"deaf" nullable:"false" doc:"Workers whose clocks stay behind what others sent long before: they do not hear these, or run without gossip. The first 500, by name."`
	Pairs   int        `json:"deaf_total" doc:"How many there are in all."`
}

// Deaf is a worker that does not seem to hear another.
type Deaf struct {
	Worker  string `json:"worker"`
	Speaker string `json:"speaker" doc:"Worker that it does not hear."`
	Since   Time   `json:"since" doc:"When the first heartbeat that it has not heard was received."`
	Longer  bool   `json:"longer" doc:"Whether it began before what is remembered."`
}

// maxDeaf bounds the list: among n workers without gossip there are n² pairs.
const maxDeaf = 500

func fromGossip(r gossip.Report) Gossip {
	d := Gossip{Islands: append([][]string{}, r.Islands...), Pairs: len(r.Deaf)}
	d.Deaf = mapSlice(r.Deaf[:min(len(r.Deaf), maxDeaf)], func(v gossip.Deaf) Deaf { return Deaf{v.Worker, v.Speaker, Time(v.Since), v.Longer} })
	return d
}

// Watermark says up to when all events of workers have been received, but for lost ones.
type Watermark struct {
	CompleteTo Time     `json:"complete_to" doc:"What counted workers sent before has been received, unless it is lost; null if no worker counts."`
	Bounded    bool     `json:"bounded" doc:"Whether it is known how far the clocks of these workers are ahead at most; if not, complete_to may be too late by the delay of their events."`
	Worker     *string  `json:"worker" doc:"Worker whose events are known for the shortest time."`
	Behind     bool     `json:"behind" doc:"Whether that is longer ago than its heartbeats explain, or the broker is unavailable."`
	Workers    int      `json:"workers" doc:"Workers that count."`
	Uncounted  int      `json:"uncounted" doc:"Other workers that are not offline: those that are stopping, and those of which two heartbeats have not come."`
	Names      []string `json:"uncounted_names" nullable:"false" doc:"The first ten of them."`
}

func fromWatermark(m state.Watermark) Watermark {
	return Watermark{
		CompleteTo: Time(m.Micros), Bounded: m.Bounded && m.Micros != 0, Worker: text(m.Worker), Behind: m.Behind,
		Workers: m.Workers, Uncounted: m.Uncounted, Names: append([]string{}, m.UncountedNames...),
	}
}

// Gap is a part of the events of a worker process in which task-started events are missing.
type Gap struct {
	Worker      string  `json:"worker" example:"celery@host"`
	PID         Int     `json:"pid"`
	Task        *string `json:"task_id" doc:"Task that has ended without it; null if the counts of heartbeats tell."`
	Missing     Int     `json:"missing" doc:"Number of task-started events missing, at least."`
	AfterClock  Int     `json:"after_clock" doc:"The missing events have greater Lamport clocks, as the process reports them."`
	BeforeClock Int     `json:"before_clock" doc:"The missing events have lower ones."`
	After       Time    `json:"after" doc:"Time of the event with after_clock, by the worker's clock."`
	Before      Time    `json:"before" doc:"Time of the event with before_clock, by the worker's clock."`
}

func fromGap(g view.Gap) Gap {
	return Gap{
		Worker: g.Worker, PID: Int(g.PID), Task: text(g.Task), Missing: Int(g.Missing), AfterClock: Int(g.After), BeforeClock: Int(g.Before),
		After: Time(g.AfterMicros), Before: Time(g.BeforeMicros),
	}
}

// Broker is the state of the broker connection.
type Broker struct {
	URL         string  `json:"url" doc:"Broker URL with the password masked."`
	Connected   bool    `json:"connected"`
	Since       Time    `json:"since" doc:"Time of the last change of connected."`
	LastEventAt Time    `json:"last_event_at"`
	LastError   *string `json:"last_error" doc:"Why the connection failed."`
	NextTryAt   Time    `json:"next_try_at" doc:"Time of the next connection attempt; null if connected."`
	Attempts    int     `json:"attempts" doc:"Failed connection attempts since the last connection."`
	Loss        Loss    `json:"loss"`
}

// Loss says what may have been missed, including while no Umbel with this history was running.
type Loss struct {
	Forgets         bool    `json:"forgets" doc:"Whether events are lost while Umbel is disconnected: always with Redis, and with RabbitMQ unless --queue is given."`
	Outages         int     `json:"outages" doc:"Number of past outages during which events were lost."`
	OutageSeconds   float64 `json:"outage_seconds" doc:"Total length of these outages."`
	LastOutageAt    Time    `json:"last_outage_at" doc:"Start of the latest outage."`
	MissedTasks     int64   `json:"missed_tasks" doc:"Upper bound on the tasks that started during outages, from the workers' counters."`
	DroppedMessages uint64  `json:"dropped_messages" doc:"Messages dropped because they arrived faster than they could be processed."`
}

// Store is the state of writing history. Pending events are acknowledged to the broker once they are on disk.
type Store struct {
	LastError   *string `json:"last_error" doc:"Error of the last write; null if it succeeded."`
	FailedAt    Time    `json:"failed_at" doc:"When the last write failed."`
	Since       Time    `json:"since" doc:"When writes started to fail; null if they succeed."`
	NextTryAt   Time    `json:"next_try_at" doc:"Time of the next attempt; null if writes succeed."`
	Waiting     int     `json:"waiting" doc:"Events not yet on disk."`
	Unsaved     int     `json:"unsaved" doc:"Tasks that changed since they were last saved; their events may be on disk."`
	ActiveBytes int64   `json:"active_bytes" doc:"Approximate size of active tasks in the history; 0 while the history is smaller than --max-db-size."`
	OverMaxSize bool    `json:"over_max_size" doc:"Whether active tasks alone exceed --max-db-size; they do not count towards the limit."`
	Paused      bool    `json:"paused" doc:"Whether receiving is paused until pending events are on disk."`

	Notices []string `json:"notices" nullable:"false" doc:"Problems found when the history was opened, and what to do about them."`
}

// maxNames bounds by_name: the number of task names is not under our control.
const maxNames = 100

func fromCounts(c state.Counts) Counts {
	d := Counts{
		Tasks: c.Tasks, ByState: map[string]int{}, ByName: mostFrequent(c.ByName), Workers: map[string]int{},
		Running: c.Running, Unreachable: c.Unreachable, Lost: c.Lost, Dismissed: c.Dismissed, Orphaned: c.Orphaned, Returned: c.Returned, Evicted: c.Evicted,
	}
	for _, s := range state.States() {
		d.ByState[string(s)] = 0
	}
	for s, n := range c.ByState {
		d.ByState[string(s)] = n
	}
	for _, s := range []state.Status{state.Online, state.Late, state.Offline, state.Stopping} {
		d.Workers[string(s)] = c.Workers[s]
	}
	return d
}

// mostFrequent returns the maxNames entries with the highest counts, ties by name.
func mostFrequent(counts map[string]int) map[string]int {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	top := map[string]int{}
	for _, name := range names[:min(len(names), maxNames)] {
		top[name] = counts[name]
	}
	return top
}

func fromRates(r view.Rates) Rates {
	return Rates{
		Events: r.Events, Received: r.Received, Succeeded: r.Succeeded, Failed: r.Failed, Retried: r.Retried,
	}
}

func fromLoss(l view.Loss) Loss {
	return Loss{
		Forgets: l.Ephemeral, Outages: l.Outages, OutageSeconds: l.OutageTime.Seconds(), LastOutageAt: timeOf(l.LastOutage),
		MissedTasks: l.MissedTasks, DroppedMessages: l.Dropped,
	}
}

func fromHealth(h view.Health) Health {
	d := Health{
		Ready: h.Ready, Restoring: h.Restoring, Rejected: map[string]uint64{}, Messages: h.Messages, Events: h.Events,
		LatencySeconds: h.Latency.Seconds(), MissingStarted: Int(h.MissingStarted), Gaps: mapSlice(h.Gaps, fromGap),
		Gossip: fromGossip(h.Gossip), Watermark: fromWatermark(h.Watermark), LateEvents: h.LateEvents,
		Broker: Broker{
			URL: h.Broker.URL, Connected: h.Broker.Connected, Since: timeOf(h.Broker.Since),
			LastEventAt: timeOf(h.Broker.LastEventAt), LastError: text(h.Broker.LastError),
			NextTryAt: timeOf(h.Broker.NextAttemptAt), Attempts: h.Broker.Attempts, Loss: fromLoss(h.Broker.Loss),
		},
		Store: Store{
			LastError: text(h.Store.LastError), FailedAt: timeOf(h.Store.FailedAt), Since: timeOf(h.Store.Since),
			NextTryAt: timeOf(h.Store.NextAttemptAt), Waiting: h.Store.PendingEvents, Unsaved: h.Store.UnsavedTasks, Paused: h.Store.Backpressure,
			Notices:     append([]string{}, h.Notices...),
			ActiveBytes: h.Store.ActiveBytes, OverMaxSize: h.Store.Oversized,
		},
	}
	maps.Copy(d.Rejected, h.Rejected)
	return d
}

func (a *api) overview(_ context.Context, _ *struct{}) (*response[Overview], error) {
	health := a.backend.Health() // first, so that every event that it counts is in the counts of tasks
	var counts state.Counts
	a.backend.View(func(c state.View) { counts = c.Counts() })
	return &response[Overview]{Body: Overview{
		Counts: fromCounts(counts), Rates: fromRates(a.backend.Rates()), Health: fromHealth(health),
	}}, nil
}
