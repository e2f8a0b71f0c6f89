package query_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

func TestCausalFieldsMatchOnceResolved(t *testing.T) {
	t.Parallel()
	q, err := query.Parse("before:Ab,Cd -after:Ab state:failure")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := q.String(), "-after:Ab before:Ab,Cd state:failure"; got != want {
		t.Errorf("spelling = %q, want %q", got, want)
	}
	resolved := q.Resolve(func(f query.Field, value string) ([]string, bool) {
		return map[string][]string{"before:Ab": {"1", "2"}, "before:Cd": {"3"}, "after:Ab": {"2"}}[f.String()+":"+value], f.Causal()
	})
	var found, unresolved []string
	for _, id := range []string{"1", "2", "3", "4"} {
		task := &state.Task{ID: id, State: state.Failure}
		if resolved.Match(task, time.Time{}) {
			found = append(found, id)
		}
		if q.Match(task, time.Time{}) {
			unresolved = append(unresolved, id)
		}
	}
	if diff := cmp.Diff(found, []string{"1", "3"}); diff != "" {
		t.Errorf("resolved (-got +want):\n%s", diff)
	}
	if unresolved != nil {
		t.Errorf("unresolved finds %v, want none", unresolved)
	}
}

func TestCausalFieldsSuggestIDs(t *testing.T) {
	t.Parallel()
	got := query.Complete("before:3f", len("before:3f"), func(f query.Field, part string) []string {
		if f == query.ID && part == "3f" {
			return []string{"3f2a"}
		}
		return nil
	})
	if len(got) != 1 || got[0].Text != "3f2a" {
		t.Errorf("suggestions = %+v, want the id", got)
	}
}
