package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// event returns an event of a task, with further members of its JSON object.
func event(kind, id string, clock int, members string) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"task-%s","hostname":"w1","pid":7,"clock":%d,"timestamp":%d,"uuid":%q%s}`,
		kind, clock, 1790000000+clock, id, members)
}

func inMemory(c *cluster, id string) (ok bool) {
	c.View(func(v state.View) { _, ok = v.Task(id) })
	return ok
}

// TestTextThatMemoryHasDroppedIsRead gives memory room for 2 MiB of text.
func TestTextThatMemoryHasDroppedIsRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{MaxText: 1})
	for i := range 50 {
		result := fmt.Sprint(i) + strings.Repeat("x", 60_000)
		if i == 0 {
			result = "first"
		}
		c.publish(event("succeeded", fmt.Sprint("t", i), i+1, fmt.Sprintf(`,"result":%q`, result)))
		if i == 0 {
			c.save()
		}
	}
	c.save()
	c.View(func(v state.View) {
		if inMemory, _ := v.Task("t0"); !inMemory.Truncated || inMemory.Result != nil {
			t.Errorf("memory has result %v, truncated %v; want it dropped", inMemory.Result, inMemory.Truncated)
		}
	})
	got, err := c.Task(t.Context(), "t0")
	if err != nil || got.Truncated || got.Result == nil || *got.Result != "first" {
		t.Errorf("result %v, truncated %v, error %v; want all of it", got.Result, got.Truncated, err)
	}
}

func TestTasksThatMemoryHasEvictedAreRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{MaxTasks: 100})
	c.publish(event("received", "parent", 1, ""), event("succeeded", "parent", 2, ""))
	for i := range 300 {
		c.publish(event("succeeded", fmt.Sprint("t", i), i+3, ""))
	}
	c.save()
	c.publish(event("succeeded", "child", 400, `,"parent_id":"parent"`)) // evicts, since all before is saved
	if inMemory(c, "parent") {
		t.Fatal("memory still has the first task")
	}
	c.store.full.Store(true)
	c.publish(event("received", "unsaved", 401, `,"parent_id":"parent"`))
	got, err := c.Task(t.Context(), "parent")
	if err != nil || got.State != state.Success {
		t.Fatalf("task in state %s, error %v, want %s", got.State, err, state.Success)
	}
	if events, err := c.TaskEvents(t.Context(), "parent"); err != nil || len(events) != 2 {
		t.Errorf("%d events, error %v, want 2", len(events), err)
	}
	if n, err := c.Count(t.Context(), query.Query{}); err != nil || !n.Exact || n.N < 300 {
		t.Errorf("count = %+v, %v, want all exactly", n, err)
	}
	if _, err := c.Task(t.Context(), "nobody"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("error of an unknown task = %v, want %v", err, history.ErrNotFound)
	}
	c.store.full.Store(false)
	c.save()
	if got, err = c.Task(t.Context(), "parent"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"child", "unsaved"}, got.Children); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}

func TestResolvingAFailureGroupIsAChange(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.publish(event("received", "a", 1, `,"name":"mail"`), event("failed", "a", 2, `,"exception":"ValueError()"`))
	c.save()
	now := time.Unix(1_790_000_010, 0)
	groups, err := c.History().FailureGroups(t.Context(), history.FailureRequest{Limit: 10, Now: now})
	if err != nil || len(groups.Groups) != 1 {
		t.Fatalf("%d groups, error %v, want 1", len(groups.Groups), err)
	}
	changed := c.Changed()
	if err := c.History().ResolveFailureGroup(t.Context(), groups.Groups[0].ID, now); err != nil {
		t.Fatal(err)
	}
	<-changed
}
