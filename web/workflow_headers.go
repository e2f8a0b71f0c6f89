package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
)

// chordUnlock is the task by which Celery waits for the header of a chord where the result backend does not count.
const chordUnlock = "celery.chord_unlock"

// Bounds of what is read of the groups that clients sent.
const (
	maxClientGroups = 4               // of one workflow
	maxHeaderTasks  = 64              // of one group
	maxSentNear     = 500             // tasks that were sent at about the same time
	sentNear        = 2 * time.Second // before and after
)

// withHeaders returns a workflow with the tasks of the groups that a client sent. Celery gives these no common root: each is the
// root of a workflow of its own, and the body of their chord is in that of the one that ended last. said is what is known of them.
func (p *workflowPages) withHeaders(ctx context.Context, w *workflow.Workflow, g knownGroups) (drawn *workflow.Workflow, said []string) {
	if slices.ContainsFunc(w.Tasks, func(t workflow.Task) bool { return t.Name == chordUnlock }) {
		said = append(said, chordUnlock+" waits for the header of a chord; no event names the tasks of that.")
	}
	ids := slices.Sorted(maps.Keys(g.clients))
	tasks := slices.Clone(w.Tasks)
	for _, id := range ids[:min(len(ids), maxClientGroups)] {
		found, known := p.header(ctx, w, g, id)
		for i := range found {
			g.Of[found[i].ID] = id
		}
		tasks = append(tasks, found...)
		if known != "" {
			said = append(said, known)
		}
	}
	if len(tasks) == len(w.Tasks) {
		return w, said
	}
	all := workflow.Assemble(w.Root, tasks)
	return &all, append(said, "Each task that a client sends begins a workflow of its own.")
}

// header returns the tasks of a client's group that are in other workflows, and says what is known of it.
func (p *workflowPages) header(ctx context.Context, w *workflow.Workflow, g knownGroups, id string) (found []workflow.Task, said string) {
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	first := w.Tasks[g.clients[id]]
	for first.Parent >= 0 { // of a chain, the client sent the first task
		first = w.Tasks[first.Parent]
	}
	stored, _, err := p.groups.get(ctx, "group "+id, func(ctx context.Context) (taskGroups, error) {
		return p.readGroup(ctx, id, first)
	})
	if err != nil {
		p.log.WarnContext(ctx, "group not read", "error", err)
	}
	here := map[string]bool{}
	for i := range w.Tasks {
		here[w.Tasks[i].ID] = g.Of[w.Tasks[i].ID] == id
	}
	count := 0
	for _, member := range here {
		if member {
			count++
		}
	}
	var offsets map[string]int64
	p.backend.View(func(c state.View) { offsets = workflow.Offsets(c.Workers()) })
	for _, sent := range stored.sent {
		for _, member := range sent.Members[:min(len(sent.Members), maxHeaderTasks)] {
			if _, known := here[member]; known {
				continue
			}
			t, err := p.backend.Task(ctx, member)
			if err != nil || !begins(&t) { // in a chain: its workflow shows it behind what sent it
				continue
			}
			found = append(found, workflow.Of(&t, offsets))
		}
	}
	if w.Tasks[g.clients[id]].Parent >= 0 && len(found) == 0 {
		return nil, "" // it may be that a task sent the group
	}
	return found, headerWords(id, count+len(found), stored.size)
}

// headerWords say how many tasks of a client's group are known. all is 0 if that is unknown.
func headerWords(id string, known, all int) string {
	group := "group " + truncate.Bytes(id, 4)
	switch {
	case all > 0 && known >= all:
		return fmt.Sprintf("A client sent the %d tasks of %s.", all, group)
	case all > 0:
		return fmt.Sprintf("A client sent the %d tasks of %s; %d are known.", all, group, known)
	case known == 1:
		return "A client sent one of these tasks in " + group + "; which others are in that is not known."
	default:
		return fmt.Sprintf("A client sent %s; %d of its tasks are known by their stored results, and there may be more.", group, known)
	}
}

// readGroup reads the members of a group: from its own record, if it was saved, else from the results of the tasks that were sent
// at about the same time as one of them.
func (p *workflowPages) readGroup(ctx context.Context, id string, one workflow.Task) (taskGroups, error) {
	stored, err := results.ReadGroup(ctx, p.groups.backend, id)
	if err != nil && !errors.Is(err, results.ErrMissing) {
		return taskGroups{}, err
	}
	g := taskGroups{stored: err == nil, size: max(stored.Size, len(stored.Members))}
	if len(stored.Members) > 0 {
		g.sent = []results.Group{{ID: id, Members: stored.Members}}
		return g, nil
	}
	near, err := p.sentNear(ctx, one)
	if err != nil {
		return g, err
	}
	members := results.Group{ID: id}
	for _, t := range near {
		s, err := p.groups.result(ctx, t.ID)
		if err != nil {
			return g, err
		}
		if s.in == id {
			members.Members = append(members.Members, t.ID)
		}
	}
	g.sent = []results.Group{members}
	return g, nil
}

// begins reports whether a task is known to be the first of its workflow.
func begins(t *state.Task) bool {
	return (t.ParentID == nil || *t.ParentID == "") && t.RootID != nil && *t.RootID == t.ID
}

// sentNear returns the tasks that begin a workflow and were sent at about the time of one, by the same client if that is known;
// the nearest.
func (p *workflowPages) sentNear(ctx context.Context, one workflow.Task) ([]state.Task, error) {
	at, field, of := one.SentAt+one.SentAhead, lang.Sent, func(t *state.Task) int64 { return t.SentAt }
	if one.SentAt == 0 {
		if len(one.Executions) == 0 || one.Executions[0].ReceivedAt == 0 {
			return nil, nil
		}
		e := &one.Executions[0]
		at, field, of = e.ReceivedAt+e.Ahead, lang.Received, func(t *state.Task) int64 { return t.ReceivedAt }
	}
	q := lang.New(lang.Between(field, at-sentNear.Microseconds(), at+sentNear.Microseconds()))
	if one.Client != "" {
		q = q.And(lang.New(lang.Equal(lang.Client, one.Client)))
	}
	page, err := p.backend.Tasks(ctx, history.TaskRequest{Query: q, Limit: maxSentNear, Now: p.now()})
	if err != nil {
		return nil, fmt.Errorf("read tasks sent at about the same time: %w", err)
	}
	near := slices.DeleteFunc(page.Tasks, func(t state.Task) bool { return !begins(&t) })
	distance := func(t *state.Task) int64 { return max(of(t)-at, at-of(t)) }
	slices.SortStableFunc(near, func(a, b state.Task) int { return int(distance(&a) - distance(&b)) })
	return near[:min(len(near), maxHeaderTasks)], nil
}
