package remote

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	minInterval  = 250 * time.Millisecond // least time between two rounds of one subject
	maxPending   = 1_000                  // that are remembered
	startupDelay = 3 * time.Second        // how long a worker that has come up may take until it hears what it is asked
)

// promise is what a worker has answered that it will do. Some do it seconds later (gevent), and tell meanwhile what was.
type pendingConsumer struct {
	node, queue string
	consumes    bool
	until       time.Time
}

// Obeyed has what is known of a worker asked anew at once, Fresh or not: it has answered that it does what an acting method
// wants of it. What it has answered of queues counts as known.
func (i *Inspector) Acknowledged(node, method string, arguments map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if s := i.nodes[node]; s != nil && now.Sub(s.used) < watchedFor {
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

// renew has s asked once more, after the round that goes on if there is one. The caller holds mu.
func (i *Inspector) renew(s *cacheEntry) {
	s.once, s.renewed = true, true
	i.wakeRun()
}

// promised is what workers have told, with what they have promised since. Whatever they have kept is forgotten. The caller
// holds mu.
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

// welcome has the topology asked anew if workers have come up or gone since, if one that has come up may not have heard, or
// if there was no line to ask by.
func (i *Inspector) checkMembers() {
	alive, connected := slices.Compact(slices.Sorted(slices.Values(i.alive()))), i.client.Status().Connected
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
		i.topology.asked = time.Time{}
	}
}

// deaf reports whether a worker that has told nothing yet was asked for the last time when it had just come up: it is online
// before it hears. The caller holds mu.
func (i *Inspector) missedRequest() bool {
	return slices.ContainsFunc(i.cached.Missing, func(node string) bool {
		_, reported := i.cached.queues[node]
		came, alive := i.firstSeen[node]
		return !reported && alive && i.topology.asked.Sub(came) < startupDelay
	})
}
