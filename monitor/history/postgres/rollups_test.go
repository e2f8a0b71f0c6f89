package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
)

// TestCountsAreThoseOfAllRollups compares what the server adds up with what a reader does.
func TestCountsAreThoseOfAllRollups(t *testing.T) {
	t.Parallel()
	d := open(t, testpostgres.Schema(t))
	defer closed(t, d)
	const first = int64(29_920_320)
	cells := []history.Rollup{{At: first}}
	for i := range int64(60) {
		cells = append(cells, history.Rollup{
			At: first + i%7, Name: []string{"", "a", "b"}[i%3], Worker: []string{"", "v", "w", "x"}[i%4], Queue: []string{"", "q"}[i%2],
			Received: i, Succeeded: i % 5, Failed: i % 3, Retried: i % 2,
		})
	}
	if _, err := d.Write(t.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}}); err != nil {
		t.Fatal(err)
	}
	for _, by := range []history.RollupGrouping{history.ByTime, history.ByName, history.ByWorker, history.ByQueue} {
		for _, r := range []history.RollupRange{{}, {Names: []string{"a"}}, {Workers: []string{"v", "w"}, Queues: []string{"q"}}} {
			r.From, r.To, r.Span = time.Unix(first*60, 0), time.Unix((first+5)*60, 0), time.Minute
			sum := func(by history.RollupGrouping, field func(m history.Rollup) string) (sums map[[2]any][4]int64, rows int) {
				sums = make(map[[2]any][4]int64)
				r.By = by
				err := d.Rollups(t.Context(), r, func(m history.Rollup) error {
					k := [2]any{m.At, field(m)}
					n := sums[k]
					sums[k] = [4]int64{n[0] + m.Received, n[1] + m.Succeeded, n[2] + m.Failed, n[3] + m.Retried}
					rows++
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return sums, rows
			}
			field := func(m history.Rollup) string {
				return [...]string{history.ByTime: "", history.ByName: m.Name, history.ByWorker: m.Worker, history.ByQueue: m.Queue}[by]
			}
			want, _ := sum(history.ByAll, field)
			got, rows := sum(by, field)
			if diff := cmp.Diff(want, got); diff != "" || rows != len(want) {
				t.Errorf("by %d: %d rows, want %d (-want +got):\n%s", by, rows, len(want), diff)
			}
		}
	}
}
