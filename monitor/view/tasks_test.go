package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// TestListsReachAllHistory compares the lists of a Reader whose cluster holds next to nothing in memory with those of
// one that holds all: when everything is saved, when new tasks are not, and when these are too.
func TestListsReachAllHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c, all := newCluster(t, state.Options{MaxTasks: 1 + 5*int(seed)}), state.New(state.Options{})
			publish := func(from, to uint64) {
				for i := from; i < to; i++ {
					h := eventgen.New(1000*seed+i, eventgen.Options{Tasks: 10, Custom: true, Revoked: true})
					fold(all, h.Events)
					c.publish(h.Events...)
				}
			}
			publish(0, 3)
			c.save()
			publish(3, 6) // evicts those before
			c.save()
			compareLists(t, c, all)
			c.store.full.Store(true)
			publish(6, 9)
			compareLists(t, c, all)
			c.store.full.Store(false)
			c.save()
			compareLists(t, c, all)
		})
	}
}

// fold applies events to a cluster.
func fold(c *state.Cluster, events []json.RawMessage) {
	var d celery.Decoder
	for _, e := range events {
		d.Decode(e, 0, func(e *state.Event) { c.Apply(e) })
	}
}

// compareLists walks lists of both, page by page, down and up again.
func compareLists(t *testing.T, c *cluster, all *state.Cluster) {
	t.Helper()
	now := time.Unix(1_790_001_000, 0)
	for _, text := range []string{
		"", "state:SUCCESS", "state:failure,retry name:shop.task_1", "-state:SUCCESS", "worker:celery@host-0", "retries:>0",
		"name:shop.* (is:active OR exc:ValueError)", "ValueError", "name:nothing",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatalf("query %q: %v", text, err)
		}
		for _, sort := range []query.Sort{
			{},
			{Ascending: true},
			{Field: query.Started},
			{Field: query.Started, Ascending: true},
			{Field: query.Retries},
			{Field: query.Run, Ascending: true},
			{Field: query.Name, Ascending: true},
			{Field: query.State},
		} {
			for _, limit := range []int{3, 500} {
				r := history.TaskRequest{Query: q, Sort: sort, Limit: limit, Now: now}
				ids := idsOf(matching(all, r))
				down, last := walk(t, c, r)
				if diff := cmp.Diff(ids, down, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("query %q sorted %+v by %d (-want +got):\n%s", text, sort, limit, diff)
				}
				if last == nil {
					continue
				}
				r.From, r.Newer = last, true
				up, _ := walk(t, c, r)
				if diff := cmp.Diff(ids[:slices.Index(ids, last.ID)], up, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("query %q sorted %+v by %d, back from its last page (-want +got):\n%s", text, sort, limit, diff)
				}
			}
		}
	}
}

// A task that changes, is saved and leaves memory while a page of the history is read is not listed as it was before.
func TestListsHaveNoStaleTasks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{MaxTasks: 1})
	event := func(kind, id string, clock int) json.RawMessage {
		return fmt.Appendf(nil, `{"type":"task-%s","uuid":%q,"hostname":"w1","pid":1,"clock":%d,"timestamp":%d}`, kind, id, clock, 1_790_000_000+clock)
	}
	for i, id := range []string{"a", "b", "c"} {
		c.publish(event("received", id, i+1))
		c.publish(event("succeeded", id, 10+i))
	}
	c.save()
	first, err := c.Tasks(t.Context(), history.TaskRequest{Limit: 1})
	if err != nil || len(first.Tasks) != 1 || first.Tasks[0].ID != "c" {
		t.Fatalf("first page = %+v, %v, want c", first.Tasks, err)
	}
	c.store.read = func() {
		c.store.read = nil
		c.publish(event("started", "a", 20)) // now above the page that was read
		c.publish(event("received", "d", 21), event("succeeded", "d", 22))
		c.save()
		c.publish(event("received", "e", 23)) // evicts
		c.save()
	}
	second, err := c.Tasks(t.Context(), history.TaskRequest{Limit: 5, From: first.Next})
	if err != nil {
		t.Fatal(err)
	}
	if got := idsOf(second.Tasks); !slices.Equal(got, []string{"b"}) {
		t.Errorf("second page = %v, want b alone: a has changed", got)
	}
}

// matching returns the tasks of c that r selects, in the list's order.
func matching(c *state.Cluster, r history.TaskRequest) []state.Task {
	type row struct {
		at   state.Position
		task state.Task
	}
	var rows []row
	for page := c.Tasks(state.Query{Limit: 500}); ; page = c.Tasks(state.Query{Limit: 500, From: page.Older}) {
		for _, t := range page.Tasks {
			at, known := state.Position{Stamp: t.Stamp, ID: t.ID}, true
			switch f := r.Sort.Field; {
			case f.Alphabetical():
				at.Word = f.Word(&t)
				known = at.Word != ""
			case f != 0:
				at.Value, known = f.Int(&t)
			}
			if known && r.Query.Match(&t, r.Now) {
				rows = append(rows, row{at, t})
			}
		}
		if page.Older == nil {
			break
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return a.at.Compare(b.at) })
	if !r.Sort.Ascending || r.Sort.Field.Alphabetical() {
		slices.Reverse(rows)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		if r.Sort.Ascending {
			return strings.Compare(a.at.Word, b.at.Word)
		}
		return strings.Compare(b.at.Word, a.at.Word)
	})
	tasks := make([]state.Task, len(rows))
	for i := range rows {
		tasks[i] = rows[i].task
	}
	return tasks
}

// walk returns the ids of a list from r.From to its end, or its beginning, in the list's order, and where the page
// before the last one starts.
func walk(t *testing.T, c *cluster, r history.TaskRequest) (ids []string, back *state.Position) {
	t.Helper()
	for range 10_000 {
		page, err := c.Tasks(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Tasks) > r.Limit {
			t.Fatalf("page of %d tasks, want %d at most", len(page.Tasks), r.Limit)
		}
		got := idsOf(page.Tasks)
		if r.Newer {
			ids, r.From = slices.Concat(got, ids), page.Prev
		} else {
			ids, r.From, back = append(ids, got...), page.Next, page.Prev
		}
		if r.From == nil {
			return ids, back
		}
	}
	t.Fatal("a list without end")
	return nil, nil
}

func idsOf(tasks []state.Task) []string {
	ids := make([]string, 0, len(tasks))
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}
