package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/monitor/workflow/export"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// Workflow is the tasks of one root. Null means unknown.
type Workflow struct {
	Root            string   `json:"root" doc:"ID of the root task, whether or not it is retained."`
	Name            *string  `json:"name" doc:"Name of the root task."`
	Status          string   `json:"status" enum:"running,failed,lost,succeeded" doc:"running: some task is expected to end. lost: none failed, and one will not end."`
	Tasks           int      `json:"tasks" doc:"Retained tasks, the root included."`
	Ended           int      `json:"ended" doc:"Those that have ended, are lost or were dismissed."`
	Failed          int      `json:"failed" doc:"Those that failed, were revoked or were rejected."`
	Lost            int      `json:"lost" doc:"Those that are not expected to end."`
	StartedAt       Time     `json:"started_at" doc:"When the first task was sent, or else received."`
	EndedAt         Time     `json:"ended_at" doc:"When the last task ended; null while some have not."`
	DurationSeconds *float64 `json:"duration_seconds" doc:"From started_at to ended_at."`
}

// WorkflowTree is a workflow with its tasks.
type WorkflowTree struct {
	Workflow

	Items []WorkflowTask `json:"items" nullable:"false" doc:"At most 5,000 tasks, each followed by its children with theirs, by time."`
	Notes []string       `json:"notes" nullable:"false" doc:"What is odd about the workflow, a sentence each."`
}

// WorkflowTask is a task of a workflow, without its payload.
type WorkflowTask struct {
	ID         string              `json:"id"`
	ParentID   *string             `json:"parent_id" doc:"Task that sent it, whether or not it is retained."`
	Depth      int                 `json:"depth" doc:"Number of its ancestors in items."`
	Name       *string             `json:"name"`
	State      string              `json:"state" example:"SUCCESS"`
	Client     *string             `json:"client" doc:"Node name of the sender."`
	Queue      *string             `json:"queue"`
	Executions []WorkflowExecution `json:"executions" nullable:"false" doc:"Attempts, oldest first. Times are by the clocks of those who report them, less how far these are known to be ahead of Umbel's."`
}

// WorkflowExecution is one attempt at a task.
type WorkflowExecution struct {
	Attempt    Int    `json:"attempt" doc:"0 for the first."`
	Worker     string `json:"worker"`
	PID        *Int   `json:"pid"`
	State      string `json:"state"`
	QueuedAt   Time   `json:"queued_at" doc:"When it was sent; of a later attempt, when the one before ended."`
	ReceivedAt Time   `json:"received_at"`
	StartedAt  Time   `json:"started_at"`
	EndedAt    Time   `json:"ended_at"`
}

func fromSummary(root, name string, s workflow.Summary) Workflow {
	w := Workflow{
		Root: root, Name: text(name), Status: string(s.Status()), Tasks: s.Tasks, Ended: s.Over, Failed: s.Failed, Lost: s.Lost,
		StartedAt: Time(s.StartedAt), EndedAt: Time(s.EndedAt),
	}
	if took, ok := s.DurationMicros(0); ok && s.EndedAt != 0 {
		w.DurationSeconds = new(float64(took) / 1e6)
	}
	return w
}

func fromWorkflow(w *workflow.Workflow) WorkflowTree {
	t := WorkflowTree{Workflow: fromSummary(w.Root, w.Name(), w.Summary()), Notes: append([]string{}, w.Notes...)}
	t.Tasks = w.Size
	t.Items = make([]WorkflowTask, len(w.Tasks))
	for i := range w.Tasks {
		task := &w.Tasks[i]
		t.Items[i] = WorkflowTask{
			ID: task.ID, ParentID: text(task.ParentID), Depth: task.Depth, Name: text(task.Name), State: string(task.State),
			Client: text(task.Client), Queue: text(task.Queue), Executions: mapSlice(task.Executions, fromAttempt),
		}
	}
	return t
}

func fromAttempt(e workflow.Execution) WorkflowExecution {
	return WorkflowExecution{
		Attempt: Int(e.Attempt), Worker: e.Worker, PID: positive(e.PID), State: string(e.State),
		QueuedAt: Time(e.QueuedAt), ReceivedAt: Time(e.ReceivedAt), StartedAt: Time(e.StartedAt), EndedAt: Time(e.EndedAt),
	}
}

type listWorkflows struct {
	Query
	State  string `query:"state" enum:"running,failed,lost,succeeded" doc:"Only workflows with this status."`
	Name   string `query:"name" doc:"Only workflows whose root task has exactly this name."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of workflows to return."`
	Cursor string `query:"cursor" doc:"Cursor from next of an earlier response."`
}

// WorkflowPath names a workflow.
type WorkflowPath struct {
	Root string `path:"root" doc:"ID of the root task."`
}

// registerWorkflows adds the operations on workflows.
func (a *api) registerWorkflows(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-workflows", "/workflows", "List workflows, newest first", unavailable), a.workflows)
	huma.Register(h, operation(h, auth.View, "get-workflow", "/workflows/{root}", "Get the tasks of a workflow", notFound, unavailable), a.workflow)
	op := operation(h, auth.View, "export-workflow", "/workflows/export", "Export a workflow for tracing tools", notFound, unavailable)
	op.Description = "A file for Perfetto or Chrome (Trace Event Format), or OpenTelemetry spans of the attempts that have ended (OTLP as JSON)."
	op.Responses["200"] = &huma.Response{Description: "The file.", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}}}
	huma.Register(h, op, a.exportWorkflow)
}

type exportWorkflow struct {
	Query
	Root   string `query:"root" required:"true" doc:"ID of the root task."`
	Format string `query:"format" enum:"perfetto,otlp" default:"perfetto"`
}

func (a *api) exportWorkflow(ctx context.Context, r *exportWorkflow) (*huma.StreamResponse, error) {
	w, err := a.backend.Workflow(ctx, r.Root)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, workflowNotFound(r.Root)
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	write := export.Perfetto
	if r.Format == "otlp" {
		write = export.OTLP
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		hc.SetHeader("Content-Disposition", `attachment; filename="umbel-workflow-`+r.Format+`.json"`)
		if hc.Method() != http.MethodHead {
			_ = write(hc.BodyWriter(), &w) // the client has gone
		}
	}}, nil
}

func workflowNotFound(root string) *Problem {
	return problem(http.StatusNotFound, "No retained task has the root "+shorten(root)+".")
}

func (a *api) workflows(ctx context.Context, r *listWorkflows) (*response[List[Workflow]], error) {
	q, err := query.ParseWorkflows(r.values)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	page, err := a.backend.Workflows(ctx, q.Request())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	l := List[Workflow]{Items: mapSlice(page.Workflows, func(w history.WorkflowSummary) Workflow { return fromSummary(w.Root, w.Name, w.Summary) })}
	if page.Next != 0 {
		l.Next = new(query.EncodeWorkflow(page.Next))
	}
	return &response[List[Workflow]]{l}, nil
}

func (a *api) workflow(ctx context.Context, r *WorkflowPath) (*response[WorkflowTree], error) {
	w, err := a.backend.Workflow(ctx, r.Root)
	switch {
	case errors.Is(err, history.ErrNotFound):
		return nil, workflowNotFound(r.Root)
	case err != nil:
		return nil, a.failed(ctx, err)
	}
	return &response[WorkflowTree]{fromWorkflow(&w)}, nil
}
