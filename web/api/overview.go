package api

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// Overview is the cluster at a glance.
type Overview struct {
	Counts Counts `json:"counts"`
	Rates  Rates  `json:"rates"`
	Health Health `json:"health"`
}

// Counts are totals over the tasks and workers held in memory.
type Counts struct {
	Tasks       int            `json:"tasks"`
	ByState     map[string]int `json:"by_state" doc:"Tasks by state; every built-in state is present."`
	ByName      map[string]int `json:"by_name" doc:"Tasks by name, the 100 most frequent names."`
	Workers     map[string]int `json:"workers" doc:"Workers by status; every status is present."`
	Running     int            `json:"running" doc:"Tasks that have started, have not ended and are not lost, on workers that are heard of: what workers call active."`
	Unreachable int            `json:"unreachable" doc:"The same on workers that are offline."`
	Lost        int            `json:"lost" doc:"Unfinished tasks that are not expected to end, orphaned ones included."`
	Dismissed   int            `json:"dismissed" doc:"Unfinished tasks that somebody has dismissed."`
	Orphaned    int            `json:"orphaned" doc:"Tasks whose process has ended without reporting an end."`
	Returned    int            `json:"returned" doc:"Tasks whose process has ended without starting them: the broker delivers them again."`
	Evicted     uint64         `json:"evicted" doc:"Tasks dropped to bound memory."`
}

// Rates are per second, over the last ten full seconds.
type Rates struct {
	Events    float64 `json:"events"`
	Received  float64 `json:"received"`
	Succeeded float64 `json:"succeeded"`
	Failed    float64 `json:"failed"`
	Retried   float64 `json:"retried"`
}

// Health says how Umbel itself is doing.
type Health struct {
	Ready          bool              `json:"ready"`
	Broker         Broker            `json:"broker"`
	Store          Store             `json:"store"`
	Rejected       map[string]uint64 `json:"rejected" doc:"Events and messages that could not be used, by cause."`
	Messages       uint64            `json:"messages" doc:"Broker messages read."`
	Events         uint64            `json:"events" doc:"Events folded into the state."`
	LatencySeconds float64           `json:"latency_seconds" doc:"From the receipt of the newest batch until it was folded."`
}

// Broker is the state of the broker connection.
type Broker struct {
	URL         string  `json:"url" doc:"The password is masked."`
	Connected   bool    `json:"connected"`
	Since       Time    `json:"since" doc:"When connected last changed."`
	LastEventAt Time    `json:"last_event_at"`
	LastError   *string `json:"last_error" doc:"Why it is not connected."`
	NextTryAt   Time    `json:"next_try_at" doc:"When the next connection is tried, null if connected."`
	Attempts    int     `json:"attempts" doc:"Failed tries since it was last connected."`
	Loss        Loss    `json:"loss"`
}

// Loss is what may have been missed, from when an earlier process with this history wrote last.
type Loss struct {
	Forgets         bool    `json:"forgets" doc:"The broker keeps no events while Umbel is not connected: Redis never does, RabbitMQ does with --queue."`
	Gaps            int     `json:"gaps" doc:"Times that nobody listened to such a broker, without the present one."`
	GapSeconds      float64 `json:"gap_seconds" doc:"How long those were, in all."`
	LastGapAt       Time    `json:"last_gap_at" doc:"When the newest of them began."`
	UnseenTasks     int64   `json:"unseen_tasks" doc:"At most how many tasks began meanwhile, by what the workers count."`
	DroppedMessages uint64  `json:"dropped_messages" doc:"Messages dropped since they came faster than they could be read."`
}

// Store says how writing history goes. What waits is acknowledged to the broker once it is on disk.
type Store struct {
	LastError   *string `json:"last_error" doc:"Why the newest try to write failed, null if it did not."`
	FailedAt    Time    `json:"failed_at" doc:"When it failed."`
	Since       Time    `json:"since" doc:"When writing began to fail, null if it does not."`
	NextTryAt   Time    `json:"next_try_at" doc:"When it is tried again, null if it does not fail."`
	Waiting     int     `json:"waiting" doc:"Events that are not on disk yet."`
	Unsaved     int     `json:"unsaved" doc:"Tasks that changed since they were saved; their events may be on disk."`
	ActiveBytes int64   `json:"active_bytes" doc:"What active tasks take of the history, about; 0 while it is smaller than --max-db-size."`
	Oversized   bool    `json:"oversized" doc:"Active tasks alone take more than --max-db-size, which they do not count against."`
	Full        bool    `json:"full" doc:"So much waits that the broker keeps the rest."`

	Notices []string `json:"notices" nullable:"false" doc:"What was found wrong with the history when it was opened, and what to do."`
}

// maxNames bounds by_name: strangers choose how many task names there are.
const maxNames = 100

func fromCounts(c state.Counts) Counts {
	d := Counts{
		Tasks: c.Tasks, ByState: map[string]int{}, ByName: busiest(c.ByName), Workers: map[string]int{},
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

// busiest returns the entries with the highest counts, ties by name.
func busiest(counts map[string]int) map[string]int {
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
		Forgets: l.Forgets, Gaps: l.Outages, GapSeconds: l.OutageTime.Seconds(), LastGapAt: timeOf(l.LastOutage),
		UnseenTasks: l.MissedTasks, DroppedMessages: l.Dropped,
	}
}

func fromHealth(h view.Health) Health {
	d := Health{
		Ready: h.Ready, Rejected: map[string]uint64{}, Messages: h.Messages, Events: h.Events,
		LatencySeconds: h.Latency.Seconds(),
		Broker: Broker{
			URL: h.Broker.URL, Connected: h.Broker.Connected, Since: timeOf(h.Broker.Since),
			LastEventAt: timeOf(h.Broker.LastEventAt), LastError: text(h.Broker.LastError),
			NextTryAt: timeOf(h.Broker.NextTryAt), Attempts: h.Broker.Attempts, Loss: fromLoss(h.Broker.Loss),
		},
		Store: Store{
			LastError: text(h.Store.LastError), FailedAt: timeOf(h.Store.FailedAt), Since: timeOf(h.Store.Since),
			NextTryAt: timeOf(h.Store.NextTryAt), Waiting: h.Store.Waiting, Unsaved: h.Store.Unsaved, Full: h.Store.Full,
			Notices:     append([]string{}, h.Notices...),
			ActiveBytes: h.Store.Active, Oversized: h.Store.Oversized,
		},
	}
	maps.Copy(d.Rejected, h.Rejected)
	return d
}

func (a *api) overview(_ context.Context, _ *struct{}) (*answer[Overview], error) {
	var counts state.Counts
	a.backend.View(func(c *state.Cluster) { counts = c.Counts() })
	return &answer[Overview]{Body: Overview{
		Counts: fromCounts(counts), Rates: fromRates(a.backend.Rates()), Health: fromHealth(a.backend.Health()),
	}}, nil
}
