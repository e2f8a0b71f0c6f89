package history

import (
	"context"

	"github.com/umbelhq/umbel/monitor/workflow"
)

// Workflows reads which tasks have a root in common.
type Workflows interface {
	// Workflows returns a page of the list of workflows, those that were seen first last.
	Workflows(ctx context.Context, r WorkflowRequest) (WorkflowPage, error)
	// WorkflowTasks calls f with the id and the saved events of the tasks of a root, its own included, oldest change first, at
	// most limit. It returns how many there are in all. The events are valid until f returns.
	WorkflowTasks(ctx context.Context, root string, limit int, f func(id string, events []byte) error) (int, error)
}

// WorkflowRequest asks for a page of the list of workflows: the roots of other tasks.
type WorkflowRequest struct {
	Name   string          // of the root task; empty is all
	Status workflow.Status // empty is all
	Before int64           // WorkflowPage.Next of the page before; 0 is the first page
	Limit  int             // 1 to 500
	// Begun selects those of which a task with that root was received by then, µs since 1970 UTC; 0 is all. It leaves out
	// what was sent more than a minute later by the clock of the sender. The summaries are those of now.
	Begun int64
	// Roots selects those with one of these roots, at most 500; nil is all.
	Roots []string
}

// WorkflowPage is a page of the list.
type WorkflowPage struct {
	Workflows []WorkflowSummary
	Next      int64 // where the next page starts, 0 on the last
}

// WorkflowSummary is one workflow in a list.
type WorkflowSummary struct {
	workflow.Summary

	Root string // id of the root, whether or not its task is retained
	Name string // of the root task, empty if unknown
}
