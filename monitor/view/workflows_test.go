package view_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// ahead is an event of a worker whose clock is an hour ahead.
func ahead(kind, id string, clock int, members string) json.RawMessage {
	at := float64(time.Now().Add(time.Hour).UnixMicro()) / 1e6
	return fmt.Appendf(nil, `{"type":"%s","hostname":"celery@fast","pid":7,"clock":%d,"timestamp":%f,"utcoffset":0%s%s}`,
		kind, clock, at, map[bool]string{true: `,"uuid":"` + id + `"`}[id != ""], members)
}

// TestWorkflowsAreListedBeforeTheyAreSaved lists a workflow that no task of is saved, in part, and wholly. Its worker's clock is
// an hour ahead, which its times do not show.
func TestWorkflowsAreListedBeforeTheyAreSaved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	begin := time.Now().UnixMicro()
	expect := func(when string, tasks int, status workflow.Status) {
		t.Helper()
		for _, want := range append(workflow.Statuses(), "") {
			page, err := c.Workflows(t.Context(), history.WorkflowRequest{Status: want, Limit: 20})
			if err != nil {
				t.Fatal(err)
			}
			if want != "" && want != status {
				if len(page.Workflows) != 0 {
					t.Errorf("%s: %s workflows: %+v", when, want, page.Workflows)
				}
				continue
			}
			if len(page.Workflows) != 1 {
				t.Fatalf("%s: %+v, want one workflow", when, page.Workflows)
			}
			s := page.Workflows[0]
			if s.Root != "r" || s.Name != "pay" || s.Tasks != tasks || s.Status() != status {
				t.Errorf("%s: %+v, want %d tasks, %s", when, s, tasks, status)
			}
			if late := s.StartedAt - begin; late < -int64(time.Minute/time.Microsecond) || late > int64(10*time.Minute/time.Microsecond) {
				t.Errorf("%s: started %d s after the beginning, want about then", when, late/1e6)
			}
		}
		if page, err := c.Workflows(t.Context(), history.WorkflowRequest{Name: "other", Limit: 20}); err != nil || len(page.Workflows) != 0 {
			t.Errorf("%s: of another name: %+v, %v", when, page.Workflows, err)
		}
	}
	const of = `,"name":"pay","root_id":"r","parent_id":"r"`
	c.store.full.Store(true)
	c.publish(
		ahead("worker-heartbeat", "", 1, `,"freq":2`), ahead("task-received", "r", 2, `,"name":"pay"`), ahead("task-started", "r", 3, ""),
		ahead("task-received", "a", 4, of),
	)
	expect("unsaved", 2, workflow.Running)
	c.store.full.Store(false)
	c.save()
	expect("saved", 2, workflow.Running)
	c.store.full.Store(true)
	c.publish(ahead("task-received", "b", 5, of), ahead("task-succeeded", "r", 6, ""), ahead("task-succeeded", "a", 7, ""), ahead("task-failed", "b", 8, ""))
	expect("changed since", 3, workflow.Failed)
	c.store.full.Store(false)
	c.save()
	expect("saved again", 3, workflow.Failed)
}
