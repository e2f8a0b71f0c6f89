package remote

import "slices"

// Holder is a worker that reported holding a task.
type Holder struct {
	Node    string
	Name    string // of the task
	Running bool   // else it is reserved or scheduled
}

// Holders returns which workers hold these tasks, by id, from cached inspections. It sends no request.
func (i *Inspector) Holders(ids ...string) map[string]Holder {
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	found := make(map[string]Holder)
	i.mu.Lock()
	reported := make([]Inspection, 0, len(i.nodes))
	for _, s := range i.nodes {
		reported = append(reported, s.inspection)
	}
	i.mu.Unlock()
	slices.SortFunc(reported, func(a, b Inspection) int { return a.At.Compare(b.At) }) // the newest report counts
	for _, n := range reported {
		note := func(r TaskInfo, running bool) {
			if wanted[r.ID] {
				found[r.ID] = Holder{Node: n.Node, Name: r.Name, Running: running}
			}
		}
		for _, s := range n.Scheduled {
			note(s.Task, false)
		}
		for _, r := range n.Reserved {
			note(r, false)
		}
		for _, r := range n.Active {
			note(r, true)
		}
	}
	return found
}
