package historytest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// SearchFixture says how to check a TaskReader.
type SearchFixture struct {
	Open    func(*testing.T) history.Store  // an empty store
	Index   func(*testing.T, history.Store) // does what the store puts off; may be nil
	Bounded bool                            // it gives up so early that counts may be too low
}

// Search checks a TaskReader against a list of all tasks, filtered by query.Match and sorted, before and after it has
// settled.
func Search(t *testing.T, x SearchFixture) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("random queries %d", seed), func(t *testing.T) {
			t.Parallel()
			s := x.Open(t)
			tasks := Fill(t, s, seed, 30+int(seed)*30)
			rng := rand.New(rand.NewPCG(seed, 2))
			x.all(t, s, tasks, rng)
			if x.Index != nil {
				x.Index(t, s)
				x.all(t, s, tasks, rng)
			}
		})
	}
}

func (x SearchFixture) all(t *testing.T, s history.Store, tasks []state.Task, rng *rand.Rand) {
	t.Helper()
	d := random{rng}
	for range 25 {
		r := history.TaskRequest{Query: query.New(d.expr(3)), Limit: 1 + rng.IntN(30), Now: requestTime()}
		if d.oneIn(2) {
			r.Sort = query.Sort{Field: pick(d, sortable()), Ascending: d.oneIn(2)}
		}
		want := listed(tasks, r)
		if diff := gocmp.Diff(want, pages(t, s, r, false)); diff != "" {
			t.Fatalf("pages of %q by %+v, %d each, from the top (-want +got):\n%s", r.Query, r.Sort, r.Limit, diff)
		}
		slices.Reverse(want)
		if diff := gocmp.Diff(want, pages(t, s, r, true)); diff != "" {
			t.Fatalf("pages of %q by %+v, %d each, from the end (-want +got):\n%s", r.Query, r.Sort, r.Limit, diff)
		}
		r.Sort = query.Sort{}
		all := listed(tasks, r)
		limit := rng.IntN(40)
		count, err := s.Count(t.Context(), r.Query, requestTime(), limit)
		if err != nil {
			t.Fatal(err)
		}
		if want := (history.Count{N: min(len(all), limit), Exact: len(all) <= limit}); count != want &&
			(!x.Bounded || count.Exact || count.N > want.N) {
			t.Fatalf("count of %q up to %d = %+v, want %+v", r.Query, limit, count, want)
		}
	}
}

func sortable() []query.Field {
	return []query.Field{
		query.Sent, query.Received, query.Started, query.Finished, query.Wait, query.Run, query.Retries,
		query.Name, query.Worker, query.Queue, query.State,
	}
}

// listed returns the ids of the tasks that match, in the order of the list.
func listed(tasks []state.Task, r history.TaskRequest) []string {
	type place struct {
		value int64
		word  string
		task  *state.Task
	}
	var places []place
	for i := range tasks {
		p := place{task: &tasks[i]}
		known := true
		switch f := r.Sort.Field; {
		case f.Alphabetical():
			p.word = f.Word(p.task)
			known = p.word != ""
		case f != 0:
			p.value, known = f.Int(p.task)
		}
		if known && r.Query.Match(p.task, r.Now) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		c := cmp.Or(cmp.Compare(a.value, b.value), a.task.Stamp.Compare(b.task.Stamp), cmp.Compare(a.task.ID, b.task.ID))
		words := strings.Compare(a.word, b.word)
		if !r.Sort.Ascending {
			words = -words
		}
		if !r.Sort.Ascending || r.Sort.Field.Alphabetical() {
			c = -c
		}
		return cmp.Or(words, c)
	})
	ids := []string{}
	for _, p := range places {
		ids = append(ids, p.task.ID)
	}
	return ids
}

// pages walks all pages from the top, or from the end back to it, and returns the ids in the order seen.
func pages(t *testing.T, s history.Store, r history.TaskRequest, back bool) []string {
	t.Helper()
	ids := []string{}
	r.Newer = back
	for n := 0; ; n++ {
		if n > 2000 {
			t.Fatalf("pages of %q do not end", r.Query)
		}
		page, err := s.Tasks(t.Context(), r)
		if err != nil {
			t.Fatalf("page of %q: %v", r.Query, err)
		}
		if len(page.Tasks) > r.Limit {
			t.Fatalf("page of %d tasks, want at most %d", len(page.Tasks), r.Limit)
		}
		on := page.Next
		if back {
			slices.Reverse(page.Tasks)
			on = page.Prev
		}
		for _, task := range page.Tasks {
			ids = append(ids, task.ID)
		}
		if n > 0 && len(page.Tasks) > 0 {
			other := page.Prev
			if back {
				other = page.Next
			}
			if other == nil {
				t.Fatalf("page %d of %q has no way back", n, r.Query)
			}
		}
		if on == nil {
			return ids
		}
		r.From = on
	}
}
