package historytest

import (
	"fmt"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// wantedWorkflows says which workflows the tasks make, by root.
func wantedWorkflows(tasks []state.Task) map[string]string {
	members := map[string][]workflow.Task{}
	isRoot := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		root := t.ID
		if t.RootID != nil && *t.RootID != t.ID {
			root, isRoot[*t.RootID] = *t.RootID, true
		}
		members[root] = append(members[root], workflow.Of(t, nil))
	}
	want := map[string]string{}
	for root := range isRoot {
		w := workflow.Assemble(root, members[root])
		s := w.Summary()
		want[root] = fmt.Sprintln(w.Name(), s.Status(), s.Tasks, s.Over, s.Failed, s.Lost)
	}
	return want
}

// expectWorkflows compares the list of workflows, in pages and by status, and the tasks of each, with what the tasks say. A
// root of which no member is left but itself may be listed.
func (c storeTest) expectWorkflows(tasks []state.Task) {
	c.Helper()
	want, got := wantedWorkflows(tasks), map[string]string{}
	for _, status := range workflow.Statuses() {
		for r := (history.WorkflowRequest{Status: status, Limit: 3}); ; {
			page, err := c.Workflows(c.Context(), r)
			if err != nil {
				c.Fatal(err)
			}
			for _, w := range page.Workflows {
				if _, twice := got[w.Root]; twice || w.Status() != status {
					c.Fatalf("workflow %s is listed twice, or with status %s as %s", w.Root, w.Status(), status)
				}
				if got[w.Root] = fmt.Sprintln(w.Name, w.Status(), w.Tasks, w.Over, w.Failed, w.Lost); want[w.Root] == "" && w.Tasks == 1 {
					delete(got, w.Root)
				}
			}
			if r.Before = page.Next; page.Next == 0 {
				break
			}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		c.Fatalf("workflows (-want +got):\n%s", diff)
	}
	for root := range want {
		page, err := c.Workflows(c.Context(), history.WorkflowRequest{Roots: []string{"none", root}, Limit: 3})
		if err != nil || len(page.Workflows) != 1 || page.Workflows[0].Root != root || page.Next != 0 {
			c.Fatalf("workflows with root %s: %+v, %v", root, page, err)
		}
		var ids, wantIDs []string
		n, err := c.WorkflowTasks(c.Context(), root, 1_000, func(id string, _ []byte) error { ids = append(ids, id); return nil })
		for i := range tasks {
			if t := &tasks[i]; t.ID == root && (t.RootID == nil || *t.RootID == root) || t.RootID != nil && *t.RootID == root {
				wantIDs = append(wantIDs, t.ID)
			}
		}
		slices.Sort(ids)
		slices.Sort(wantIDs)
		if err != nil || n != len(wantIDs) || !slices.Equal(ids, wantIDs) {
			c.Fatalf("tasks of %s: %d, %v, %v; want %v", root, n, ids, err, wantIDs)
		}
	}
}
