package sqlite_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// Counters leave in the shortest span first; longer ones still tell of them.
func TestOldMinutesAreRemoved(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	var cells []history.Rollup
	ages := []time.Duration{time.Hour, 3 * 24 * time.Hour, 9 * 24 * time.Hour, 36 * 24 * time.Hour, 401 * 24 * time.Hour}
	for _, age := range ages {
		cells = append(cells, history.Rollup{At: now.Add(-age).Unix() / 60, Name: "a", Received: 1})
	}
	if _, err := d.Write(t.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}}); err != nil {
		t.Fatal(err)
	}
	kept := func() (n []int) {
		for _, s := range history.RollupSpans() {
			n = append(n, 0)
			r := history.RollupRange{From: now.Add(-500 * 24 * time.Hour), To: now, Span: s.Length}
			if err := d.Rollups(t.Context(), r, func(history.Rollup) error { n[len(n)-1]++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if diff := cmp.Diff([]int{5, 5, 5, 5}, kept()); diff != "" {
		t.Fatalf("cells by span at first (-want +got):\n%s", diff)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx, func([]string) {}) }()
	want, tick := []int{1, 2, 3, 4}, time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(3 * time.Minute); !cmp.Equal(want, kept()) && time.Now().Before(deadline); {
		<-tick.C
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, kept()); diff != "" {
		t.Errorf("cells by span in the end (-want +got):\n%s", diff)
	}
}

// Counters of some names are sought, however many other names there are.
func TestRollupsOfNamesAreSought(t *testing.T) {
	t.Parallel()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	now := time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)
	var cells []history.Rollup
	for hour := range int64(30) {
		for _, name := range []string{"", "a", "b"} {
			cells = append(cells, history.Rollup{At: now.Unix()/60 - 60*hour, Name: name, Received: 1 + hour})
		}
	}
	if _, err := d.Write(t.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}}); err != nil {
		t.Fatal(err)
	}
	for _, s := range history.RollupSpans() {
		r := history.RollupRange{From: now.Add(-10 * time.Hour), To: now, Span: s.Length}
		var want, got []history.Rollup
		keep := func(m history.Rollup) error {
			if m.Name != "b" {
				want = append(want, m)
			}
			return nil
		}
		if err := d.Rollups(t.Context(), r, keep); err != nil {
			t.Fatal(err)
		}
		r.Names = []string{"a", "unheard of"}
		if err := d.Rollups(t.Context(), r, func(m history.Rollup) error { got = append(got, m); return nil }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: rollups of a (-want +got):\n%s", s.Length, diff)
		}
		if s.Length > time.Hour {
			continue // no day begins within these ten hours
		}
		plan, err := d.ExplainRollups(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if want := "SEARCH rollups USING PRIMARY KEY (span=? AND at=? AND name=?)"; !slices.Contains(plan, want) {
			t.Errorf("%s: the plan is %q, want %q", s.Length, plan, want)
		}
	}
}
