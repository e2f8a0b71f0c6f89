package templates

import (
	"net/url"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// WorkflowsPath is the address of the list of workflows, below the prefix.
const WorkflowsPath = "/workflows"

// Workflows is the content of the page that lists workflows.
type Workflows struct {
	Workflows     []history.WorkflowSummary
	Roots         map[string]state.Task // root tasks by id, those that are known
	Status        workflow.Status       // only these, all if empty
	Name          string                // only those of this root task, all if empty
	Statuses      []WorkflowChoice
	Newest, Older string // addresses of other pages of the list, empty if there are none
	All           string // address of the list without conditions
}

// WorkflowChoice is a status to choose; an empty one stands for all.
type WorkflowChoice struct {
	Status workflow.Status
	Href   string
}

// Page draws the whole page.
func (v Workflows) Page(l Layout) templ.Component { return workflowList(l, v) }

// filtered reports whether the list leaves workflows out.
func (v Workflows) filtered() bool { return v.Status != "" || v.Name != "" }

// WorkflowPath is the address of a workflow's page, below the prefix.
func WorkflowPath(root string) string { return WorkflowsPath + "/" + url.PathEscape(root) }

func (u URLs) workflow(root string) templ.SafeURL { return u.path(WorkflowPath(root)) }

// workflowExport links to a file for tracing tools.
func (u URLs) workflowExport(root, format string) templ.SafeURL {
	return u.path("/api/v1/workflows/export?" + url.Values{"root": {root}, "format": {format}}.Encode())
}

// workflowTrace links to a trace of a workflow.
func (u URLs) workflowTrace(root string) templ.SafeURL {
	return u.path("/api/v1/trace?" + url.Values{"workflow": {root}}.Encode())
}

// workflowRowID is the id of the row of a workflow. Ids of tasks may hold anything, ids of elements no spaces.
func workflowRowID(root string) string { return "w-" + url.QueryEscape(root) }
