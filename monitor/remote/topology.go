package remote

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/state"
)

// Topology maps tasks and queues to workers.
type Topology struct {
	At time.Time // when it was last asked, zero if never
	// Tasks are the workers by the names of the tasks that they have registered, Celery's own included, Queues by the
	// queues that they consume from. Workers are sorted.
	Tasks, Queues map[string][]string
	Pools         map[string]Pool // by worker
	// MaxRSS is the most memory that the main process of each worker has used, as getrusage tells it: in KiB, on macOS in bytes.
	MaxRSS   map[string]int64
	Expected []string // live workers at that time, sorted
	// Missing are those that did not reply to the request for tasks or that for queues. Their earlier replies remain.
	Missing []string

	tasks, queues map[string][]string // by worker
}

// Topology returns which workers have which tasks and queues, refreshed now if it is older than MaxAge or workers
// have come or gone. It does not fail: workers that did not reply are in Missing.
func (i *Inspector) Topology(ctx context.Context) Topology {
	for range 3 { // a worker may have come up just then (startupDelay)
		i.checkMembers()
		i.once(ctx, &i.topology, i.inspectAll)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cached
}

// CachedTopology returns the cached Topology, and has it refreshed if it is older than MaxAge. It does not wait.
// Run keeps refreshing it while CachedTopology is called now and then.
func (i *Inspector) CachedTopology() Topology {
	i.checkMembers()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.want(&i.topology, i.now())
	return i.cached
}

// PeekTopology is CachedTopology for occasional callers: it triggers at most one refresh.
func (i *Inspector) PeekTopology() Topology {
	i.checkMembers()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.topology.due(i.now()) {
		i.topology.once = true
		i.wakeRun()
	}
	return i.cached
}

// topologyTimeout bounds an inspection of all workers, for which previews wait. It is that of celery inspect.
const topologyTimeout = time.Second

// inspectAll asks all workers for tasks, queues and pools. It ends what begin began.
func (i *Inspector) inspectAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, topologyTimeout)
	defer cancel()
	alive := slices.Compact(slices.Sorted(slices.Values(i.alive())))
	disconnected := !i.client.Connected()
	var tasks, queues map[string][]string
	var stats map[string]*Stats
	var all sync.WaitGroup
	all.Go(func() {
		tasks = callAll(ctx, i.client, alive, "registered", map[string]any{"builtins": true}, taskNames)
	})
	all.Go(func() { queues = callAll(ctx, i.client, alive, "active_queues", nil, queueNames) })
	all.Go(func() { stats = callAll(ctx, i.client, alive, "stats", nil, statsOf) })
	all.Wait()
	pools, rss := make(map[string]Pool, len(stats)), make(map[string]int64, len(stats))
	for node, s := range stats {
		pools[node] = s.Pool
		if n := whole(s.RUsage["maxrss"]); n != nil && *n > 0 {
			rss[node] = *n
		}
	}
	i.record(lastReports(queues, pools, i.now().UnixMicro()))

	i.mu.Lock()
	defer i.mu.Unlock()
	t := Topology{At: i.now(), Expected: alive}
	for _, node := range alive {
		_, reported := tasks[node]
		_, reportedQueues := queues[node]
		if !reported || !reportedQueues {
			t.Missing = append(t.Missing, node)
		}
	}
	t.tasks = carryOver(i.cached.tasks, tasks, alive)
	t.queues = carryOver(i.cached.queues, queues, alive)
	t.Tasks, t.Queues = invert(t.tasks), invert(t.queues)
	t.Pools, t.MaxRSS = carryOver(i.cached.Pools, pools, alive), carryOver(i.cached.MaxRSS, rss, alive)
	i.cached, i.disconnected = i.withPending(t, i.now()), disconnected
	i.end(&i.topology)
}

// lastReports joins what workers have reported at micros. One that has not reported its queues is left out.
func lastReports(queues map[string][]string, pools map[string]Pool, micros int64) map[string]state.LastReport {
	reports := make(map[string]state.LastReport, len(queues))
	for node, list := range queues {
		reports[node] = state.LastReport{At: micros, Pool: pools[node].Kind, Slots: pools[node].Slots, Queues: list}
	}
	return reports
}

// callAll calls all workers and returns their replies as read converts them, by worker.
func callAll[T any](
	ctx context.Context, c *Client, alive []string, method string, arguments map[string]any, read func(json.RawMessage) (T, bool),
) map[string]T {
	reported := make(map[string]T)
	a, err := c.Call(ctx, Request{Method: method, Arguments: arguments, Expect: alive, Timeout: topologyTimeout})
	if err != nil {
		return reported
	}
	for _, r := range a.Items {
		if problem(r) != "" {
			continue
		}
		if v, ok := read(r.Value); ok {
			reported[r.Node] = v
		}
	}
	return reported
}

// carryOver adds the earlier values of live workers that now has none of.
func carryOver[T any](before, now map[string]T, alive []string) map[string]T {
	for _, node := range alive {
		v, known := before[node]
		if _, reported := now[node]; known && !reported {
			now[node] = v
		}
	}
	return now
}

// invert returns workers by value.
func invert(byNode map[string][]string) map[string][]string {
	out := make(map[string][]string)
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		for _, name := range byNode[node] {
			if nodes := out[name]; len(nodes) == 0 || nodes[len(nodes)-1] != node {
				out[name] = append(nodes, node)
			}
		}
	}
	return out
}

// taskNames decodes a reply to registered.
func taskNames(v json.RawMessage) ([]string, bool) {
	return names(v, decodeRegistered, func(r RegisteredTask) string { return r.Name })
}

// queueNames decodes a reply to active_queues.
func queueNames(v json.RawMessage) ([]string, bool) {
	return names(v, decodeQueue, func(q ConsumedQueue) string { return q.Name })
}

// names decodes a list of what has names.
func names[T any](v json.RawMessage, read func(json.RawMessage) (T, bool), name func(T) string) ([]string, bool) {
	items, ok := elements(v)
	list := make([]string, 0, len(items))
	for _, item := range items[:min(len(items), maxNames)] {
		if v, ok := read(item); ok {
			list = append(list, name(v))
		}
	}
	return list, ok
}

// statsOf decodes a reply to stats.
func statsOf(v json.RawMessage) (*Stats, bool) {
	s := decodeStats(v)
	return s, s != nil
}
