package flower

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

const (
	connectGrace = time.Second     // to send the requests
	inspectPause = 5 * time.Second // between rounds because of workers that were never inspected
	maxInspected = 1_000           // workers of which replies are kept
	maxReplies   = 64 << 20        // bytes of them; the workers inspected longest ago are forgotten first
	maxReply     = 4 << 20         // bytes of one
)

// method is an inspection that Flower makes.
type method struct {
	name      string
	arguments map[string]any
	alone     bool // only when one worker is inspected, since its reply may be long
}

// methods are in Flower's order.
func methods() []method {
	return []method{
		{name: "stats"},
		{name: "active_queues"},
		{name: "registered", arguments: map[string]any{"taskinfoitems": []string{}}},
		{name: "scheduled", alone: true},
		{name: "active", arguments: map[string]any{"safe": true}, alone: true},
		{name: "reserved", alone: true},
		{name: "revoked", alone: true},
		{name: "conf", arguments: map[string]any{"with_defaults": false}},
	}
}

// inspections keep what workers replied until they are inspected again, as Flower does. They are safe for concurrent use.
type inspections struct {
	client  *remote.Client
	timeout time.Duration // for the replies of workers
	alive   func() []string
	now     func() time.Time

	mu      sync.Mutex
	workers map[string]inspected     // replaced, never changed
	rounds  map[string]chan struct{} // that are in progress, by worker, empty for all; closed at their end
	last    time.Time                // when the last round of all began
}

// inspected is what one worker replied, by method.
type inspected struct {
	replies map[string]json.RawMessage
	at      time.Time // of the newest
	size    int
}

func newInspections(a *API) *inspections {
	i := &inspections{timeout: a.InspectTimeout, now: a.Now, workers: make(map[string]inspected), rounds: make(map[string]chan struct{})}
	if a.Commands != nil {
		i.client = a.Commands.Client
	}
	i.alive = func() (names []string) {
		a.Backend.View(func(c state.View) {
			for _, w := range c.Workers() {
				if w.Status != state.Offline {
					names = append(names, w.Name)
				}
			}
		})
		return names
	}
	return i
}

// all returns what is known of all workers. Those that have come since are inspected first.
func (i *inspections) all(ctx context.Context) map[string]inspected {
	alive := i.alive()
	i.mu.Lock()
	due := i.now().Sub(i.last) >= inspectPause && slices.ContainsFunc(alive, func(name string) bool { _, ok := i.workers[name]; return !ok })
	i.mu.Unlock()
	if due {
		i.refresh(ctx, "")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.workers)
}

// one returns what is known of a worker, which is inspected first if it never was.
func (i *inspections) one(ctx context.Context, name string) (inspected, bool) {
	i.mu.Lock()
	w, ok := i.workers[name]
	i.mu.Unlock()
	if !ok && slices.Contains(i.alive(), name) {
		i.refresh(ctx, name)
		i.mu.Lock()
		w, ok = i.workers[name]
		i.mu.Unlock()
	}
	return w, ok
}

// refresh inspects a worker, or all if the name is empty, and waits until it has, or ctx ends. A round in progress is not
// repeated.
func (i *inspections) refresh(ctx context.Context, name string) {
	if i.client == nil {
		return
	}
	i.mu.Lock()
	ended, running := i.rounds[name]
	if !running {
		ended = make(chan struct{})
		i.rounds[name] = ended
		if name == "" {
			i.last = i.now()
		}
	}
	i.mu.Unlock()
	if running {
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return
	}
	i.round(context.WithoutCancel(ctx), name) // others wait for it too
	i.mu.Lock()
	delete(i.rounds, name)
	i.mu.Unlock()
	close(ended)
}

// round asks everything at once.
func (i *inspections) round(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, i.timeout+connectGrace)
	defer cancel()
	alive := i.alive()
	var asked sync.WaitGroup
	for _, m := range methods() {
		if m.alone && name == "" {
			continue
		}
		request := remote.Request{Method: m.name, Arguments: m.arguments, Expect: alive, Timeout: i.timeout}
		if name != "" {
			request.Destination, request.Expect = []string{name}, nil
		}
		asked.Go(func() {
			replies, err := i.client.Call(ctx, request)
			if err != nil { // as in Flower: what is known stands
				return
			}
			for _, reply := range replies.Items {
				if reply.Node != "" && reply.Undecodable == "" && reply.Error == "" && len(reply.Value) <= maxReply {
					i.keep(reply.Node, m.name, reply.Value)
				}
			}
		})
	}
	asked.Wait()
}

// keep notes a reply.
func (i *inspections) keep(name, method string, value json.RawMessage) {
	if method == "stats" {
		value = withoutAlternates(value)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	old := i.workers[name]
	w := inspected{replies: map[string]json.RawMessage{}, at: i.now(), size: old.size - len(old.replies[method]) + len(value)}
	maps.Copy(w.replies, old.replies)
	w.replies[method] = value
	i.workers[name] = w
	size := 0
	for _, other := range i.workers {
		size += other.size
	}
	for len(i.workers) > 1 && (len(i.workers) > maxInspected || size > maxReplies) {
		oldest := name
		for n, other := range i.workers {
			if other.at.Before(i.workers[oldest].at) {
				oldest = n
			}
		}
		if oldest == name {
			return
		}
		size -= i.workers[oldest].size
		delete(i.workers, oldest)
	}
}

// withoutAlternates removes the other addresses of the broker, which may hold passwords, as Flower does.
func withoutAlternates(stats json.RawMessage) json.RawMessage {
	var all, broker map[string]json.RawMessage
	if json.Unmarshal(stats, &all) != nil || json.Unmarshal(all["broker"], &broker) != nil {
		return stats
	}
	delete(broker, "alternates")
	var err error
	if all["broker"], err = json.Marshal(broker); err != nil {
		return stats
	}
	without, err := json.Marshal(all)
	if err != nil {
		return stats
	}
	return without
}
