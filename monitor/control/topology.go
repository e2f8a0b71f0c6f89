package control

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Topology is which workers have which tasks and queues.
type Topology struct {
	At time.Time // when it was last asked, zero if never
	// Tasks are the workers by the names of the tasks that they have registered, Celery's own included, Queues by the
	// queues that they consume from. Workers are sorted.
	Tasks, Queues map[string][]string
	Pools         map[string]Pool // by worker
	Asked         []string        // workers that should have answered, sorted
	// Missing are those that did not, to one of both questions. What they told before stands.
	Missing []string

	tasks, queues map[string][]string // by worker
}

// Topology returns which workers have which tasks and queues, asked now unless it is Fresh. It does not fail: whom it
// could not ask it names.
func (i *Inspector) Topology(ctx context.Context) Topology {
	i.once(ctx, &i.topology, i.survey)
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known
}

// Known returns the Topology as last asked, and has it asked again if it is not Fresh. It does not wait.
func (i *Inspector) Known() Topology {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	i.topology.wanted = now
	if i.topology.due(now) {
		i.stir()
	}
	return i.known
}

// survey asks all workers what they have. It ends what begin began.
func (i *Inspector) survey(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	alive := slices.Compact(slices.Sorted(slices.Values(i.alive())))
	var tasks, queues map[string][]string
	var pools map[string]Pool
	var all sync.WaitGroup
	all.Go(func() {
		tasks = i.everybody(ctx, alive, "registered", map[string]any{"builtins": true}, taskNames)
	})
	all.Go(func() {
		queues = i.everybody(ctx, alive, "active_queues", nil, queueNames)
	})
	all.Go(func() { pools = i.pools(ctx, alive) })
	all.Wait()

	i.mu.Lock()
	defer i.mu.Unlock()
	t := Topology{At: i.now(), Asked: alive}
	for _, node := range alive {
		_, told := tasks[node]
		_, toldToo := queues[node]
		if !told || !toldToo {
			t.Missing = append(t.Missing, node)
		}
	}
	t.tasks = stand(i.known.tasks, tasks, alive)
	t.queues = stand(i.known.queues, queues, alive)
	t.Tasks, t.Queues = invert(t.tasks), invert(t.queues)
	t.Pools = standing(i.known.Pools, pools, alive)
	i.known = t
	i.end(&i.topology)
}

// everybody asks all workers for names, and returns them by worker.
func (i *Inspector) everybody(
	ctx context.Context, alive []string, method string, arguments map[string]any, names func(*Inspection) []string,
) map[string][]string {
	a, err := i.client.Ask(ctx, Question{Method: method, Arguments: arguments, Expect: alive, Timeout: patience})
	if err != nil {
		return nil
	}
	told := make(map[string][]string)
	for _, r := range a.Replies {
		var one Inspection
		if problem(r) == "" && decodeNames(&one, method, r.Value) {
			told[r.Node] = append(told[r.Node], names(&one)...)
		}
	}
	return told
}

// stand adds what workers that are alive told before and not now.
func stand(before, now map[string][]string, alive []string) map[string][]string {
	all := maps.Clone(now)
	if all == nil {
		all = make(map[string][]string)
	}
	for _, node := range alive {
		if _, told := all[node]; !told && before[node] != nil {
			all[node] = before[node]
		}
	}
	return all
}

// invert returns who has what, by what.
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

// taskNames returns what registered told.
func taskNames(i *Inspection) []string {
	names := make([]string, len(i.Registered))
	for n, r := range i.Registered {
		names[n] = r.Name
	}
	return names
}

// queueNames returns what active_queues told.
func queueNames(i *Inspection) []string {
	names := make([]string, len(i.Queues))
	for n, q := range i.Queues {
		names[n] = q.Name
	}
	return names
}
