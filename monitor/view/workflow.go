package view

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state/query"
)

// Workflow returns the tasks of a root, or history.ErrNotFound if none is retained. Of more than workflow.MaxTasks it
// returns those that changed last.
func (r *Reader) Workflow(ctx context.Context, root string) (workflow.Workflow, error) {
	request := history.TaskRequest{Query: query.New(query.Equal(query.Root, root)), Limit: maxPage, Now: r.now()}
	var tasks []workflow.Task
	for {
		page, err := r.Tasks(ctx, request)
		if err != nil {
			return workflow.Workflow{}, err
		}
		for i := range page.Tasks {
			tasks = append(tasks, workflow.Of(&page.Tasks[i]))
		}
		if request.From = page.Next; page.Next == nil || len(tasks) >= workflow.MaxTasks {
			break
		}
	}
	if len(tasks) == 0 {
		return workflow.Workflow{}, history.ErrNotFound
	}
	w := workflow.Assemble(root, tasks)
	if request.From == nil {
		return w, nil
	}
	n, err := r.Count(ctx, request.Query)
	if err != nil {
		return workflow.Workflow{}, err
	}
	w.Size, w.AtLeast = max(n.N, w.Size), !n.Exact
	return w, nil
}
