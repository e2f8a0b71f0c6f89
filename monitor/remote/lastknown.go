package remote

import "time"

// maxLastKnown bounds the workers with a LastKnown, as many as a cluster has.
const maxLastKnown = 5_000

// LastKnown is the pool and the queues of a worker as it last reported them.
type LastKnown struct {
	At     time.Time // when it reported its queues
	Pool   string    // its kind, empty if never reported
	Slots  *int64    // tasks that it could run at once
	Queues []string  // that it consumed from
}

// LastKnown returns the pool and queues that a worker last reported, however long ago, even if it is gone. It is
// false if the worker never reported them, or was forgotten.
func (i *Inspector) LastKnown(name string) (LastKnown, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t, ok := i.lastKnown[name]
	return t, ok
}

// keep records what workers have reported now. The caller holds mu.
func (i *Inspector) keep(queues map[string][]string, pools map[string]Pool, now time.Time) {
	for node, list := range queues {
		t, known := i.lastKnown[node]
		if !known && len(i.lastKnown) >= maxLastKnown {
			i.dropLastKnown()
		}
		t.At, t.Queues = now, list
		if p, ok := pools[node]; ok {
			t.Pool, t.Slots = p.Kind, p.Slots
		}
		i.lastKnown[node] = t
	}
}

// dropLastKnown drops the oldest. The caller holds mu.
func (i *Inspector) dropLastKnown() {
	oldest := ""
	for name, t := range i.lastKnown {
		if oldest == "" || t.At.Before(i.lastKnown[oldest].At) {
			oldest = name
		}
	}
	delete(i.lastKnown, oldest)
}
