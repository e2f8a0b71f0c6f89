package view

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// Workflow returns the tasks of a root, or history.ErrNotFound if none is retained. Of more than workflow.MaxTasks it
// returns those that changed first, and the root. Times are corrected by what is known of clocks.
func (r *Reader) Workflow(ctx context.Context, root string) (workflow.Workflow, error) {
	var fresh []string
	var offsets map[string]int64
	r.source.View(func(c state.View) {
		fresh, offsets = c.UnsavedOf(root, workflow.MaxTasks), workflow.Offsets(c.Workers())
	})
	l := workflowTasks{offsets: offsets, ids: make(map[string]bool, len(fresh)), tasks: make([]workflow.Task, 0, len(fresh))}
	for chunk := fresh; len(chunk) > 0; chunk = chunk[min(len(chunk), maxPage):] {
		r.source.View(func(c state.View) { l.addFresh(c, chunk[:min(len(chunk), maxPage)]) })
	}
	var reader state.Reader
	stored := 0
	total, err := r.store.WorkflowTasks(ctx, root, workflow.MaxTasks, func(id string, events []byte) error {
		stored++
		if l.ids[id] {
			return nil
		}
		var t state.Task
		var held bool
		r.source.View(func(c state.View) { t, held = c.Task(id) })
		if !held { // memory alone tells whether one is orphaned
			var err error
			if t, err = reader.Task(id, events); err != nil {
				return err
			}
		}
		l.add(&t)
		return nil
	})
	if err != nil {
		return workflow.Workflow{}, err
	}
	if len(l.tasks) == 0 {
		return workflow.Workflow{}, history.ErrNotFound
	}
	w := workflow.Assemble(root, l.tasks)
	w.Size = max(total, len(w.Tasks))
	w.AtLeast = total > stored && len(fresh) > 0 // of those, some may be stored too
	return w, nil
}

// workflowTasks gathers the tasks of a workflow.
type workflowTasks struct {
	offsets map[string]int64
	ids     map[string]bool
	tasks   []workflow.Task
}

func (l *workflowTasks) add(t *state.Task) {
	l.ids[t.ID] = true
	if len(l.tasks) < workflow.MaxTasks {
		l.tasks = append(l.tasks, workflow.Of(t, l.offsets))
	}
}

func (l *workflowTasks) addFresh(c state.View, ids []string) {
	for _, id := range ids {
		if t, ok := c.Task(id); ok {
			l.add(&t)
		}
	}
}
