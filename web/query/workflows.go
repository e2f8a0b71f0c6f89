package query

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
)

// Workflows selects a page of the list of workflows. The zero value selects all, newest first.
type Workflows struct {
	Status workflow.Status // empty is all
	Name   string          // exact name of the root task; empty is all
	Limit  int             // 1 to MaxLimit; 0 means DefaultLimit
	Before int64           // history.WorkflowPage.Next, 0 is the first page
}

// ParseWorkflows reads a query from URL parameters as Parse does.
func ParseWorkflows(v url.Values) (Workflows, error) {
	p := parser{values: v}
	return Workflows{Status: p.workflowStatus(), Name: p.duplicateName(), Limit: p.limit(), Before: p.workflowCursor()}, p.failed()
}

func (p *parser) workflowStatus() workflow.Status {
	s := workflow.Status(p.one(paramState))
	if s != "" && !slices.Contains(workflow.Statuses(), s) {
		var names []string
		for _, known := range workflow.Statuses() {
			names = append(names, string(known))
		}
		p.fail(paramState, "must be one of "+strings.Join(names, ", "))
		return ""
	}
	return s
}

func (p *parser) workflowCursor() int64 {
	s := p.one(paramCursor)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != s {
		p.fail(paramCursor, "must be a cursor from an earlier page")
		return 0
	}
	return n
}

// Request returns the query as a store takes it.
func (w Workflows) Request() history.WorkflowRequest {
	return history.WorkflowRequest{Name: w.Name, Status: w.Status, Before: w.Before, Limit: cmp.Or(w.Limit, DefaultLimit)}
}

// URL returns path with the parameters that select the same page, in one spelling.
func (w Workflows) URL(path string) string {
	params := map[string]string{paramState: string(w.Status), paramName: w.Name, paramLimit: decimal(w.Limit)}
	if w.Before != 0 {
		params[paramCursor] = EncodeWorkflow(w.Before)
	}
	return address(path, params)
}

// EncodeWorkflow returns the cursor of the page that continues with next.
func EncodeWorkflow(next int64) string { return strconv.FormatInt(next, 10) }
