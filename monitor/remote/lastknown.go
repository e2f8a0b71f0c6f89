package remote

import "time"

// maxTold bounds for how many workers Told has an answer, as many as a cluster has.
const maxLastKnown = 5_000

// Told is the pool and the queues of a worker as it last told them.
type LastKnown struct {
	At     time.Time // when it told its queues
	Pool   string    // its kind, empty if it never told
	Slots  *int64    // tasks that it could run at once
	Queues []string  // that it consumed from
}

// Told returns what a worker last told of its pool and queues, however long ago, also if it has gone since; false if it never
// did, or was forgotten.
func (i *Inspector) LastKnown(name string) (LastKnown, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t, ok := i.lastKnown[name]
	return t, ok
}

// keep notes what workers have told now. The caller holds mu.
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

// dropTold makes room for a worker, by dropping what is oldest. The caller holds mu.
func (i *Inspector) dropLastKnown() {
	oldest := ""
	for name, t := range i.lastKnown {
		if oldest == "" || t.At.Before(i.lastKnown[oldest].At) {
			oldest = name
		}
	}
	delete(i.lastKnown, oldest)
}
