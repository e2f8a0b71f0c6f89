package main_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestDemoTellsTheSameStoryAgain compares the names of the tasks that are sent first. Their ids are others each time.
func TestDemoTellsTheSameStoryAgain(t *testing.T) {
	t.Parallel()
	const enough = 400
	sent := func(seed string) []string {
		t.Helper()
		d := start(t, nil, "demo", "--seed", seed)
		eventually(t, patience, func() error {
			if n := d.overview(t).Counts.Tasks; n < 2*enough {
				return fmt.Errorf("%d tasks, want %d", n, 2*enough)
			}
			return nil
		})
		tasks := slices.DeleteFunc(d.tasks(t), func(t task) bool { return t.SentAt == nil })
		slices.SortFunc(tasks, func(a, b task) int { return cmp.Or(a.SentAt.Compare(*b.SentAt), cmp.Compare(a.Name, b.Name)) })
		names := make([]string, 0, enough)
		for _, t := range tasks[:enough] {
			names = append(names, t.Name)
		}
		return names
	}
	first := sent("7")
	if diff := gocmp.Diff(first, sent("7")); diff != "" {
		t.Errorf("seed 7 tells another story the second time (-first +again):\n%s", diff)
	}
	if slices.Equal(first, sent("8")) {
		t.Error("seed 8 tells the story of seed 7")
	}
}
