package tasktype_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// paged has tasks in pages, the highest clock first.
type paged []state.Task

func (l paged) Tasks(_ context.Context, r history.TaskRequest) (history.TaskPage, error) {
	var p history.TaskPage
	for i := len(l) - 1; i >= 0; i-- {
		t := &l[i]
		if r.From != nil && t.Stamp.Clock >= r.From.Stamp.Clock || !r.Query.Match(t, now) {
			continue
		}
		if len(p.Tasks) == r.Limit {
			p.Next = &state.Position{Stamp: p.Tasks[r.Limit-1].Stamp}
			break
		}
		p.Tasks = append(p.Tasks, *t)
	}
	return p, nil
}

// named numbers tasks of one name, with keyword arguments in place of positional ones.
func named(list []state.Task, kwargs func(i int) string) paged {
	for i := range list {
		list[i].ID, list[i].Name = fmt.Sprint("task-", i), new("a")
		list[i].Stamp.Clock = int64(i + 1)
		list[i].Args, list[i].Kwargs = new("()"), new(kwargs(i))
	}
	return list
}

func split(t *testing.T, list paged) tasktype.Split {
	t.Helper()
	failed := query.New(query.Equal(query.State, string(state.Failure)))
	s, err := tasktype.ReadSplit(t.Context(), list, failed, "a", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range append(s.Workers, s.Values...) { // what their queries find is what was counted
		if share.Query == "" {
			t.Errorf("no query finds the tasks with %s %s", share.Field, share.Value)
			continue
		}
		q, err := query.Parse(share.Query)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range list {
			if q.Match(&list[i], now) {
				n++
			}
		}
		if n != share.Selected {
			t.Errorf("%s finds %d tasks, want the %d that have %s %s", q, n, share.Selected, share.Field, share.Value)
		}
	}
	return s
}

func describe(shares []tasktype.Share) []string {
	var list []string
	for _, s := range shares {
		list = append(list, fmt.Sprintf("%s=%s %d/%d %d/%d %v %s", s.Field, s.Value, s.Selected, s.SelectedOf, s.Others, s.OthersOf, s.Apart, s.Query))
	}
	return list
}

func TestSplitFindsTheWorkerAndTheArgument(t *testing.T) {
	t.Parallel()
	list := append(tasksWith(18, "", "w3", state.Failure), tasksWith(2, "", "w1", state.Failure)...)
	list = append(list, tasksWith(100, "", "w1", state.Success)...)
	s := split(t, named(list, func(i int) string {
		region, note := "eu", ""
		switch {
		case i >= 40:
			region = "us"
		case i >= 20: // some that succeeded have the text of the argument elsewhere
			region, note = "us", "region: eu"
		}
		return fmt.Sprintf("{'region': '%s', 'note': '%s', 'n': %d}", region, note, i)
	}))
	want := []string{
		"worker=w3 18/20 0/100 true state:failure worker:w3",
		"worker=w1 2/20 100/100 false state:failure worker:w1",
	}
	if diff := cmp.Diff(want, describe(s.Workers)); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	want = []string{`kwargs.region="eu" 20/20 0/100 true kwargs:"'region': 'eu'" state:failure`}
	if diff := cmp.Diff(want, describe(s.Values)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if s.Tasks != 20 || !s.Whole || s.Others != 100 || s.Rest != 0 {
		t.Errorf("split of %d tasks (whole: %v) and %d others, %d workers more", s.Tasks, s.Whole, s.Others, s.Rest)
	}
}

// TestSplitNamesTasksThatNoTextFinds has one number in two places.
func TestSplitNamesTasksThatNoTextFinds(t *testing.T) {
	t.Parallel()
	list := append(tasksWith(12, "", "w", state.Failure), tasksWith(60, "", "w", state.Success)...)
	s := split(t, named(list, func(i int) string {
		switch {
		case i < 3:
			return "{'a': {'n': 7}, 'b': 1}"
		case i < 12:
			return "{'a': {'n': 8}, 'b': 7}"
		}
		return "{'a': {'n': 7}, 'b': 2}"
	}))
	if len(s.Values) != 2 || s.Values[0].Field != "kwargs.a.n" || s.Values[1].Field != "kwargs.b" {
		t.Errorf("values = %q, want a.n and b", describe(s.Values))
	}
}

func TestSplitWithoutOthersSaysWhatMostShare(t *testing.T) {
	t.Parallel()
	s := split(t, named(tasksWith(5, "", "w", state.Failure), func(i int) string {
		return fmt.Sprintf("{'region': 'eu', 'vip': %s, 'n': %d}", map[bool]string{true: "True", false: "False"}[i == 0], i)
	}))
	want := []string{
		`kwargs.region="eu" 5/5 0/0 false kwargs:"'region': 'eu'" state:failure`,
		`kwargs.vip=false 4/5 0/0 false kwargs:"'vip': False" state:failure`,
	}
	if diff := cmp.Diff(want, describe(s.Values)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestSplitOfALargeGroupIsOfTheNewest(t *testing.T) {
	t.Parallel()
	list := append(tasksWith(400, "", "w1", state.Failure), tasksWith(300, "", "w2", state.Failure)...)
	s := split(t, named(list, func(int) string { return "{}" }))
	if s.Whole || s.Tasks != tasktype.MaxFailures-1 || len(s.Workers) != 2 || s.Workers[0].Value != "w2" || s.Workers[0].Selected != 300 {
		t.Errorf("split of %d tasks (whole: %v): %q", s.Tasks, s.Whole, describe(s.Workers))
	}
}
