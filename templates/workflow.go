package templates

import (
	"cmp"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/workflow"
)

// Workflow is the content of the page of one workflow.
type Workflow struct {
	Workflow workflow.Workflow
	Tabs     []Choice
	Tab      WorkflowTab
}

// WorkflowTab is one way to draw a workflow. Content may hold regions and lists.
type WorkflowTab interface {
	Content(u URLs) templ.Component
}

// Page draws the whole page.
func (v Workflow) Page(l Layout) templ.Component { return workflowPage(l, v) }

// Title is the name of the root task, in words if it is not known.
func (v Workflow) Title() string { return cmp.Or(v.Workflow.Name(), "Workflow") }

// workflowStatus is how the status of a workflow looks.
func workflowStatus(s workflow.Status) (icon, class, word string) {
	switch s {
	case workflow.Running:
		return "play", "state-started", "Running"
	case workflow.Failed:
		return "circle-x", "state-failure", "Failed"
	case workflow.Lost:
		return "anchor", "state-failure", "Lost"
	case workflow.Succeeded:
		return "circle-check", "state-success", "Succeeded"
	}
	return "circle-dot", "state-custom", string(s)
}

// workflowProgress says how many tasks are over.
func workflowProgress(s workflow.Summary) string {
	return number(s.Over) + " of " + plural(s.Tasks, "task", "tasks") + " ended"
}

// workflowTook is how long a workflow took, nil if that is unknown.
func workflowTook(s workflow.Summary) *float64 {
	if took, ok := s.DurationMicros(0); ok && s.EndedAt != 0 {
		return seconds(took)
	}
	return nil
}

// workflowPart says how much of a large workflow is drawn.
func workflowPart(w *workflow.Workflow) string {
	size := number(w.Size)
	if w.AtLeast {
		size = "more than " + size
	}
	return "The " + plural(len(w.Tasks), "task", "tasks") + " that changed last are drawn, of " + size + "."
}
