package remote

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	minInterval  = 250 * time.Millisecond // between two rounds of one entry
	maxPending   = 1_000                  // that are remembered
	startupDelay = 3 * time.Second        // how long a worker that has come up may take until it receives requests
)

// pendingConsumer is a change of a worker's queues that it has acknowledged. gevent workers apply it seconds
// later, and report the old state until then.
type pendingConsumer struct {
	node, queue string
	consumes    bool
	until       time.Time
}

// Acknowledged records that a worker has acknowledged an acting method: what is cached of it is refreshed at once,
// whatever its age. Acknowledged changes of queues count immediately.
func (i *Inspector) Acknowledged(node, method string, arguments map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if s := i.nodes[node]; s != nil && now.Sub(s.usedAt) < watchedFor {
		i.renew(s)
	}
	switch method {
	case "add_consumer", "cancel_consumer":
		p := pendingConsumer{node: node, queue: fmt.Sprint(arguments["queue"]), consumes: method == "add_consumer", until: now.Add(MaxAge)}
		i.pending = append(slices.DeleteFunc(i.pending, func(old pendingConsumer) bool {
			return old.node == p.node && old.queue == p.queue || !now.Before(old.until)
		}), p)
		i.pending = i.pending[max(len(i.pending)-maxPending, 0):]
		i.cached = i.withPending(i.cached, now)
		i.renew(&i.topology)
	case "pool_grow", "pool_shrink", "pool_restart", "autoscale":
		i.renew(&i.topology)
	}
}

// renew has s refreshed once more, after the current round if there is one. The caller holds mu.
func (i *Inspector) renew(s *cacheEntry) {
	s.once, s.stale = true, true
	i.wakeRun()
}

// withPending returns t with the changes acknowledged since. The caller holds mu.
func (i *Inspector) withPending(t Topology, now time.Time) Topology {
	i.pending = slices.DeleteFunc(i.pending, func(p pendingConsumer) bool { return !now.Before(p.until) })
	if len(i.pending) == 0 {
		return t
	}
	t.queues = maps.Clone(t.queues)
	for _, p := range i.pending {
		reported, known := t.queues[p.node]
		switch {
		case !known || slices.Contains(reported, p.queue) == p.consumes:
		case p.consumes:
			t.queues[p.node] = append(slices.Clone(reported), p.queue)
		default:
			t.queues[p.node] = slices.DeleteFunc(slices.Clone(reported), func(q string) bool { return q == p.queue })
		}
	}
	t.Queues = invert(t.queues)
	return t
}

// checkMembers has the topology refreshed if workers have come or gone since, if one that has come up may have
// missed the request, or if there was no connection.
func (i *Inspector) checkMembers() {
	alive, connected := slices.Compact(slices.Sorted(slices.Values(i.alive()))), i.client.Connected()
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	maps.DeleteFunc(i.firstSeen, func(node string, _ time.Time) bool { return !slices.Contains(alive, node) })
	for _, node := range alive {
		if _, known := i.firstSeen[node]; !known {
			i.firstSeen[node] = now
		}
	}
	switch {
	case i.topology.round != nil:
	case i.disconnected && connected, !slices.Equal(alive, i.cached.Expected), i.missedRequest():
		i.topology.startedAt = time.Time{}
	}
}

// missedRequest reports whether a worker that has not replied yet had only just come up when it was asked: it is
// online before it receives requests. The caller holds mu.
func (i *Inspector) missedRequest() bool {
	return slices.ContainsFunc(i.cached.Missing, func(node string) bool {
		_, reported := i.cached.queues[node]
		came, alive := i.firstSeen[node]
		return !reported && alive && i.topology.startedAt.Sub(came) < startupDelay
	})
}
