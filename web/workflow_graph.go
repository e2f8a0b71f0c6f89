package web

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
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

// storedGroups reads what stored results tell of groups, of each task and group at most once in 5 s. It keeps nothing else of them.
type storedGroups struct {
	*background[taskGroups]
	backend results.Backend
}

// taskGroups is what the stored result of a task tells of groups.
type taskGroups struct {
	stored bool            // there is one
	in     string          // id of the group that it is in, or whose chord it is the body of
	sent   []results.Group // by it
	size   int             // of the one group that was asked for, 0 if unknown
}

func (g taskGroups) same(o taskGroups) bool {
	return g.stored == o.stored && g.in == o.in && g.size == o.size && slices.EqualFunc(g.sent, o.sent, func(a, b results.Group) bool {
		return a.ID == b.ID && slices.Equal(a.Members, b.Members)
	})
}

func newStoredGroups(backend results.Backend, changed func(), log *slog.Logger) *storedGroups {
	return &storedGroups{backend: backend, background: newBackground(&background[taskGroups]{
		what: "groups of a task", age: 5 * time.Second, kept: time.Minute, readers: 2, changed: changed, log: log, same: taskGroups.same,
	})}
}

// result reads that of a task.
func (s *storedGroups) result(ctx context.Context, id string) (taskGroups, error) {
	r, err := s.backend.Result(ctx, id)
	if errors.Is(err, results.ErrMissing) {
		return taskGroups{}, nil
	}
	return taskGroups{stored: err == nil, in: r.GroupID, sent: r.Groups}, err
}

// of reads those of some tasks of a workflow, by index, and returns how many it asked for.
func (s *storedGroups) of(ctx context.Context, w *workflow.Workflow, tasks []int) (asked int, known map[int]taskGroups) {
	tasks = tasks[:min(len(tasks), maxGroupReads)]
	known = map[int]taskGroups{}
	read := func(id string) func(ctx context.Context) (taskGroups, error) {
		return func(ctx context.Context) (taskGroups, error) { return s.result(ctx, id) }
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
	groups := p.groupsOf(ctx, w)
	drawn, said := p.withHeaders(ctx, w, groups)
	opened := query[paramOpen]
	return templates.WorkflowGraph{
		Workflow: drawn, Graph: drawn.Graph(groups.Groups, opened[:min(len(opened), maxOpened)]), Tab: graphTab,
		Groups: strings.Join(append([]string{groups.said}, said...), " "),
	}, nil
}

// knownGroups is what stored results tell of the groups of a workflow.
type knownGroups struct {
	workflow.Groups

	clients map[string]int // a task, index in Workflow.Tasks, of each group that a client sent, or perhaps did if it is in a chain
	said    string         // how much is known
}

// groupsOf reads which groups the tasks of a workflow are in, as far as stored results tell, and says how much that is.
func (p *workflowPages) groupsOf(ctx context.Context, w *workflow.Workflow) knownGroups {
	g := knownGroups{Groups: workflow.Groups{Of: map[string]string{}, Body: map[string]string{}}, clients: map[string]int{}}
	switch {
	case p.instant != nil:
		g.said = "No event tells of groups, and results are known only as they are now."
		return g
	case p.groups == nil:
		g.said = "No event tells of groups, and Umbel has no result backend that does."
		return g
	}
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	var senders, children []int // of groups, or perhaps members of one that a client sent; of members
	for i := range w.Tasks {
		if t := &w.Tasks[i]; len(w.Tasks) <= maxGroupReads || len(t.Children) > 1 || t.Parent < 0 {
			senders = append(senders, i)
		}
	}
	asked, known := p.groups.of(ctx, w, senders)
	g.members(w, known)
	for i := range w.Tasks {
		if g.Of[w.Tasks[i].ID] != "" {
			children = append(children, w.Tasks[i].Children...)
		}
	}
	more, bodies := p.groups.of(ctx, w, children)
	for i, s := range bodies {
		t := &w.Tasks[i]
		if header := g.Of[w.Tasks[t.Parent].ID]; header == s.in && header != "" && g.Of[t.ID] == "" {
			g.Body[t.ID] = header
		}
	}
	switch all := len(senders) + len(children); {
	case asked+more < all:
		g.said = "Groups are from the stored results of some tasks; those of others were not read."
	case len(known)+len(bodies) < all:
		g.said = "Groups are from the stored results of tasks; some of these results are not known."
	case len(g.Of) == 0:
		g.said = "No event tells of groups, and the stored results of these tasks name none."
	default:
		g.said = "Groups are from the stored results of tasks."
	}
	return g
}

// members notes the groups that tasks sent, and those that clients did. Of a client's group, results of its tasks alone tell. So
// does that of a chord's body, whose parent is in the group too.
func (g *knownGroups) members(w *workflow.Workflow, known map[int]taskGroups) {
	for _, s := range known {
		for _, group := range s.sent {
			for _, id := range group.Members {
				g.Of[id] = group.ID
			}
		}
	}
	for i := range w.Tasks {
		t, s := &w.Tasks[i], known[i]
		if s.in == "" || g.Of[t.ID] != "" {
			continue
		}
		member := t.ParentID == "" && t.RootID == t.ID
		if t.Parent >= 0 { // the last of a chain that is in a group, or one of a group whose sender was replaced
			before := known[t.Parent]
			member = before.stored && before.in != s.in && w.Tasks[t.Parent].Name != chordUnlock
		}
		if !member {
			continue
		}
		g.Of[t.ID] = s.in
		if _, ok := g.clients[s.in]; !ok {
			g.clients[s.in] = i
		}
	}
}
