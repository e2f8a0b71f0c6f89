package history_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// newestFirst has tasks in the order of lists, newest change first.
type newestFirst []state.Task

func (l newestFirst) Tasks(_ context.Context, r history.TaskRequest) (page history.TaskPage, err error) {
	at := func(t *state.Task) *state.Position { return &state.Position{Stamp: t.Stamp, ID: t.ID} }
	var found []state.Task
	for i := range l {
		t := &l[i]
		if r.Newer {
			t = &l[len(l)-1-i]
		}
		if c := at(t); r.From != nil && (c.Compare(*r.From) < 0) == r.Newer || !r.Query.Match(t, r.Now) || r.From != nil && *c == *r.From {
			continue
		}
		if found = append(found, *t); len(found) > r.Limit {
			found = found[:r.Limit]
			page.Next = at(&found[r.Limit-1])
			break
		}
	}
	if page.Tasks = found; r.Newer {
		slices.Reverse(page.Tasks)
		page.Prev, page.Next = page.Next, nil
	}
	return page, nil
}

func (l newestFirst) Words(_ context.Context, r history.WordRange) ([]string, error) {
	var words []string
	for i := range l {
		words = append(words, r.Field.Word(&l[i]))
	}
	return r.Next(words), nil
}

// Pages by a word, from either end, are the list sorted by the word, then by newest change, however many tasks match.
func TestTasksByWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[a-cé]{0,3}`), 1, 8).Draw(t, "names")
		names = append(names, strings.Repeat("many", 40))
		list := make(newestFirst, rapid.SampledFrom([]int{0, 1, 40, 499, 500, 501, 700}).Draw(t, "tasks"))
		for i := range list {
			list[i] = state.Task{ID: fmt.Sprint(i), Stamp: clock.Stamp{Clock: int64(len(list)-i) / 2}, State: state.Success}
			if n := rapid.IntRange(0, len(names)).Draw(t, "name"); n < len(names) {
				list[i].Name = &names[n]
			}
			if i%3 == 0 {
				list[i].State = state.Failure
			}
		}
		slices.SortFunc(list, func(a, b state.Task) int {
			return -cmp.Or(a.Stamp.Compare(b.Stamp), cmp.Compare(a.ID, b.ID))
		})
		r := history.TaskRequest{Sort: query.Sort{Field: query.Name, Ascending: rapid.Bool().Draw(t, "ascending")}, Now: time.Unix(0, 0)}
		r.Limit = rapid.IntRange(1+len(list)/30, 50).Draw(t, "limit")
		switch rapid.IntRange(0, 2).Draw(t, "query") {
		case 1:
			r.Query = query.New(query.Equal(query.State, "SUCCESS"))
		case 2:
			r.Query = query.New(query.Equal(query.Name, names...))
		}

		var want []string
		name := make(map[string]string)
		for _, task := range list {
			if task.Name != nil && *task.Name != "" && r.Query.Match(&task, r.Now) {
				want = append(want, task.ID)
				name[task.ID] = *task.Name
			}
		}
		slices.SortStableFunc(want, func(a, b string) int {
			if r.Sort.Ascending {
				return strings.Compare(name[a], name[b])
			}
			return strings.Compare(name[b], name[a])
		})

		for _, r.Newer = range []bool{false, true} {
			r.From = nil
			var got []string
			for {
				page, err := history.TasksByWord(t.Context(), list, r)
				if err != nil {
					t.Fatal(err)
				}
				on := page.Next
				if r.Newer {
					slices.Reverse(page.Tasks)
					on = page.Prev
				}
				for _, task := range page.Tasks {
					got = append(got, task.ID)
				}
				if on == nil {
					break
				}
				if page.Searched == 0 && len(page.Tasks) != r.Limit {
					t.Fatalf("a page of %d tasks, want %d", len(page.Tasks), r.Limit)
				}
				r.From = on
			}
			if r.Newer {
				slices.Reverse(got)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("pages of %q by %s, newer %t (-want +got):\n%s", r.Query, r.Sort, r.Newer, diff)
			}
		}
	})
}
