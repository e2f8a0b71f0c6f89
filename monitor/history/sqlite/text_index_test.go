package sqlite_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// TestTextsAreFoundInManySegments indexes a few tasks at a time, while they change, and looks for what they say in the end.
func TestTextsAreFoundInManySegments(t *testing.T) {
	t.Parallel()
	d := openHistory(t, t.TempDir())
	for i, batch := range testBatches(t, 300, 1, 10) {
		if _, err := d.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := d.IndexInSteps(t.Context(), 7); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := d.Segments(t); n < 2 || n > 30 {
		t.Errorf("%d segments, want that they were merged now and then", n)
	}
	all, err := d.Tasks(t.Context(), history.TaskRequest{Limit: 500})
	if err != nil || len(all.Tasks) < 300 {
		t.Fatalf("%d tasks, %v", len(all.Tasks), err)
	}
	for i := range all.Tasks {
		for f, text := range map[query.Field]*string{query.Args: all.Tasks[i].Args, query.Kwargs: all.Tasks[i].Kwargs, query.Result: all.Tasks[i].Result} {
			if text == nil || len(*text) < 8 || i%7 != 0 {
				continue
			}
			from := i % (len(*text) - 6)
			q := query.New(query.Term{Field: f, Values: []query.Value{{Match: query.Contains, Text: (*text)[from:][:6]}}})
			found, err := d.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 500})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := len(found.Tasks), matching(all.Tasks, q); got != want {
				t.Errorf("%v: %d tasks, want %d", q, got, want)
			}
		}
	}
}

func matching(tasks []state.Task, q query.Query) (n int) {
	for i := range tasks {
		if q.Match(&tasks[i], time.Time{}) {
			n++
		}
	}
	return n
}
