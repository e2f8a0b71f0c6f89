package remote

import (
	"maps"
	"slices"
	"time"
)

const (
	keptTickets  = 256             // of calls that have ended
	keptNames    = 1_000           // of each call, and of duplicates
	duplicateFor = 5 * time.Minute // how long a duplicate is reported after its last reply
)

// duplicates knows node names that more than one worker uses. The second reply to a request mostly arrives after
// the call has ended, so recent calls are remembered. The Client's mu guards it.
type duplicates struct {
	answered map[string][]string // nodes, by ticket
	tickets  []string            // keys of answered, a ring
	next     int                 // index in tickets of the next call
	seen     map[string]time.Time
}

// keep remembers who has replied to a call that ends.
func (d *duplicates) keep(ticket string, replies []Reply) {
	if d.answered == nil {
		d.answered, d.tickets = make(map[string][]string), make([]string, keptTickets)
		d.seen = make(map[string]time.Time)
	}
	delete(d.answered, d.tickets[d.next])
	d.tickets[d.next] = ticket
	d.next = (d.next + 1) % keptTickets
	nodes := make([]string, 0, min(len(replies), keptNames))
	for _, r := range replies[:min(len(replies), keptNames)] {
		nodes = append(nodes, r.Node)
		if r.Duplicate {
			d.note(r.Node, r.At)
		}
	}
	d.answered[ticket] = nodes
}

// late records a reply to a call that has ended.
func (d *duplicates) late(ticket, node string, at time.Time) {
	if node != "" && slices.Contains(d.answered[ticket], node) {
		d.note(node, at)
	}
}

func (d *duplicates) note(node string, at time.Time) {
	if _, known := d.seen[node]; known || len(d.seen) < keptNames {
		d.seen[node] = at
	}
}

// Duplicates returns, sorted, the node names that more than one worker has replied by in the last 5 minutes. Node
// names must be unique: workers that share one execute each other's commands.
func (c *Client) Duplicates() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.duplicates.seen, func(_ string, at time.Time) bool { return now.Sub(at) >= duplicateFor })
	return slices.Sorted(maps.Keys(c.duplicates.seen))
}
