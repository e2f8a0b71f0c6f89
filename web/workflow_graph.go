package web

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/templates"
)

const (
	graphTab = "graph"
	// maxGroupReads is how many stored results are read, in each of two rounds, for the groups of one workflow.
	maxGroupReads = 32
	// groupTimeout is how long a page waits for them. What comes later is shown by the next update.
	groupTimeout = 50 * time.Millisecond
	maxOpened    = 20 // nodes that an address opens
)

// storedGroups reads what stored results tell of groups, of each task at most once in 5 s. It keeps nothing else of them.
type storedGroups struct {
	*background[taskGroups]
	backend results.Backend
}

// taskGroups is what the stored result of a task tells of groups.
type taskGroups struct {
	in   string          // id of the group that it is in, or whose chord it is the body of
	sent []results.Group // by it
}

func newStoredGroups(backend results.Backend, changed func(), log *slog.Logger) *storedGroups {
	return &storedGroups{backend: backend, background: newBackground(&background[taskGroups]{
		what: "groups of a task", age: 5 * time.Second, kept: time.Minute, readers: 2, changed: changed, log: log,
		same: func(a, b taskGroups) bool { return a.in == b.in && len(a.sent) == len(b.sent) },
	})}
}

// of reads those of some tasks of a workflow, by index, and returns how many it asked for.
func (s *storedGroups) of(ctx context.Context, w *workflow.Workflow, tasks []int) (asked int, known map[int]taskGroups) {
	tasks = tasks[:min(len(tasks), maxGroupReads)]
	known = map[int]taskGroups{}
	read := func(id string) func(ctx context.Context) (taskGroups, error) {
		return func(ctx context.Context) (taskGroups, error) {
			r, err := s.backend.Result(ctx, id)
			if errors.Is(err, results.ErrMissing) {
				return taskGroups{}, nil
			}
			return taskGroups{r.GroupID, r.Groups}, err
		}
	}
	for _, i := range tasks { // all begin before any is waited for
		s.use(w.Tasks[i].ID, read(w.Tasks[i].ID))
	}
	for _, i := range tasks {
		if g, ok, err := s.get(ctx, w.Tasks[i].ID, read(w.Tasks[i].ID)); ok && err == nil {
			known[i] = g
		}
	}
	return len(tasks), known
}

// graph is the tab with a node per task.
func (p *workflowPages) graph(ctx context.Context, w *workflow.Workflow, query url.Values) (templates.WorkflowTab, error) {
	groups, said := p.groupsOf(ctx, w)
	opened := query[paramOpen]
	return templates.WorkflowGraph{
		Workflow: w, Graph: w.Graph(groups, opened[:min(len(opened), maxOpened)]), Tab: graphTab, Groups: said,
	}, nil
}

// groupsOf reads which groups the tasks of a workflow are in, as far as stored results tell, and says how much that is.
func (p *workflowPages) groupsOf(ctx context.Context, w *workflow.Workflow) (groups workflow.Groups, said string) {
	groups = workflow.Groups{Of: map[string]string{}, Body: map[string]string{}}
	switch {
	case p.instant != nil:
		return groups, "No event tells of groups, and results are known only as they are now."
	case p.groups == nil:
		return groups, "No event tells of groups, and Umbel has no result backend that does."
	}
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	var senders, children []int // of groups, or perhaps; of members
	for i := range w.Tasks {
		if t := &w.Tasks[i]; len(t.Children) > 1 || len(t.Children) == 1 && t.Parent < 0 {
			senders = append(senders, i)
		}
	}
	asked, known := p.groups.of(ctx, w, senders)
	for i, s := range known {
		for _, g := range s.sent {
			for _, id := range g.Members {
				groups.Of[id] = g.ID
			}
		}
		if s.in != "" && w.Tasks[i].Parent < 0 { // sent by a client, as one of a group
			groups.Of[w.Tasks[i].ID] = s.in
		}
	}
	for i := range w.Tasks {
		if groups.Of[w.Tasks[i].ID] != "" {
			children = append(children, w.Tasks[i].Children...)
		}
	}
	more, bodies := p.groups.of(ctx, w, children)
	for i, s := range bodies {
		t := &w.Tasks[i]
		if header := groups.Of[w.Tasks[t.Parent].ID]; header == s.in && header != "" && groups.Of[t.ID] == "" {
			groups.Body[t.ID] = header
		}
	}
	switch all := len(senders) + len(children); {
	case asked+more < all:
		return groups, "Groups are from the stored results of some tasks; those of others were not read."
	case len(known)+len(bodies) < all:
		return groups, "Groups are from the stored results of tasks; some of these results are not known."
	}
	return groups, "Groups are from the stored results of tasks."
}
