package view_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// restored is the source of another reader.
type restored struct{ *view.Reader }

func (restored) Notify()        {}
func (restored) Restored() bool { return true }

// TestCountersEndAtTheInstant counts an hour that an instant divides, by what is kept of it later and later.
func TestCountersEndAtTheInstant(t *testing.T) {
	t.Parallel()
	c := newCluster(t, state.Options{})
	at := time.Date(2026, 11, 21, 3, 57, 30, 0, time.UTC)
	var cells []history.Rollup
	for i, clock := range []string{"02:59", "03:05", "03:49", "03:51", "03:56", "03:57", "03:58", "04:01"} {
		minute, err := time.Parse("2006-01-02 15:04", "2026-11-21 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, history.Rollup{At: minute.Unix() / 60, Name: "pay", Succeeded: 1 << i})
	}
	if _, err := c.store.Write(t.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}}); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	for _, test := range []struct {
		later       time.Duration
		until       string
		hour, whole int64 // what is counted from 3:00, and in all
	}{
		{time.Hour, "03:57", 2 + 4 + 8 + 16, 1 + 2 + 4 + 8 + 16},
		{5 * day, "03:50", 2 + 4, 1 + 2 + 4},
		{20 * day, "03:00", 0, 1},
		{100 * day, "00:00", 0, 0},
	} {
		r, err := view.New(restored{c.Reader}, c.store, func() time.Time { return at.Add(test.later) })
		if err != nil {
			t.Fatal(err)
		}
		past, err := r.At(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		var hour int64
		read := history.RollupRange{From: at.Truncate(time.Hour), To: at.Add(day), Span: time.Hour, By: history.ByName}
		if err := past.History().Rollups(t.Context(), read, func(m history.Rollup) error {
			hour += m.Succeeded
			if m.At != at.Truncate(time.Hour).Unix()/60 {
				t.Errorf("%v later: a part of another hour: %+v", test.later, m)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		span := past.TypeSpan(tasktype.Span{From: at.Add(-day), To: at, Now: at})
		table, err := tasktype.Read(t.Context(), past.History(), span)
		if err != nil {
			t.Fatal(err)
		}
		var whole int64
		for i := range table.Types {
			whole += table.Types[i].Succeeded
		}
		if until := table.To.Format("15:04"); until != test.until || hour != test.hour || whole != test.whole {
			t.Errorf("%v later: %d in the hour and %d in all until %s, want %d and %d until %s", test.later, hour, whole, until, test.hour, test.whole, test.until)
		}
	}
}
