package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// causeEvent is an event of a task, at a second.
func causeEvent(kind, id, parent, node string, pid, clock, second int) json.RawMessage {
	family := ""
	if kind == "task-sent" || kind == "task-received" {
		root, by := id, "null"
		if parent != "" {
			root, by = parent, `"`+parent+`"`
		}
		family = fmt.Sprintf(`,"name":"t","root_id":%q,"parent_id":%s,"retries":0`, root, by)
	}
	return json.RawMessage(fmt.Sprintf(`{"type":%q,"uuid":%q,"hostname":%q,"pid":%d,"clock":%d,"timestamp":%d,"utcoffset":0%s}`,
		kind, id, node, pid, clock, 1_790_000_000+second, family))
}

func TestCausesAreFoundInMemoryAndHistory(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"memory": 100, "history": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, state.Options{MaxTasks: limit})
			c.publish(
				causeEvent("task-sent", "root", "", "gen7@web", 7, 1, 0),
				causeEvent("task-received", "root", "", "celery@a", 1, 10, 1),
				causeEvent("task-started", "root", "", "celery@a", 1, 11, 2),
				causeEvent("task-sent", "child", "root", "gen9@a", 9, 1, 3),
				causeEvent("task-received", "child", "root", "celery@b", 1, 5, 4),
				causeEvent("task-succeeded", "child", "root", "celery@b", 1, 6, 5),
				causeEvent("task-received", "later", "", "celery@b", 1, 7, 6),
				causeEvent("task-received", "elsewhere", "", "celery@c", 1, 900, 7),
			)
			c.save()
			for text, want := range map[string][]string{
				"before:child":       {"root"},
				"after:child":        {"later"},
				"concurrent:child":   {"elsewhere"},
				"cone:child":         {"child", "later", "root"},
				"after:root -id:la*": {"child"},
				"before:elsewhere":   nil,
			} {
				if diff := cmp.Diff(c.found(t, text), want); diff != "" {
					t.Errorf("%s (-got +want):\n%s", text, diff)
				}
				q, err := query.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := c.Count(t.Context(), q); err != nil || n.N != len(want) {
					t.Errorf("count of %s = %+v, %v; want %d", text, n, err, len(want))
				}
				stored, err := view.ResolveCauses(t.Context(), view.Stored{TaskReader: c.store}, q, time.Now())
				if err != nil || stored.Causal() {
					t.Errorf("%s is %s in the history, %v", text, stored, err)
				}
			}
		})
	}
}

// found returns the ids of the tasks that a query finds, sorted.
func (c *cluster) found(t *testing.T, text string) (ids []string) {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 100, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range page.Tasks {
		ids = append(ids, task.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestCausesOfUnknownTasksAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	q, err := query.Parse("state:failure before:nobody")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 10, Now: time.Now()})
	unknown, ok := errors.AsType[*query.UnknownTaskError](err)
	if !ok {
		t.Fatalf("error = %v, want that the task is unknown", err)
	}
	want := &query.Error{Offset: 21, Length: 6, Message: "there is no event of task nobody, so nothing is known to come before or after it"}
	if diff := cmp.Diff(unknown.In("state:failure before:nobody"), want); diff != "" {
		t.Errorf("error (-got +want):\n%s", diff)
	}
}

func TestCausesInThePast(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	c.publish(
		causeEvent("task-received", "first", "", "celery@a", 1, 10, 1),
		causeEvent("task-received", "second", "", "celery@a", 1, 11, 2),
	)
	c.save()
	at := time.Now()
	c.publish(causeEvent("task-received", "third", "", "celery@a", 1, 12, 3))
	past, err := c.At(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{"cone:first": {"first", "second"}, "cone:third": nil} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		page, err := past.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 10})
		for i := range page.Tasks {
			got = append(got, page.Tasks[i].ID)
		}
		slices.Sort(got)
		if _, unknown := errors.AsType[*query.UnknownTaskError](err); unknown != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("%s in the past = %v, %v; want %v", text, got, err, want)
		}
	}
}
