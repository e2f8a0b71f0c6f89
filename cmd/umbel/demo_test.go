package main_test

import (
	"fmt"
	"slices"
	"testing"
)

// TestDemoTellsTheSameStoryAgain looks for the tasks of one telling in another, which may not be as far yet.
func TestDemoTellsTheSameStoryAgain(t *testing.T) {
	t.Parallel()
	first, again, other := start(t, nil, "demo", "--seed", "7"), start(t, nil, "demo", "--seed", "7"), start(t, nil, "demo", "--seed", "8")
	const enough = 400
	for _, d := range []*dashboard{first, other} {
		eventually(t, patience, func() error {
			if n := d.overview(t).Counts.Tasks; n < 2*enough {
				return fmt.Errorf("%d tasks, want %d", n, 2*enough)
			}
			return nil
		})
	}
	// The tasks that Umbel has only heard of from a worker have no name yet.
	told := slices.DeleteFunc(first.tasks(t), func(t task) bool { return t.Name == "" })
	for _, want := range told[:enough] {
		again.until(t, want.ID, func(got task) error {
			if got.Name != want.Name {
				return fmt.Errorf("task %s is called %q, and was called %q before", want.ID, got.Name, want.Name)
			}
			return nil
		})
		if _, ok := api[task](t, other, "tasks/"+want.ID); ok {
			t.Errorf("seed 8 tells of task %s, as seed 7 does", want.ID)
		}
	}
}
