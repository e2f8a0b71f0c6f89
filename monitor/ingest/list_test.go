package ingest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/internal/shelf"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// TestListsReachAllHistory compares the lists of a monitor that holds next to nothing in memory with those of
// a cluster that holds all: when everything is saved, when new tasks are not, and when these are too.
func TestListsReachAllHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b, s := inproc.New(inproc.Options{Limit: 1 << 20}), &faulty{Store: memoryStore(t)}
			m := run(t, ingest.Options{Broker: b, Store: s, State: state.Options{MaxTasks: 1 + 5*int(seed)}})
			all, events := state.New(state.Options{}), uint64(0)
			tell := func(from, to uint64) {
				for i := from; i < to; i++ {
					h := eventgen.New(1000*seed+i, eventgen.Options{Tasks: 10, Custom: true, Revoked: true})
					fold(all, h.Events)
					publish(t, b, raw(h.Events)...)
					events += uint64(len(h.Events))
				}
			}
			tell(0, 3)
			saved(t, m, events)
			tell(3, 6) // evicts those before
			saved(t, m, events)
			compareLists(t, m, all)
			s.fail(errDisk)
			tell(6, 9)
			poll(t, "all to be folded", func() bool { return m.Health().Events == events })
			compareLists(t, m, all)
			s.fail(nil)
			saved(t, m, events)
			compareLists(t, m, all)
		})
	}
}

func raw(events []json.RawMessage) [][]byte {
	list := make([][]byte, len(events))
	for i := range events {
		list[i] = events[i]
	}
	return list
}

// compareLists walks lists of both, page by page, down and up again.
func compareLists(t *testing.T, m *ingester, all *state.Cluster) {
	t.Helper()
	want := shelf.New(func(f func(state.View)) { f(all) })
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
		} {
			for _, limit := range []int{3, 500} {
				r := history.TaskRequest{Query: q, Sort: sort, Limit: limit, Now: now}
				full := r
				full.Limit = 1 << 20
				page, err := want.Tasks(t.Context(), full)
				if err != nil {
					t.Fatal(err)
				}
				ids := idsOf(page.Tasks)
				down, last := walk(t, m, r)
				if diff := cmp.Diff(ids, down, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("query %q sorted %+v by %d (-want +got):\n%s", text, sort, limit, diff)
				}
				if last == nil {
					continue
				}
				r.From, r.Newer = last, true
				up, _ := walk(t, m, r)
				if diff := cmp.Diff(ids[:slices.Index(ids, last.ID)], up, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("query %q sorted %+v by %d, back from its last page (-want +got):\n%s", text, sort, limit, diff)
				}
			}
		}
	}
}

// walk returns the ids of a list from r.From to its end, or its beginning, in the list's order, and where the page
// before the last one starts.
func walk(t *testing.T, m *ingester, r history.TaskRequest) (ids []string, back *state.Position) {
	t.Helper()
	for range 10_000 {
		page, err := m.read.Tasks(t.Context(), r)
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
